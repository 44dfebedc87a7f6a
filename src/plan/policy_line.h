/*
 * policy_line.h - one line of a policy, read and checked but not yet merged; and templates.
 *
 * Runs in: the launcher and carrel-policy. PURE. For the policy_*.c files only.
 *
 * Three forms of one text, from outside to inside:
 *   word      what a person wrote, quotes and backslashes resolved by whoever read it. A special
 *             byte that was quoted stands behind a backslash, one that was not stands alone.
 *   template  checked: variables are known and written one way ("~" is "$HOME"), relative paths are
 *             joined, a backslash stands before '$', '\\' and (globs) '*', '?', '[' that mean
 *             themselves, and before nothing else.
 *   plain     variables filled in (policy_expand).
 */
#pragma once

#include "plan/policy.h"
#include "plan/settings.h"

struct policy_line {
	const char *text; /* template, word or variable name; NULL for tmpfs, flags and hosts */
	const char *
		dest; /* template: destination of bind and tmpfs, value of env; all of publish */
	const struct netrule *net; /* allow and deny, in place of a text */
	uint64_t number; /* size, duration (ms), count, index of an enumeration's word, flag */
	struct source source;
	uint32_t hash; /* of what the line is about: lines about the same thing are compared */
	unsigned char id;   /* enum setting_id */
	unsigned char kind; /* enum path_kind of a path rule */
	bool optional;
	bool glob;
};

/* Where a value stands and what it may refer to. */
struct policy_place {
	struct policy *p;
	const struct policy_resolver *r;
	struct source source;
	const char *dir; /* where relative paths start; NULL: refused */
	bool shipped;    /* a text of carrel's own */
	const char *setting;
	struct error *e;
};

/*
 * policy_fail - describe what is wrong at a place; always returns a negative errno.
 * ERROR_USAGE on the command line, ERROR_POLICY in a text.
 */
int policy_fail(const struct policy_place *at, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* policy_full - no room is left for the policy (ERROR_LIMIT). */
int policy_full(struct error *e);

/* policy_work - memory for @size bytes that is overwritten by the next use of @which (0, 1); NULL
 * when there is none. */
char *policy_work(struct policy *p, int which, size_t size);

/* policy_add_value - check the @word of setting @s and keep the line. 0 or -errno with the error. */
MUST_CHECK int policy_add_value(
	struct policy_place *at, const struct setting *s, const char *word);

/*
 * policy_line_number - the @word of a setting that is a size, a duration or a count. 0 or -errno with the error.
 * policy_line_size - the same for a size that is a part of a word.
 */
MUST_CHECK int policy_line_number(const struct policy_place *at, const struct setting *s,
	const char *word, uint64_t *ret);
MUST_CHECK int policy_line_size(const struct policy_place *at, const char *word, uint64_t *ret);

/* policy_option_place - the place of an option that is no line of a policy; it has no policy. */
struct policy_place policy_option_place(const char *name, struct error *e);

/* policy_line_subject - what a line of a list is about: of a path rule where it is seen inside. */
const char *policy_line_subject(const struct policy_line *l);

enum { TOPIC_NONE, TOPIC_PATH, TOPIC_ENV, TOPIC_OTHER };

/*
 * policy_line_topic - lines with the same topic and subject replace one another across layers and
 * may not contradict within a source: all path rules are one topic, env, unsetenv and scratch-env
 * another, any other list one each (TOPIC_OTHER and up); TOPIC_NONE for what is no list.
 */
int policy_line_topic(const struct policy_line *l);

/* policy_reserve_lines - room for @more lines, so that a long text is not copied as it grows. 0 or -ENOMEM. */
MUST_CHECK int policy_reserve_lines(struct policy *p, size_t more);

/* policy_keep_line - keep a checked line, unless it contradicts one of the same source. */
MUST_CHECK int policy_keep_line(const struct policy_place *at, struct policy_line *l);

/* policy_fail_setting - no setting has that name; the error says which one was probably meant. */
int policy_fail_setting(const struct policy_place *at, const char *name);

/* policy_add_flag_word - keep a flag with yes, no or nothing (NULL) behind it. 0 or -errno. */
MUST_CHECK int policy_add_flag_word(
	struct policy_place *at, const struct setting *s, const char *word);

/*
 * policy_add_word - as policy_add_value, but `profile` and `policy` are read, to the end.
 * @layer: of the lines that are included. 0 or -errno with the error.
 */
MUST_CHECK int policy_add_word(
	struct policy_place *at, const struct setting *s, enum layer layer, const char *word);

/*
 * policy_merge - merge the lines of @base and @more (may be NULL) up to and including layer @top
 * into @to, which is fresh. 0, or -ENOMEM.
 */
MUST_CHECK int policy_merge(struct policy *to, const struct policy *base,
	const struct policy *more, enum layer top);

typedef void (*policy_visit_fn)(
	void *context, const struct setting *s, const struct policy_line *rule);

/* policy_walk - every effective rule, as the line that would say it. */
void policy_walk(const struct policy *p, policy_visit_fn visit_rule, void *context);

/* policy_judge - hold the locks of an expanded policy. 0 or -errno with the error. */
MUST_CHECK int policy_judge(struct policy *p, struct error *e);

/* policy_add_flag - keep a line that sets the flag @s to @on. 0 or -errno with the error. */
MUST_CHECK int policy_add_flag(struct policy_place *at, const struct setting *s, bool on);

/*
 * policy_read_profile - read the name in a `profile` line into @l.
 * policy_read_include - fail for a word that names no list. A list never gets here: its lines are
 * read in the place of its name.
 * policy_fail_one_of - an unknown word: the error names what was probably meant, else all of
 * @names. Returns a negative errno.
 * policy_keep_text - a copy of @text in the policy's arena, as the text of @l.
 */
MUST_CHECK int policy_read_profile(
	const struct policy_place *at, const char *word, struct policy_line *l);
MUST_CHECK int policy_read_include(const struct policy_place *at, const char *word);
int policy_fail_one_of(const struct policy_place *at, const char *what, const char *word,
	const char *const *names, size_t count);
MUST_CHECK int policy_keep_text(
	const struct policy_place *at, const char *text, struct policy_line *l);

/* A text that is included by name. */
struct policy_preset {
	const char *text, *shown; /* shown: its name in messages */
	size_t size;
	bool shipped;
};

/*
 * policy_find_preset - keep the line of `with` or `cache`, and find the text that @word means: NAME, or NAME:WORD where
 * the text wants a second word. 0 or -errno with the error. What @ret points to is the policy's.
 */
MUST_CHECK int policy_find_preset(struct policy_place *at, const struct setting *s,
	const char *word, struct policy_preset *ret);

/*
 * policy_check_daemon - require the second word, PATH:gives-root, for the socket of a daemon
 * (policy_is_daemon()), and refuse it for any other. *@word: the path alone on return. 0 or -errno
 * with the error.
 */
MUST_CHECK int policy_check_daemon(const struct policy_place *at, const char **word);

/*
 * policy_read_host - read the @word of `allow` or `deny` (the setting @s) into @l.
 * policy_read_publish, policy_read_resolver, policy_read_proxy: that of `publish`, `net-resolver`,
 * `egress-proxy`. 0 or -errno with the error.
 */
MUST_CHECK int policy_read_host(const struct policy_place *at, const struct setting *s,
	const char *word, struct policy_line *l);
MUST_CHECK int policy_read_publish(
	const struct policy_place *at, const char *word, struct policy_line *l);
MUST_CHECK int policy_read_resolver(
	const struct policy_place *at, const char *word, struct policy_line *l);
MUST_CHECK int policy_read_proxy(
	const struct policy_place *at, const char *word, struct policy_line *l);

/*
 * policy_is_set_word - whether @word, of a KIND_HOST, names a set: @NAME.
 * policy_find_set - the shipped set @name: the text NAME.hosts of policy/, or NULL.
 */
bool policy_is_set_word(const char *word);
const struct embedded_text *policy_find_set(const struct policy_resolver *r, const char *name);

/*
 * policy_fail_set - there is no set @name: the error says which one was probably meant, or which ones there are.
 */
int policy_fail_set(const struct policy_place *at, const char *name);

/*
 * policy_settle_net - what `net` and `allow` mean together: the later layer decides. An `allow` line of a layer above
 * that of `net` means `net allow`; below it, it has no effect; in the same layer as `net none` or `net host` it is an
 * error. 0 or -errno with the error.
 */
MUST_CHECK int policy_settle_net(struct policy *p, struct error *e);

/* policy_drop_hosts - forget the lines `allow` and `deny` where `net` has no use for them. */
void policy_drop_hosts(struct policy *p);

/* policy_may_be_own - whether a text of that name at this place may be one of the user's own. */
bool policy_may_be_own(const struct policy_place *at, const char *name);

/* policy_is_profile - a shipped text that is a whole profile (it names a filter), not a list. */
bool policy_is_profile(const struct embedded_text *text);

/* policy_find_text - a shipped text by name; the files of policy/ with a dot are no texts. */
const struct embedded_text *policy_find_text(const struct policy_resolver *r, const char *name);

/* --- words and templates ---------------------------------------------------------------------- */

/* Bytes that can be special in some argument: quoted ones stand behind a backslash in a word. */
#define WORD_SPECIAL "\\$~*?[:"

/*
 * policy_read_word - the next word of [*at, end): bytes that quotes made literal stand behind a backslash.
 * @out: holds twice the line. 1: a word, 0: none is left; -errno with the error.
 */
MUST_CHECK int policy_read_word(
	const struct policy_place *place, const char **at, const char *end, char *out);

/* word_plain - the word without its backslashes: itself or in work memory 1, or NULL when there is none. */
const char *word_plain(struct policy *p, const char *word);

/*
 * word_from_argument - a word from an argument of the command line, where a backslash means
 * something only in front of a byte of @special (the first '~' included). NULL: no memory.
 */
const char *word_from_argument(struct policy *p, const char *text, const char *special);

/*
 * word_split - put a NUL in the place of the first ':' that stands alone. Returns what is behind
 * it, or NULL.
 */
char *word_split(char *word);

/* template_path - word to template, for a path. @glob: may be a pattern; *ret_glob tells. */
MUST_CHECK int template_path(const struct policy_place *at, const char *word, bool glob,
	bool *ret_glob, const char **ret_template);

/* template_value - word to template, for a value of env. */
MUST_CHECK int template_value(
	const struct policy_place *at, const char *word, const char **ret_template);

/*
 * policy_hide_elsewhere - add each `hide ~/X` and `protect ~/X` once more for the account's home,
 * and each below ~/.config for $XDG_CONFIG_HOME (and so on), where these are other places. It comes
 * before the names are put in. 0 or -ENOMEM.
 * See: https://specifications.freedesktop.org/basedir-spec/latest/
 */
MUST_CHECK int policy_hide_elsewhere(struct policy *p, const struct policy_names *names);

/*
 * template_expand - template to plain text in the arena.
 * @path: clean the result up as a path; @glob: keep it a pattern, and quote what names stand for.
 * *ret_missing: the name that is not available (then -ENOENT and no error is set). -ENOMEM: full.
 * Returns the length of the plain text.
 */
MUST_CHECK int template_expand(struct policy *p, const char *template,
	const struct policy_names *names, bool path, bool glob, const char **ret_plain,
	const char **ret_missing);

/*
 * policy_value.c - one value of one setting, checked and made into a line.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "plan/embedded.h"
#include "plan/policy_line.h"

static int fail_word(
	const struct policy_place *at, const char *what, const char *word, const char *nearest)
{
	int r = policy_fail(at, "unknown %s '%.60s'", what, word);

	if (nearest)
		error_hint(at->e, "did you mean '%s'?", nearest);
	return r;
}

/* Fail as fail_word() does; if no name is near, the hint lists all of them. */
int policy_fail_one_of(const struct policy_place *at, const char *what, const char *word,
	const char *const *names, size_t count)
{
	char list[256];
	int r = fail_word(at, what, word, text_nearest(word, names, count));

	text_words(names, count, list, sizeof(list));
	if (list[0])
		error_hint(at->e, "%s", list);
	return r;
}

static size_t count_words(const char *const *words)
{
	size_t count = 0;

	while (words[count])
		count++;
	return count;
}

/* One of the words of the setting; number is its index. */
static int read_enum(const struct policy_place *at, const struct setting *s, const char *word,
	struct policy_line *l)
{
	size_t count = count_words(s->words);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(s->words[i], word)) {
			l->text = s->words[i];
			l->number = i;
			return 0;
		}
	const char *nearest = text_nearest(word, s->words, count);
	if (s->kind == KIND_WALL)
		return policy_fail_one_of(at, "wall", word, s->words, count);
	int r = fail_word(at, "word", word, NULL);
	if (nearest)
		error_hint(at->e, "did you mean '%s'? one of %s", nearest, s->placeholder);
	else
		error_hint(at->e, "one of %s", s->placeholder);
	return r;
}

int policy_keep_text(const struct policy_place *at, const char *text, struct policy_line *l)
{
	l->text = arena_copy(at->p->arena, text, strlen(text));
	return l->text ? 0 : policy_full(at->e);
}

/* A '-' in front makes it optional. */
static const char *read_optional(const char *word, struct policy_line *l)
{
	l->optional = word[0] == '-';
	return word + l->optional;
}

static int read_path_rule(const struct policy_place *at, const struct setting *s,
	const char *word, struct policy_line *l)
{
	static const unsigned char kinds[] = {
		[SETTING_READ] = PATH_READ,
		[SETTING_WRITE] = PATH_WRITE,
		[SETTING_HIDE] = PATH_HIDE,
		[SETTING_PROTECT] = PATH_PROTECT,
		[SETTING_UNIX_SOCKET] = PATH_WRITE,
	};

	l->kind = kinds[s->id];
	if (s->id == SETTING_HIDE || s->id == SETTING_PROTECT)
		l->optional = true;
	else
		word = read_optional(word, l);
	if (s->id == SETTING_UNIX_SOCKET) {
		int r = policy_check_daemon(at, &word);

		if (r < 0)
			return r;
	}
	return template_path(at, word, s->kind == KIND_GLOB_RULE, &l->glob, &l->text);
}

static int read_bind(const struct policy_place *at, char *word, struct policy_line *l)
{
	bool dash = word[0] == '-';
	char *source = word + dash;
	char *dest = word_split(source);
	char *mode = dest ? word_split(dest) : NULL;

	l->optional = dash;
	l->kind = PATH_BIND_RO;
	if (!dest)
		return policy_fail(at, "'%.60s' has no destination: SRC:DEST[:ro|rw]", word);
	if (mode && !strcmp(mode, "rw")) {
		l->kind = PATH_BIND_RW;
	} else if (mode && strcmp(mode, "ro") != 0) {
		error_hint(at->e, "a colon that belongs to a path is written \\:");
		return policy_fail(at, "'%.60s' is neither ro nor rw", mode);
	}
	int r = template_path(at, source, false, NULL, &l->text);
	if (r < 0)
		return r;
	return template_path(at, dest, false, NULL, &l->dest);
}

/* Read the path @word. A relative one starts from @base, a name of policies such as $SCRATCH. */
static int read_below(const struct policy_place *at, const char *base, const char *word,
	bool glob, const char **ret)
{
	bool is_glob;

	if (word[0] && !strchr("/$~", word[0])) {
		word = arena_join(at->p->arena, base, '/', word);
		if (!word)
			return policy_full(at->e);
	}
	return template_path(at, word, glob, &is_glob, ret);
}

static int read_promote(const struct policy_place *at, char *word, struct policy_line *l)
{
	char *dir = word_split(word);

	if (!dir || !*dir)
		return policy_fail(at, "'%.60s' has no directory to go to: GLOB:DIR", word);
	if (word_split(dir)) {
		error_hint(at->e, "a colon that belongs to a path is written \\:");
		return policy_fail(at, "more than one colon: GLOB:DIR");
	}
	l->glob = true; /* in the form of a pattern, also where it has no wild card */
	int r = read_below(at, "$SCRATCH", word, true, &l->text);
	return r < 0 ? r : read_below(at, "$WORKSPACE", dir, false, &l->dest);
}

static int read_tmpfs(const struct policy_place *at, char *word, struct policy_line *l)
{
	const char *size = word_split(word);

	l->kind = PATH_TMPFS;
	if (size) {
		int r = policy_line_size(at, size, &l->number);

		if (r < 0)
			return r;
	}
	return template_path(at, word, false, NULL, &l->dest);
}

static int read_device(const struct policy_place *at, const char *word, struct policy_line *l)
{
	l->kind = PATH_DEV;
	word = read_optional(word, l);
	if (strncmp(word, "/dev/", 5) != 0 || strstr(word, "/.."))
		return policy_fail(at, "'%.60s' is not a node below /dev", word);
	return template_path(at, word, false, NULL, &l->text);
}

/* @length bytes of a variable's name; '*' only where @glob. */
static bool is_env_name(const char *name, size_t length, bool glob)
{
	for (size_t i = 0; i < length; i++) {
		char c = name[i];
		bool digit = (c >= '0' && c <= '9') || c == '.' || c == '-';
		bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
			(glob && c == '*');

		if (!letter && (!digit || i == 0))
			return false;
	}
	return length > 0;
}

bool policy_own_variable(const char *name, size_t length)
{
	static const char *const own[] = { "CARREL_SESSION", "CARREL_WORKSPACE",
		"CARREL_SCRATCH", "CARREL_TOOL_RESULTS", "PWD" };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strlen(own[i]) == length && !memcmp(name, own[i], length))
			return true;
	return false;
}

static int fail_env_name(const struct policy_place *at, const char *word)
{
	return policy_fail(at, "'%.60s' is not the name of a variable", word);
}

/*
 * Refuse a line about what carrel sets itself: it could have no effect. A pattern is about other
 * variables.
 */
static int check_env_free(const struct policy_place *at, const char *name)
{
	bool scratch = !strcmp(at->setting, "scratch-env");

	if (strchr(name, '*'))
		return 0;
	if (scratch && !strcmp(name, "PATH")) {
		error_hint(at->e, "no command would be found");
		return policy_fail(at, "'PATH' cannot name the scratch");
	}
	if (!strcmp(name, "PWD"))
		error_hint(at->e, "'cwd' says where the command starts");
	else if (!strncmp(name, "CARREL_", 7))
		error_hint(at->e,
			scratch ? "CARREL_SCRATCH names the scratch in any case"
				: "a name of your own does not begin with CARREL_");
	else
		return 0;
	return policy_fail(at, "'%.60s' is carrel's own to set", name);
}

static int read_env(const struct policy_place *at, const char *word, struct policy_line *l)
{
	size_t length = strcspn(word, "=");

	if (!is_env_name(word, length, !word[length]))
		return fail_env_name(at, word);
	l->text = arena_copy(at->p->arena, word, length);
	if (!l->text)
		return policy_full(at->e);
	int r = check_env_free(at, l->text);
	if (r < 0)
		return r;
	return word[length] ? template_value(at, word + length + 1, &l->dest) : 0;
}

static int read_env_name(const struct policy_place *at, const struct setting *s,
	const char *word, struct policy_line *l)
{
	if (!is_env_name(word, strlen(word), s->kind == KIND_ENV_NAME))
		return fail_env_name(at, word);
	int r = check_env_free(at, word);
	return r < 0 ? r : policy_keep_text(at, word, l);
}

int policy_read_value(const struct setting *s, const char *word, uint64_t *ret, struct error *e)
{
	const struct policy_place at = policy_option_place(s->name, e);
	struct policy_line l = { 0 };
	int r = s->kind == KIND_ENUM ? read_enum(&at, s, word, &l)
				     : policy_line_number(&at, s, word, &l.number);

	if (r >= 0)
		*ret = l.number;
	return r;
}

int policy_check_variable(const char *name, const char *word, struct error *e)
{
	const struct policy_place at = policy_option_place(name, e);
	size_t length = strcspn(word, "=");
	char variable[64];

	if (!is_env_name(word, length, false))
		return fail_env_name(&at, word);
	/* 63 bytes are enough: carrel's own names are short, or known by how they begin. */
	(void)snprintf(
		variable, sizeof(variable), "%.*s", (int)(length < 63 ? length : 63), word);
	return check_env_free(&at, variable);
}

static bool is_word(const char *word)
{
	size_t length = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-_");

	return length > 0 && length <= 63 && !word[length];
}

static int read_filter(const struct policy_place *at, const char *word, struct policy_line *l)
{
	const struct policy_resolver *r = at->r;
	const char *names[64];
	size_t count = 0;

	if (!is_word(word))
		return policy_fail(at, "'%.60s' is not the name of a filter", word);
	if (!r->filters)
		return policy_keep_text(at, word, l);
	for (size_t i = 0; i < r->filter_count; i++) {
		if (!strcmp(r->filters[i].name, EMBEDDED_OWN_FILTER) ||
			!strcmp(r->filters[i].name, EMBEDDED_SETTLED_FILTER) ||
			!strcmp(r->filters[i].name, EMBEDDED_COVERER_FILTER) ||
			!strcmp(r->filters[i].name, EMBEDDED_OBSERVER_FILTER) ||
			!strcmp(r->filters[i].name, EMBEDDED_READER_FILTER) ||
			!strcmp(r->filters[i].name, EMBEDDED_STRICT_NET_FILTER) ||
			!strcmp(r->filters[i].name, EMBEDDED_EGRESS_FILTER))
			continue;
		if (!strcmp(r->filters[i].name, word))
			return policy_keep_text(at, word, l);
		/* One for each architecture; they stand side by side. */
		if (count < 64 && (!count || strcmp(names[count - 1], r->filters[i].name) != 0))
			names[count++] = r->filters[i].name;
	}
	return policy_fail_one_of(at, "filter", word, names, count);
}

/* allow|errno NAME|GROUP [if EXPR]; the words are one space apart here. */
static int read_syscall(const struct policy_place *at, const char *word, struct policy_line *l)
{
	size_t action = strcspn(word, " ");
	const char *name = word + action + (word[action] == ' ');
	size_t length = strcspn(name, " ");

	if (strlen(word) > POLICY_SYSCALL_MAX)
		return policy_fail(at, "more than %d bytes", POLICY_SYSCALL_MAX);
	if ((action != 5 || strncmp(word, "allow", 5) != 0) &&
		(action != 5 || strncmp(word, "errno", 5) != 0)) {
		static const char *const actions[] = { "allow", "errno" };
		char first[64];

		(void)snprintf(
			first, sizeof(first), "%.*s", (int)(action < 60 ? action : 60), word);
		return policy_fail_one_of(at, "action", first, actions, 2);
	}
	if (!*name)
		return policy_fail(at, "'%s' needs %s", at->setting,
			settings_table[SETTING_SYSCALL].placeholder);
	const char *bare = name + (*name == '@');
	size_t bare_length = length - (size_t)(bare - name);
	if (bare_length == 0 || bare_length > 63 ||
		strspn(bare, "abcdefghijklmnopqrstuvwxyz0123456789_-") != bare_length)
		return policy_fail(at, "'%.60s' names no system call or group", name);
	if (name[length] && (strncmp(name + length, " if ", 4) != 0 || !name[length + 4]))
		return policy_fail(
			at, "'%.60s': only 'if EXPR' can follow the name", name + length + 1);
	return policy_keep_text(at, word, l);
}

static int read_setting_name(
	const struct policy_place *at, const char *word, struct policy_line *l)
{
	const struct setting *s = settings_find(word, strlen(word));

	if (at->source.layer != LAYER_SYSTEM) {
		error_hint(at->e, "write it into /etc/carrel/policy");
		return policy_fail(at, "only the system policy can have 'lock'");
	}
	if (!s)
		return fail_word(at, "setting", word, settings_nearest(word));
	if (s->lock == LOCK_NEVER)
		return policy_fail(at, "'%s' cannot be locked", s->name);
	l->text = s->name;
	l->number = s->id;
	return 0;
}

static int read_report(const struct policy_place *at, const char *word, struct policy_line *l)
{
	uint64_t fd;

	if (strncmp(word, "fd:", 3) != 0)
		return template_path(at, word, false, NULL, &l->text);
	if (strcmp(word, "fd:0") != 0 && (text_parse_count(word + 3, &fd) < 0 || fd > INT_MAX))
		return policy_fail(at, "'%.60s' is not a descriptor: fd:N", word);
	return policy_keep_text(at, word, l);
}

/* include_preset() finds out whether there is one of that name. */
static int read_preset(const struct policy_place *at, const char *word, struct policy_line *l)
{
	const bool cache = at->setting[0] == 'c';

	if (is_word(word))
		return policy_keep_text(at, word, l);
	int r = policy_fail(
		at, "'%.60s' is not the name of a %s", word, cache ? "cache" : "preset");
	if (strchr(word, ',') && at->source.layer == LAYER_COMMAND)
		error_hint(at->e, "one name each: --%s A --%s B", at->setting, at->setting);
	return r;
}

/* Kinds whose word contains no variables and has no parts. */
static int read_plain(const struct policy_place *at, const struct setting *s, const char *word,
	struct policy_line *l)
{
	switch (s->kind) {
	case KIND_ENUM:
	case KIND_WALL:
		return read_enum(at, s, word, l);
	case KIND_ENV_NAME:
	case KIND_SCRATCH_ENV:
		return read_env_name(at, s, word, l);
	case KIND_FILTER:
		return read_filter(at, word, l);
	case KIND_SYSCALL:
		return read_syscall(at, word, l);
	case KIND_SETTING:
		return read_setting_name(at, word, l);
	case KIND_PROFILE:
		return policy_read_profile(at, word, l);
	case KIND_INCLUDE:
		return policy_read_include(at, word);
	case KIND_PRESET:
		return read_preset(at, word, l);
	case KIND_HOST:
		return policy_read_host(at, s, word, l);
	case KIND_PUBLISH:
		return policy_read_publish(at, word, l);
	case KIND_RESOLVER:
		return policy_read_resolver(at, word, l);
	case KIND_PROXY:
		return policy_read_proxy(at, word, l);
	case KIND_PASS_FD:
		return pass_read_line(at, word, l);
	default:
		return policy_line_number(at, s, word, &l->number);
	}
}

/* Hide a file that the session must not see, in case a rule would show it. */
static int keep_hidden(struct policy_place *at, const char *path)
{
	struct policy_line hide = {
		.id = SETTING_HIDE, .kind = PATH_HIDE, .optional = true, .text = path
	};

	return policy_keep_line(at, &hide);
}

int policy_add_value(struct policy_place *at, const struct setting *s, const char *word)
{
	struct policy_line l = { .id = s->id };
	char *own = NULL;
	int r;

	switch (s->kind) {
	case KIND_PATH_EARLY:
		/* `git` is a word, not a path: the host side finds the work tree. */
		r = s->id == SETTING_WORKSPACE && !strcmp(word, WORKSPACE_GIT)
			? policy_keep_text(at, word, &l)
			: template_path(at, word, false, NULL, &l.text);
		break;
	case KIND_PATH_LATE:
	case KIND_POLICY_FILE:
	case KIND_DIRS:
		r = template_path(at, word, false, NULL, &l.text);
		break;
	case KIND_PATH_RULE:
	case KIND_GLOB_RULE:
		r = read_path_rule(at, s, word, &l);
		break;
	case KIND_BIND:
	case KIND_TMPFS:
	case KIND_PROMOTE:
		own = arena_copy(at->p->arena, word, strlen(word));
		if (!own)
			return policy_full(at->e);
		r = s->kind == KIND_BIND        ? read_bind(at, own, &l)
			: s->kind == KIND_TMPFS ? read_tmpfs(at, own, &l)
						: read_promote(at, own, &l);
		break;
	case KIND_DEVICE:
		r = read_device(at, word, &l);
		break;
	case KIND_ENV:
		r = read_env(at, word, &l);
		break;
	case KIND_REPORT:
		r = read_report(at, word, &l);
		break;
	default:
		word = word_plain(at->p, word);
		if (!word)
			return policy_full(at->e);
		r = read_plain(at, s, word, &l);
		break;
	}
	if (r >= 0)
		r = policy_keep_line(at, &l);
	return r < 0 || s->id != SETTING_EGRESS_PROXY_LOGIN ? r : keep_hidden(at, l.text);
}

/*
 * policy_template.c - words, templates, plain texts: see policy_line.h for the three forms.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "plan/policy_line.h"

struct name_member {
	const char *name;
	size_t length;
	size_t member;
};

#define NAME(name_, member_) \
	{ \
		.name = (name_), .length = sizeof(name_) - 1, \
		.member = offsetof(struct policy_names, member_) \
	}

static const struct name_member known_names[] = {
	NAME("HOME", home),
	NAME("WORKSPACE", workspace),
	NAME("SCRATCH", scratch),
	NAME("XDG_CONFIG_HOME", xdg_config_home),
	NAME("XDG_CACHE_HOME", xdg_cache_home),
	NAME("XDG_DATA_HOME", xdg_data_home),
	NAME("XDG_STATE_HOME", xdg_state_home),
	NAME("XDG_RUNTIME_DIR", xdg_runtime_dir),
	NAME("CACHES", caches),
	NAME("SSH_AUTH_SOCK", ssh_auth_sock),
	NAME("XAUTHORITY", xauthority),
};

#define KNOWN_COUNT (sizeof(known_names) / sizeof(known_names[0]))
#define KNOWN_TEXT \
	"$HOME $WORKSPACE $SCRATCH $XDG_CONFIG_HOME $XDG_CACHE_HOME $XDG_DATA_HOME " \
	"$XDG_STATE_HOME $XDG_RUNTIME_DIR $CACHES $SSH_AUTH_SOCK $XAUTHORITY"

/* A text that is being made. A byte is left for the NUL at its end. */
struct out {
	char *text;
	size_t used;
	size_t size;
	bool full; /* something had no room any more */
};

static void put_text(struct out *o, const char *text, size_t length)
{
	if (length >= o->size - o->used) {
		o->full = true;
		return;
	}
	memcpy(o->text + o->used, text, length);
	o->used += length;
}

static void put_char(struct out *o, char c)
{
	if (o->size - o->used > 1)
		o->text[o->used++] = c;
	else
		o->full = true;
}

/* The leading bytes of @word that stand for themselves and need no backslash. */
static size_t quiet_bytes(const char *word, bool glob)
{
	static const unsigned char special[256] = {
		['\0'] = 1, ['$'] = 1, ['\\'] = 1, ['*'] = 2, ['?'] = 2, ['['] = 2
	};
	size_t n = 0;

	while (!special[(unsigned char)word[n]] ||
		(special[(unsigned char)word[n]] == 2 && !glob))
		n++;
	return n;
}

static void put_literal(struct out *o, char c, bool glob)
{
	if (c == '$' || c == '\\' || (glob && (c == '*' || c == '?' || c == '[')))
		put_char(o, '\\');
	put_char(o, c);
}

static bool is_name_byte(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		c == '_';
}

static const struct name_member *find_name(const char *name, size_t length)
{
	for (size_t i = 0; i < KNOWN_COUNT; i++)
		if (known_names[i].length == length &&
			!memcmp(known_names[i].name, name, length))
			return &known_names[i];
	return NULL;
}

static bool is_odd(const char *at)
{
	return at[0] == '/' &&
		(!at[1] || at[1] == '/' || (at[1] == '.' && (at[2] == '/' || !at[2])));
}

/*
 * Remove "//", "/./", and a "/" or "/." at the end. ".." stays: only the kernel knows where it
 * leads.
 */
static size_t clean_path(char *path)
{
	char *to = path;

	/* Nearly always there is nothing to clean. */
	while (*to && !is_odd(to))
		to++;
	for (const char *from = to; *from;) {
		if (from[0] == '/' && (from[1] == '/' || (from[1] == '\0' && to != path))) {
			from++;
		} else if (from[0] == '/' && from[1] == '.' && (from[2] == '/' || !from[2])) {
			from += 2;
			if (!*from && to == path)
				*to++ = '/';
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
	return (size_t)(to - path);
}

const char *word_plain(struct policy *p, const char *word)
{
	if (!strchr(word, '\\'))
		return word;
	char *plain = policy_work(p, 1, strlen(word) + 1);
	size_t used = 0;

	if (!plain)
		return NULL;
	for (; *word; word++) {
		if (*word == '\\' && word[1])
			word++;
		plain[used++] = *word;
	}
	plain[used] = '\0';
	return plain;
}

const char *word_from_argument(struct policy *p, const char *text, const char *special)
{
	struct out o = { .size = 2 * strlen(text) + 1 };

	o.text = policy_work(p, 0, o.size);
	if (!o.text)
		return NULL;
	for (const char *at = text; *at; at++) {
		bool active = strchr(special, *at) && *at != '\\';
		bool escape = *at == '\\' && at[1] && strchr(special, at[1]) && at[1] != '\\' &&
			(at[1] != '~' || at == text);

		if (escape)
			put_char(&o, *at++);
		else if (!active && strchr(WORD_SPECIAL, *at))
			put_char(&o, '\\');
		put_char(&o, *at);
	}
	o.text[o.used] = '\0';
	return o.text;
}

char *word_split(char *word)
{
	for (char *at = word; *at; at++) {
		if (*at == '\\' && at[1]) {
			at++;
		} else if (*at == ':') {
			*at = '\0';
			return at + 1;
		}
	}
	return NULL;
}

/* The variable at *at (a '$' that stands alone), checked and copied; moves *at behind it. */
static int put_variable(const struct policy_place *at, const char **word, struct out *o)
{
	const char *name = *word + 1;
	bool braces = *name == '{';
	size_t length = 0;

	name += braces;
	while (is_name_byte(name[length]))
		length++;
	if (length == 0 || (braces && name[length] != '}')) {
		error_hint(at->e, "a dollar sign that means itself is written \\$");
		return policy_fail(at, "no name behind '$'");
	}
	if (!find_name(name, length)) {
		char wrong[48];
		size_t cut = length < sizeof(wrong) ? length : sizeof(wrong) - 1;

		memcpy(wrong, name, cut);
		wrong[cut] = '\0';
		int r = policy_fail(at, "unknown name $%s", wrong);
		error_hint(at->e, "known: " KNOWN_TEXT "; a literal one is written \\$");
		return r;
	}
	*word = name + length + braces;
	bool embrace = is_name_byte(**word);
	put_char(o, '$');
	if (embrace)
		put_char(o, '{');
	put_text(o, name, length);
	if (embrace)
		put_char(o, '}');
	return 0;
}

/* A '[' needs its ']' in the same component; "**" would be a walk. */
static int check_glob(const struct policy_place *at, const char *glob)
{
	if (glob[0] == '*' && glob[1] == '*')
		return policy_fail(
			at, "'**' is not understood: a glob matches within one name");
	if (glob[0] != '[')
		return 0;
	const char *end = glob + 1 + (glob[1] == '!' || glob[1] == '^');
	end += *end == ']';
	while (*end && *end != ']' && *end != '/')
		end += end[0] == '\\' && end[1] ? 2 : 1;
	if (*end != ']')
		return policy_fail(at, "'[' without ']'");
	return 0;
}

/* Copy the body of a word: check its variables, and quote literal bytes again. */
static int put_word(const struct policy_place *at, const char *word, bool glob, bool *ret_glob,
	struct out *o)
{
	int r;

	for (;;) {
		size_t run = quiet_bytes(word, glob);

		put_text(o, word, run);
		word += run;
		if (!*word)
			return 0;
		if (*word == '$') {
			r = put_variable(at, &word, o);
			if (r < 0)
				return r;
		} else if (*word == '\\' && word[1]) {
			put_literal(o, word[1], glob);
			word += 2;
		} else if (glob && (*word == '*' || *word == '?' || *word == '[')) {
			r = check_glob(at, word);
			if (r < 0)
				return r;
			*ret_glob = true;
			put_char(o, *word++);
		} else {
			put_literal(o, *word++, glob);
		}
	}
}

/* "~" and "~/x" in front become $HOME. Returns what is left of the word. */
static const char *put_tilde(const char *word, struct out *o)
{
	if (word[0] != '~' || (word[1] && word[1] != '/'))
		return word;
	put_text(o, "$HOME", 5);
	return word + 1;
}

/* Work memory 1 for the template of @word with @dir in front. */
static int start_out(
	const struct policy_place *at, const char *word, const char *dir, struct out *o)
{
	size_t size = 2 * (strlen(word) + (dir ? strlen(dir) : 0)) + 16;

	*o = (struct out){ .text = policy_work(at->p, 1, size), .size = size };
	return o->text ? 0 : policy_full(at->e);
}

static int keep_out(const struct policy_place *at, struct out *o, const char **ret)
{
	const char *copy = o->full ? NULL : arena_copy(at->p->arena, o->text, o->used);

	if (!copy)
		return policy_full(at->e);
	*ret = copy;
	return 0;
}

/* The directory that a relative path starts from, or an error that says why it cannot be relative. */
static int put_directory(const struct policy_place *at, bool glob, struct out *o)
{
	if (at->shipped)
		return policy_fail(at, "a relative path in a shipped text");
	if (!at->dir) {
		error_hint(at->e, "give the whole path, or one that starts with ~/ or $HOME");
		return policy_fail(at, "a relative path, and no directory that it starts from");
	}
	for (const char *c = at->dir; *c; c++)
		put_literal(o, *c, glob);
	put_char(o, '/');
	return 0;
}

int template_path(const struct policy_place *at, const char *word, bool glob, bool *ret_glob,
	const char **ret_template)
{
	struct out o;
	bool is_glob = false;

	if (!*word)
		return policy_fail(at, "an empty path");
	if (word[0] == '~' && word[1] && word[1] != '/') {
		error_hint(at->e, "a file of that name is written ./~NAME");
		return policy_fail(at, "only ~ and ~/ are understood, not ~NAME");
	}
	int r = start_out(at, word, at->dir, &o);
	if (r < 0)
		return r;
	if (word[0] != '/' && word[0] != '~' && word[0] != '$') {
		r = put_directory(at, glob, &o);
		if (r < 0)
			return r;
	}
	r = put_word(at, put_tilde(word, &o), glob, &is_glob, &o);
	if (r < 0)
		return r;
	o.text[o.used] = '\0';
	o.used = clean_path(o.text);
	r = keep_out(at, &o, ret_template);
	if (r == 0 && ret_glob)
		*ret_glob = is_glob;
	return r;
}

int template_value(const struct policy_place *at, const char *word, const char **ret_template)
{
	struct out o;
	int r = start_out(at, word, NULL, &o);

	if (r < 0)
		return r;
	r = put_word(at, put_tilde(word, &o), false, NULL, &o);
	return r < 0 ? r : keep_out(at, &o, ret_template);
}

/* The name behind a '$' of a template, and what it stands for. Moves *at behind it. */
static const struct name_member *read_variable(const char **at)
{
	const char *name = *at + 1;
	bool braces = *name == '{';
	size_t length = 0;

	name += braces;
	while (is_name_byte(name[length]))
		length++;
	*at = name + length + braces;
	return find_name(name, length);
}

static const char *name_value(const struct policy_names *names, const struct name_member *n)
{
	return *(const char *const *)((const char *)names + n->member);
}

/* Bytes up to the next '$' or backslash. */
static size_t plain_run(const char *text)
{
	size_t length = 0;

	while (text[length] && text[length] != '$' && text[length] != '\\')
		length++;
	return length;
}

/* In a pattern every byte that could be special and is not stands behind a backslash. */
static void put_plain(struct out *o, char c, bool glob)
{
	if (glob && (c == '*' || c == '?' || c == '[' || c == '\\'))
		put_char(o, '\\');
	put_char(o, c);
}

/* The plain text of @template in @o. 0, -EINVAL (no such name) or -ENOENT (*ret_missing). */
static int put_expanded(struct out *o, const char *template, const struct policy_names *names,
	bool glob, const char **ret_missing)
{
	while (*template && !o->full) {
		if (*template == '$') {
			const struct name_member *n = read_variable(&template);
			const char *value = n ? name_value(names, n) : NULL;

			if (!n)
				return -EINVAL;
			if (!value) {
				*ret_missing = n->name;
				return -ENOENT;
			}
			if (!glob)
				put_text(o, value, strlen(value));
			else
				for (; *value; value++)
					put_plain(o, *value, glob);
		} else if (*template == '\\' && template[1]) {
			put_plain(o, template[1], glob);
			template += 2;
		} else {
			size_t run = plain_run(template);

			put_text(o, template, run ? run : 1);
			template += run ? run : 1;
		}
	}
	return 0;
}

int template_expand(struct policy *p, const char *template, const struct policy_names *names,
	bool path, bool glob, const char **ret_plain, const char **ret_missing)
{
	struct out o = { 0 };

	o.text = arena_rest(p->arena, &o.size);
	int r = put_expanded(&o, template, names, glob, ret_missing);
	if (r < 0 || o.full) {
		(void)arena_keep(p->arena, 0, o.used);
		return r < 0 ? r : -ENOMEM;
	}
	size_t length = path ? clean_path(o.text) : o.used;
	*ret_plain = arena_keep(p->arena, length + 1, o.used + 1);
	return (int)length;
}

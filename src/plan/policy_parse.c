/*
 * policy_parse.c - policy texts, and what they include, read into lines.
 *
 * Runs in: the launcher and carrel-policy. PURE: included files come through the resolver.
 *
 * Includes are read with a stack of frames, not by recursion: an include opens a frame, the end of
 * a text closes it, and the depth is bounded.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "plan/embedded.h"
#include "plan/policy_line.h"

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

/*
 * Estimates: the bytes of a line of a long text, and the bytes of the arena that each byte of a
 * text takes.
 */
enum { BYTES_OF_LINE = 32, BYTES_FOR_BYTE = 6 };

/* One text that is being read. */
struct frame {
	const char *at, *end; /* what is left of it */
	const char *name;     /* for messages: a path or profile:NAME */
	const char *dir;      /* where relative paths start, or NULL */
	unsigned line;
	bool shipped;
	const struct setting *hosts; /* a set of hosts: every word is a value of this setting */
};

struct reader {
	struct policy *p;
	const struct policy_resolver *r;
	struct error *e;
	enum layer layer;
	struct frame frames[POLICY_DEPTH_MAX];
	size_t depth;
	const struct setting *last; /* of the line before; NULL: there is none */
};

/* --- includes --------------------------------------------------------------------------------- */

/* The directory of an absolute path, in the arena; NULL for what is none. */
static const char *directory_of(struct policy *p, const char *path)
{
	const char *slash = path[0] == '/' ? strrchr(path, '/') : NULL;

	if (!slash)
		return NULL;
	return arena_copy(p->arena, path, slash == path ? 1 : (size_t)(slash - path));
}

/* "a -> b -> a", for the hint of a cycle. */
static void hint_chain(struct reader *rd, size_t from, const char *name)
{
	char chain[320] = "";
	size_t used = 0;

	for (size_t i = from; i < rd->depth && used < sizeof(chain); i++)
		used += (size_t)snprintf(
			chain + used, sizeof(chain) - used, "%s -> ", rd->frames[i].name);
	if (used < sizeof(chain))
		(void)snprintf(chain + used, sizeof(chain) - used, "%s", name);
	error_hint(rd->e, "%s", chain);
}

static int push_frame(struct reader *rd, const struct policy_place *at, const struct frame *f)
{
	for (size_t i = 0; i < rd->depth; i++)
		if (!strcmp(rd->frames[i].name, f->name)) {
			hint_chain(rd, i, f->name);
			return policy_fail(at, "'%.60s' includes itself", f->name);
		}
	if (rd->depth == POLICY_DEPTH_MAX) {
		hint_chain(rd, 0, f->name);
		return policy_fail(
			at, "more than %d texts that include one another", POLICY_DEPTH_MAX);
	}
	rd->frames[rd->depth++] = *f;
	return 0;
}

static int check_text(const struct policy_place *at, const char *text, size_t size)
{
	if (size > POLICY_SIZE_MAX)
		return policy_fail(at, "longer than 1 MiB (%zu bytes)", size);
	const char *nul = memchr(text, '\0', size);
	if (!nul)
		return 0;
	struct policy_place there = *at;
	there.source.line = 1;
	for (const char *p = text; p < nul; p++)
		there.source.line += *p == '\n';
	if (size > 1 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2)))
		error_hint(at->e, "this looks like UTF-16: save the file as UTF-8");
	return policy_fail(&there, "a NUL byte");
}

/* Opens the text @file, named as @name in messages. */
static int open_text(struct reader *rd, const struct policy_place *at, const char *name,
	const char *text, size_t size, bool shipped)
{
	struct policy_place there = *at;

	there.source.file = name;
	there.source.line = 0;
	int r = check_text(&there, text, size);
	if (r < 0)
		return r;
	arena_expect(at->p->local, BYTES_FOR_BYTE * size);
	if (policy_reserve_lines(at->p, size / BYTES_OF_LINE) < 0)
		return policy_full(at->e);
	struct frame f = { .at = text, .end = text + size, .name = name, .shipped = shipped };
	if (!shipped)
		f.dir = directory_of(rd->p, name);
	return push_frame(rd, at, &f);
}

/* The shipped text that @word names: *@ret, or NULL. */
static int find_shipped(struct reader *rd, const char *word, const struct embedded_text **ret)
{
	const char *name = word_plain(rd->p, word);

	if (!name)
		return policy_full(rd->e);
	*ret = policy_find_text(rd->r, name);
	return 0;
}

static int open_shipped(struct reader *rd, struct policy_place *at,
	const struct embedded_text *text, const char *kind)
{
	const char *shown = arena_format(rd->p->arena, "%s:%s", kind, text->name);

	return shown ? open_text(rd, at, shown, text->text, text->size, true)
		     : policy_full(rd->e);
}

/*
 * profile NAME. In a shipped text it is read here. A profile that a person names is only noted:
 * policy_finish() takes the one of the strongest layer and puts it below everything else.
 */
static int choose_profile(struct reader *rd, struct policy_place *at, const char *word)
{
	const struct embedded_text *text = NULL;
	int r = find_shipped(rd, word, &text);

	if (r < 0)
		return r;
	if (at->shipped && text && policy_is_profile(text))
		return open_shipped(rd, at, text, "profile");
	return policy_add_value(at, &settings_table[SETTING_PROFILE], word);
}

/* include LIST: its lines are read here, on the layer of the line. */
static int include_list(struct reader *rd, struct policy_place *at, const char *word)
{
	const struct embedded_text *text = NULL;
	int r = find_shipped(rd, word, &text);

	if (r < 0)
		return r;
	if (text && !policy_is_profile(text))
		return open_shipped(rd, at, text, "list");
	return policy_add_value(at, &settings_table[SETTING_INCLUDE], word);
}

/* policy FILE. Its path may use only names that are known before the session exists. */
static int include_file(struct reader *rd, struct policy_place *at, const char *word)
{
	const char *path, *missing;
	struct policy_file file = { 0 };

	if (at->shipped || !rd->r->load)
		return policy_fail(at, "no file can be included here");
	/* In a file, "-" is a name like others. */
	bool is_stdin = at->source.file && !strcmp(at->source.file, POLICY_COMMAND_LINE) &&
		!strcmp(word, POLICY_STDIN);
	struct policy_line own = { .id = SETTING_POLICY, .text = POLICY_STDIN };
	int r = is_stdin ? policy_keep_line(at, &own)
			 : policy_add_value(at, &settings_table[SETTING_POLICY], word);
	if (r < 0)
		return r;
	rd->p->from_stdin = rd->p->from_stdin || is_stdin;
	/* what lies in the workspace or the scratch is never policy: these names are not known here */
	struct policy_names known = rd->r->names ? *rd->r->names : (struct policy_names){ 0 };
	known.workspace = known.scratch = NULL;
	path = POLICY_STDIN;
	r = is_stdin ? 0
		     : template_expand(rd->p, rd->p->lines[rd->p->line_count - 1].text, &known,
			       true, false, &path, &missing);
	if (r == -ENOENT)
		return policy_fail(at, "$%s is not known here", missing);
	if (r < 0)
		return policy_full(rd->e);
	r = rd->r->load(rd->r->context, path, &file, rd->e);
	if (r < 0) {
		char on[1024];

		policy_format_source(&at->source, "policy", on, sizeof(on));
		error_hint(rd->e, "named at %s", on);
		return error_set(
			rd->e, ERROR_POLICY, "policy", -r, path, "cannot read the policy");
	}
	const char *shown = arena_copy(rd->p->arena, file.path, strlen(file.path));
	if (!shown)
		return policy_full(rd->e);
	return open_text(rd, at, shown, file.text, file.size, false);
}

/* with NAME, cache NAME: lines on the layer of the line that names them. */
static int include_preset(
	struct reader *rd, struct policy_place *at, const struct setting *s, const char *word)
{
	struct policy_preset preset;
	int r = policy_find_preset(at, s, word, &preset);

	return r < 0
		? r
		: open_text(rd, at, preset.shown, preset.text, preset.size, preset.shipped);
}

/* Load the user's own set @name. 1; 0: the user has none; or -errno. */
static int load_set(struct reader *rd, const struct policy_place *at, const char *name,
	struct policy_file *ret)
{
	if (!rd->r->load_set || !policy_may_be_own(at, name))
		return 0;
	return rd->r->load_set(rd->r->context, name, ret, rd->e);
}

/* allow @NAME: the hosts of the set, each as a line of this setting. */
static int include_set(
	struct reader *rd, struct policy_place *at, const struct setting *s, const char *word)
{
	const struct embedded_text *text;
	struct policy_file file = { 0 };
	const char *shown = NULL;
	const char *name = word_plain(rd->p, word);

	name = name ? arena_copy(rd->p->arena, name + 1, strlen(name + 1)) : NULL;
	if (!name)
		return policy_full(rd->e);
	text = policy_find_set(rd->r, name);
	if (text) {
		shown = arena_format(rd->p->arena, "set:%s", name);
		file = (struct policy_file){ .text = text->text, .size = text->size };
	} else {
		int r = load_set(rd, at, name, &file);

		if (r <= 0)
			return r < 0 ? r : policy_fail_set(at, name);
		shown = arena_copy(rd->p->arena, file.path, strlen(file.path));
	}
	if (!shown)
		return policy_full(rd->e);
	int r = open_text(rd, at, shown, file.text, file.size, text != NULL);
	if (r >= 0)
		rd->frames[rd->depth - 1].hosts = s;
	return r;
}

static int add_word(
	struct reader *rd, struct policy_place *at, const struct setting *s, const char *word)
{
	switch (s->kind) {
	case KIND_PROFILE:
		return choose_profile(rd, at, word);
	case KIND_INCLUDE:
		return include_list(rd, at, word);
	case KIND_POLICY_FILE:
		return include_file(rd, at, word);
	case KIND_PRESET:
		return include_preset(rd, at, s, word);
	case KIND_HOST:
		return policy_is_set_word(word) ? include_set(rd, at, s, word)
						: policy_add_value(at, s, word);
	default:
		return policy_add_value(at, s, word);
	}
}

/* --- lines ------------------------------------------------------------------------------------ */

/* The rest of a `syscall` line is one value: its words, one space apart. */
static int join_words(struct policy_place *at, const char **p, const char *end, char *word)
{
	size_t used = strlen(word);
	int r;

	for (;;) {
		r = policy_read_word(at, p, end, word + used + 1);
		if (r <= 0)
			return r;
		word[used] = ' ';
		used += 1 + strlen(word + used + 1);
	}
}

static int read_arguments(struct reader *rd, struct policy_place *at, const struct setting *s,
	const char *p, const char *end, char *word)
{
	int r = policy_read_word(at, &p, end, word);

	if (r < 0)
		return r;
	if (s->kind == KIND_FLAG) {
		const char *given = r ? word : NULL;

		if (r && (r = policy_read_word(at, &p, end, word + strlen(word) + 1)) != 0)
			return r < 0 ? r : policy_fail(at, "more than one word");
		return policy_add_flag_word(at, s, given);
	}
	if (r == 0)
		return policy_fail(at, "'%s' needs %s", s->name, s->placeholder);
	if (s->kind == KIND_SYSCALL) {
		r = join_words(at, &p, end, word);
		return r < 0 ? r : add_word(rd, at, s, word);
	}
	size_t depth = rd->depth;
	for (;;) {
		r = add_word(rd, at, s, word);
		if (r < 0)
			return r;
		r = policy_read_word(at, &p, end, word);
		if (r <= 0)
			return r;
		if (s->kind == KIND_HOST && rd->depth != depth) {
			error_hint(rd->e, "write a line for each set");
			return policy_fail(at, "'%.60s' follows a set of hosts", word);
		}
		if (s->merge == MERGE_LAST || s->kind == KIND_POLICY_FILE)
			return policy_fail(at, "'%s' takes one argument; '%.60s' is too much",
				s->name, word);
	}
}

static int read_line(
	struct reader *rd, const struct frame *f, const char *line, const char *end)
{
	struct policy_place at = {
		.p = rd->p,
		.r = rd->r,
		.source = { .layer = rd->layer, .line = f->line, .file = f->name },
		.dir = f->dir,
		.shipped = f->shipped,
		.e = rd->e,
	};

	if (end - line > POLICY_LINE_MAX)
		return policy_fail(&at, "a line of more than %d bytes", POLICY_LINE_MAX);
	if (f->line == 1 && end - line >= 3 && !memcmp(line, BYTE_ORDER_MARK, 3)) {
		error_hint(rd->e, "save the file as UTF-8 without it");
		return policy_fail(&at, "the file begins with a byte order mark");
	}
	char *word = policy_work(rd->p, 0, 4 * POLICY_LINE_MAX + 2);
	if (!word)
		return policy_full(rd->e);
	const char *begin = line;
	int r = policy_read_word(&at, &line, end, word);
	if (r <= 0)
		return r;
	if (f->hosts) {
		at.setting = f->hosts->name;
		return read_arguments(rd, &at, f->hosts, begin, end, word);
	}
	/* Lines of one setting stand together. */
	const struct setting *s = rd->last && !strcmp(rd->last->name, word)
		? rd->last
		: settings_find(word, strlen(word));
	if (!s)
		return policy_fail_setting(&at, word);
	rd->last = s;
	at.setting = s->name;
	return read_arguments(rd, &at, s, line, end, word);
}

/* Reads until every frame is closed. */
static int read_frames(struct reader *rd)
{
	while (rd->depth > 0) {
		struct frame *f = &rd->frames[rd->depth - 1];

		if (f->at == f->end) {
			rd->depth--;
			continue;
		}
		const char *line = f->at;
		const char *end = memchr(line, '\n', (size_t)(f->end - line));

		f->at = end ? end + 1 : f->end;
		f->line++;
		int r = read_line(rd, f, line, end ? end : f->end);
		if (r < 0)
			return r;
	}
	return 0;
}

int policy_add_text(struct policy *p, enum layer layer, const char *name, const char *text,
	size_t size, const struct policy_resolver *r, struct error *e)
{
	struct reader rd = { .p = p, .r = r, .e = e, .layer = layer };
	struct policy_place at = {
		.p = p,
		.r = r,
		.source = { .layer = layer, .file = name },
		.e = e,
	};
	/* A copy: the pointer tells this reading from another one of the same file. */
	const char *own = arena_copy(p->arena, name, strlen(name));

	if (!own)
		return policy_full(e);
	int result = open_text(&rd, &at, own, text, size, !strncmp(name, "profile:", 8));
	return result < 0 ? result : read_frames(&rd);
}

int policy_add_word(
	struct policy_place *at, const struct setting *s, enum layer layer, const char *word)
{
	struct reader rd = { .p = at->p, .r = at->r, .e = at->e, .layer = layer };
	int r = add_word(&rd, at, s, word);

	return r < 0 ? r : read_frames(&rd);
}

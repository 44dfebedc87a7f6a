/*
 * filter_parse.c - the text of a system-call filter -> rules. The language is in filter.h.
 *
 * Runs in: mkpolicy, carrel-policy, tests. PURE. Strict: a word that is not known, a value that
 * can never match, a statement that could be read in two ways is an error with its place.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>

#include "base/text.h"
#include "policy/filter_line.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))
#define INCLUDE_MAX 8 /* files inside each other */

/* --- rules ------------------------------------------------------------------------------------ */

static int add_rule(const struct line *l, const char *name, uint32_t action,
	const struct written_tests *written)
{
	struct filter *f = l->f;
	struct filter_test *tests = NULL;

	int x86_64 = filter_number(name, AUDIT_ARCH_X86_64);

	if (x86_64 == -EINVAL)
		return line_unknown(
			l, "unknown system call", name, filter_nearest_call(f->arena, name));
	if (written->count > 0) {
		tests = arena_array(f->arena, written->count, sizeof(*tests));
		if (!tests)
			return line_full(l);
	}
	for (size_t i = 0; i < written->count; i++) {
		int r = cond_apply(l, &written->tests[i], name, &tests[i]);
		if (r < 0)
			return r;
	}
	const char *copy = arena_copy(f->arena, name, strlen(name));
	struct filter_rule *rules =
		arena_push(f->arena, f->rules, f->rule_count, sizeof(*rules));
	if (!rules || !copy)
		return line_full(l);
	f->rules = rules;
	rules[f->rule_count++] =
		(struct filter_rule){ copy, x86_64, filter_number(name, AUDIT_ARCH_AARCH64),
			action, tests, written->count, l->file, l->number };
	return 0;
}

/* --- groups ----------------------------------------------------------------------------------- */

static struct filter_group *find_group(const struct filter *f, const char *name)
{
	for (size_t i = 0; i < f->group_count; i++)
		if (!strcmp(f->groups[i].name, name))
			return &f->groups[i];
	return NULL;
}

static const char *nearest_group(const struct filter *f, const char *name)
{
	const char **names = arena_array(f->arena, f->group_count + 1, sizeof(*names));

	if (!names)
		return NULL;
	for (size_t i = 0; i < f->group_count; i++)
		names[i] = f->groups[i].name;
	return text_nearest(name, names, f->group_count);
}

static int add_group_word(const struct line *l, struct filter_group *g, const char *word)
{
	struct filter *f = l->f;
	const char *copy = arena_copy(f->arena, word, strlen(word));
	const char **words = arena_push(f->arena, g->words, g->word_count, sizeof(*words));

	if (!words || !copy)
		return line_full(l);
	g->words = words;
	g->words[g->word_count++] = copy;
	return 0;
}

/*
 * One word of a group: a call, or another group, whose words are copied. So a group holds calls
 * only, and no cycle can be written.
 */
static int add_group_member(const struct line *l, const char *name, const char *word)
{
	struct filter_group *g = find_group(l->f, name);

	if (!g)
		return line_wrong(l, "unknown group", name);
	if (word[0] != '@') {
		if (filter_number(word, AUDIT_ARCH_X86_64) == -EINVAL)
			return line_unknown(l, "unknown system call", word,
				filter_nearest_call(l->f->arena, word));
		return add_group_word(l, g, word);
	}
	const struct filter_group *other = find_group(l->f, word);
	if (!other || other == g)
		return line_unknown(l, "unknown group", word, nearest_group(l->f, word));
	for (size_t i = 0; i < other->word_count; i++) {
		int r = add_group_word(l, g, other->words[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int new_group(const struct line *l, const char *name)
{
	struct filter *f = l->f;
	const char *copy = arena_copy(f->arena, name, strlen(name));
	struct filter_group *groups =
		arena_push(f->arena, f->groups, f->group_count, sizeof(*groups));

	if (!groups || !copy)
		return line_full(l);
	f->groups = groups;
	groups[f->group_count++] = (struct filter_group){ copy, NULL, 0 };
	return 0;
}

/* group @NAME = WORD..., group @NAME += WORD... */
static int parse_group(struct line *l)
{
	const char *name = line_peek(l);

	if (!name || name[0] != '@' || !name[1])
		return line_wrong(
			l, "a group's name begins with @", name ? name : "end of line");
	l->at++;
	bool exists = find_group(l->f, name) != NULL;
	if (line_accept(l, "+=")) {
		if (!exists)
			return line_unknown(
				l, "unknown group", name, nearest_group(l->f, name));
	} else {
		int r = line_expect(l, "=");
		if (r < 0)
			return r;
		if (exists)
			return line_wrong(l, "the group exists already", name);
		r = new_group(l, name);
		if (r < 0)
			return r;
	}
	if (l->at == l->count)
		return line_wrong(l, "the group is empty", name);
	for (; l->at < l->count; l->at++) {
		int r = add_group_member(l, name, line_peek(l));
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- statements ------------------------------------------------------------------------------- */

static const char *const statements[] = { "default", "include", "group", "allow", "errno",
	"enosys", "kill" };

/* An error's name is in capitals, a call's never is: so the error's name may be left out. */
static bool is_errno_name(const char *word)
{
	return word && word[0] == 'E' && word[1] >= 'A' && word[1] <= 'Z';
}

/* The action that @word, already taken from the line, begins. */
static int parse_action(struct line *l, const char *word, uint32_t *ret)
{
	if (!strcmp(word, "allow")) {
		*ret = SECCOMP_RET_ALLOW;
	} else if (!strcmp(word, "enosys")) {
		*ret = SECCOMP_RET_ERRNO | ENOSYS;
	} else if (!strcmp(word, "kill")) {
		*ret = SECCOMP_RET_KILL_PROCESS;
	} else if (!strcmp(word, "errno")) {
		int errnum = EPERM;

		if (is_errno_name(line_peek(l))) {
			const char *name = l->tokens[l->at++];

			errnum = filter_errno(name);
			if (errnum < 0)
				return line_wrong(l, "unknown error name", name);
		}
		*ret = SECCOMP_RET_ERRNO | (uint32_t)errnum;
	} else {
		return line_unknown(l, "unknown statement", word,
			text_nearest(word, statements, LENGTH(statements)));
	}
	return 0;
}

static int parse_default(struct line *l)
{
	const char *word = line_peek(l);
	struct filter *f = l->f;

	if (f->default_file)
		return line_wrong(l, "there is a default already, from", f->default_file);
	if (!word)
		return line_wrong(l, "an action is expected", "end of line");
	l->at++;
	int r = parse_action(l, word, &f->default_action);
	if (r < 0)
		return r;
	if (l->at < l->count)
		return line_wrong(l, "the end of the line is expected", line_peek(l));
	f->default_file = l->file;
	f->default_line = l->number;
	return 0;
}

static int add_word(const struct line *l, const char *word, uint32_t action,
	const struct written_tests *tests)
{
	if (word[0] != '@')
		return add_rule(l, word, action, tests);
	const struct filter_group *g = find_group(l->f, word);
	if (!g)
		return line_unknown(l, "unknown group", word, nearest_group(l->f, word));
	for (size_t i = 0; i < g->word_count; i++) {
		int r = add_rule(l, g->words[i], action, tests);
		if (r < 0)
			return r;
	}
	return 0;
}

static int parse_rule(struct line *l, const char *word)
{
	uint32_t action = 0;
	int r = parse_action(l, word, &action);

	if (r < 0)
		return r;
	size_t first = l->at;
	while (line_starts_word(line_peek(l)) && strcmp(line_peek(l), "if") != 0)
		l->at++;
	size_t end = l->at;
	if (first == end)
		return line_wrong(l, "a system call or a group is expected",
			line_peek(l) ? line_peek(l) : "end of line");
	struct written_tests *tests = arena_alloc(l->f->arena, sizeof(*tests));
	if (!tests)
		return line_full(l);
	r = cond_parse(l, tests);
	for (size_t i = first; r == 0 && i < end; i++)
		r = add_word(l, l->tokens[i], action, tests);
	return r;
}

/* --- files ------------------------------------------------------------------------------------ */

/* A file that is being read. */
struct frame {
	const struct embedded_text *text;
	size_t at;
	unsigned line;
};

struct reader {
	struct filter *f;
	const struct filter_texts *texts;
	struct frame frames[INCLUDE_MAX];
	size_t depth;
	struct error *e;
};

void filter_init(struct filter *f, struct arena *arena)
{
	*f = (struct filter){ .arena = arena };
}

static bool is_included(const struct filter *f, const char *name)
{
	for (size_t i = 0; i < f->included_count; i++)
		if (!strcmp(f->included[i], name))
			return true;
	return false;
}

static const struct embedded_text *find_text(const struct filter_texts *texts, const char *name)
{
	for (size_t i = 0; i < texts->count; i++)
		if (!strcmp(texts->texts[i].name, name))
			return &texts->texts[i];
	return NULL;
}

static int push_file(struct reader *r, const struct line *l, const char *name)
{
	struct filter *f = r->f;
	const struct embedded_text *text = find_text(r->texts, name);

	for (size_t i = 0; i < r->depth; i++)
		if (!strcmp(r->frames[i].text->name, name))
			return line_wrong(l, "the file includes itself", name);
	if (is_included(f, name))
		return 0;
	if (!text)
		return line_wrong(l, "there is no such file to include", name);
	if (strlen(text->text) != text->size)
		return line_wrong(l, "the file has a NUL byte", name);
	if (r->depth == INCLUDE_MAX)
		return line_wrong(l, "more than 8 files include each other", name);
	const char **included =
		arena_push(f->arena, f->included, f->included_count, sizeof(*included));
	if (!included)
		return line_full(l);
	f->included = included;
	f->included[f->included_count++] = text->name;
	r->frames[r->depth++] = (struct frame){ text, 0, 0 };
	return 0;
}

static int parse_include(struct reader *r, struct line *l)
{
	const char *name = line_peek(l);

	if (!line_starts_word(name) || l->count != 2)
		return line_wrong(l, "one file name is expected", name ? name : "end of line");
	return push_file(r, l, name);
}

static int parse_statement(struct reader *r, struct line *l)
{
	if (l->count == 0)
		return 0;
	const char *word = l->tokens[l->at++];
	if (!strcmp(word, "default"))
		return parse_default(l);
	if (!strcmp(word, "include"))
		return parse_include(r, l);
	if (!strcmp(word, "group"))
		return parse_group(l);
	return parse_rule(l, word);
}

/* Reads one line of the innermost file; leaves the file at its end. */
static int read_line(struct reader *r, struct line *l)
{
	struct frame *frame = &r->frames[r->depth - 1];
	const char *start = frame->text->text + frame->at;

	if (!*start) {
		r->depth--;
		return 0;
	}
	size_t size = strcspn(start, "\n");
	frame->at += size + (start[size] == '\n');
	frame->line++;
	l->f = r->f;
	l->e = r->e;
	l->file = frame->text->name;
	l->number = frame->line;
	l->count = l->at = 0;
	int result = line_cut(l, start, size);
	return result < 0 ? result : parse_statement(r, l);
}

/* A line has no fixed place on the stack: it is larger than a frame should be. */
static struct line *new_line(struct filter *f, const char *file, struct error *e)
{
	struct line *l = arena_alloc(f->arena, sizeof(*l));

	if (!l)
		return NULL;
	l->f = f;
	l->file = file;
	l->e = e;
	return l;
}

int filter_parse(
	struct filter *f, const struct filter_texts *texts, const char *name, struct error *e)
{
	struct reader r = { .f = f, .texts = texts, .e = e };
	struct line *l = new_line(f, name, e);

	if (!l)
		return error_set(e, ERROR_LIMIT, "policy", ERROR_OWN(ENOMEM), name,
			"out of memory: the file cannot be read");
	int result = push_file(&r, l, name);
	while (result == 0 && r.depth > 0)
		result = read_line(&r, l);
	if (result == 0 && !f->default_file) {
		l->number = 1;
		l->file = name;
		result = line_wrong(l, "the filter has no 'default' line", NULL);
	}
	return result;
}

int filter_parse_line(
	struct filter *f, const char *text, const char *file, unsigned line, struct error *e)
{
	struct line *l = new_line(f, file, e);

	if (!l)
		return error_set(e, ERROR_LIMIT, "policy", ERROR_OWN(ENOMEM), file,
			"out of memory: the file cannot be read");
	l->number = line;
	int r = line_cut(l, text, strlen(text));
	if (r < 0)
		return r;
	if (!line_accept(l, "allow") && !line_accept(l, "errno"))
		return line_wrong(l, "'allow' or 'errno' is expected",
			line_peek(l) ? line_peek(l) : "end of line");
	return parse_rule(l, l->tokens[0]);
}

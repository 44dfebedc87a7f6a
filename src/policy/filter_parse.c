/*
 * filter_parse.c - the text of a system-call filter -> rules. The language is in filter.h.
 *
 * Runs in: mkpolicy, carrel-policy, tests. PURE. Strict: a word that is not known, a value that
 * can never match, a statement that could be read in two ways is an error with its place.
 */
#include "policy/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))
#define LINE_MAX_BYTES 1024
#define TOKEN_MAX 256 /* in one line */
#define INCLUDE_MAX 8 /* files inside each other */
#define TEST_MAX 6    /* in one line */
#define VALUE_MAX 64  /* in one list */

/* One line, cut into tokens, and how far it has been read. */
struct line {
	struct filter *f;
	const char *file;
	unsigned number;
	char *tokens[TOKEN_MAX]; /* in text */
	size_t count, at;
	char text[2 * LINE_MAX_BYTES]; /* every token with a NUL of its own */
	struct error *e;
};

/* A test as it was written: its mask depends on the call it is applied to. */
struct written_test {
	unsigned arg;
	unsigned bits; /* 0: the call's own width, else 32 or 64 */
	bool masked;
	uint64_t mask;
	enum filter_op op;
	uint64_t values[VALUE_MAX];
	size_t value_count;
};

struct written_tests {
	struct written_test tests[TEST_MAX];
	size_t count;
};

static int wrong(const struct line *l, const char *what, const char *word)
{
	char on[512];

	(void)snprintf(on, sizeof(on), "%s:%u", l->file, l->number);
	if (word)
		return error_set(
			l->e, ERROR_POLICY, "policy", EINVAL, on, "%s: '%.60s'", what, word);
	return error_set(l->e, ERROR_POLICY, "policy", EINVAL, on, "%s", what);
}

static int unknown(
	const struct line *l, const char *what, const char *word, const char *nearest)
{
	int r = wrong(l, what, word);

	if (nearest)
		error_hint(l->e, "did you mean '%s'?", nearest);
	return r;
}

static int full(const struct line *l)
{
	return error_set(l->e, ERROR_LIMIT, "policy", ENOMEM, l->file,
		"the filter needs more memory than is set aside");
}

/* --- tokens ----------------------------------------------------------------------------------- */

static bool is_word_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		(c && strchr("_:@.-", c));
}

/* Length of the token at @s; 0 where none can begin there. */
static size_t token_length(const char *s)
{
	static const char *const pairs[] = { "==", "!=", "<=", ">=", "+=" };
	size_t n = 0;

	while (is_word_byte(s[n]))
		n++;
	if (n > 0)
		return n;
	for (size_t i = 0; i < LENGTH(pairs); i++)
		if (!strncmp(s, pairs[i], 2))
			return 2;
	return *s && strchr("<>&|{},()=", *s) ? 1 : 0;
}

static int cut_line(struct line *l, const char *text, size_t size)
{
	size_t used = 0;

	if (size > LINE_MAX_BYTES)
		return wrong(l, "the line is longer than 1024 bytes", NULL);
	for (size_t i = 0; i < size && text[i] != '#';) {
		if (text[i] == ' ' || text[i] == '\t') {
			i++;
			continue;
		}
		size_t n = token_length(text + i);
		if (n == 0 || i + n > size) {
			char bad[2] = { text[i], '\0' };
			return wrong(l, "a byte that has no meaning here", bad);
		}
		if (l->count == TOKEN_MAX)
			return wrong(l, "more than 256 words in one line", NULL);
		l->tokens[l->count++] = memcpy(l->text + used, text + i, n);
		used += n;
		l->text[used++] = '\0';
		i += n;
	}
	return 0;
}

static const char *peek(const struct line *l)
{
	return l->at < l->count ? l->tokens[l->at] : NULL;
}

static bool accept(struct line *l, const char *token)
{
	const char *next = peek(l);

	if (!next || strcmp(next, token) != 0)
		return false;
	l->at++;
	return true;
}

static int expect(struct line *l, const char *token)
{
	if (accept(l, token))
		return 0;
	char what[64];
	(void)snprintf(what, sizeof(what), "'%s' is expected", token);
	const char *found = peek(l);
	return wrong(l, what, found ? found : "end of line");
}

static bool starts_word(const char *token)
{
	return token && is_word_byte(token[0]);
}

/* --- tests ------------------------------------------------------------------------------------ */

static int parse_term(struct line *l, uint64_t *ret)
{
	const char *word = peek(l);
	char *end = NULL;

	if (!starts_word(word))
		return wrong(
			l, "a number or a constant is expected", word ? word : "end of line");
	l->at++;
	if (filter_constant(word, ret))
		return 0;
	if ((word[0] < '0' || word[0] > '9') && word[0] != '-')
		return unknown(l, "unknown constant", word, filter_nearest_constant(word));
	errno = 0;
	uint64_t value = strtoull(word, &end, 0);
	if (errno || end == word || *end)
		return wrong(l, "not a number of at most 64 bits", word);
	*ret = value;
	return 0;
}

static int parse_value(struct line *l, uint64_t *ret)
{
	uint64_t value = 0;

	do {
		uint64_t term = 0;
		int r = parse_term(l, &term);
		if (r < 0)
			return r;
		value |= term;
	} while (accept(l, "|"));
	*ret = value;
	return 0;
}

static int parse_operand(struct line *l, struct written_test *t)
{
	bool wrapped = true;

	if (accept(l, "low32"))
		t->bits = 32;
	else if (accept(l, "full"))
		t->bits = 64;
	else
		wrapped = false;
	if (wrapped) {
		int r = expect(l, "(");
		if (r < 0)
			return r;
	}
	const char *word = peek(l);
	if (!word || strncmp(word, "arg", 3) != 0 || word[3] < '0' || word[3] > '5' || word[4])
		return wrong(l, "arg0 to arg5, low32(argN) or full(argN) is expected",
			word ? word : "end of line");
	t->arg = (unsigned)(word[3] - '0');
	l->at++;
	return wrapped ? expect(l, ")") : 0;
}

static int parse_list(struct line *l, struct written_test *t)
{
	int r = expect(l, "{");

	if (r < 0)
		return r;
	do {
		if (t->value_count == VALUE_MAX)
			return wrong(l, "more than 64 values in one list", NULL);
		r = parse_value(l, &t->values[t->value_count++]);
		if (r < 0)
			return r;
	} while (accept(l, ","));
	return expect(l, "}");
}

static int parse_op(struct line *l, struct written_test *t)
{
	static const char *const ops[] = {
		[FILTER_IN] = "==",
		[FILTER_NE] = "!=",
		[FILTER_LT] = "<",
		[FILTER_LE] = "<=",
		[FILTER_GT] = ">",
		[FILTER_GE] = ">=",
	};
	if (accept(l, "in"))
		return parse_list(l, t);
	for (size_t i = 0; i < LENGTH(ops); i++) {
		if (!accept(l, ops[i]))
			continue;
		t->op = (enum filter_op)i;
		t->value_count = 1;
		return parse_value(l, &t->values[0]);
	}
	const char *found = peek(l);
	return wrong(l, "a comparison or 'in' is expected", found ? found : "end of line");
}

static int parse_test(struct line *l, struct written_test *t)
{
	int r = parse_operand(l, t);

	if (r < 0)
		return r;
	if (accept(l, "&")) {
		t->masked = true;
		r = parse_value(l, &t->mask);
		if (r < 0)
			return r;
		if (t->mask == 0)
			return wrong(l, "a mask of 0 tests nothing", NULL);
	}
	return parse_op(l, t);
}

static int parse_tests(struct line *l, struct written_tests *ret)
{
	if (l->at == l->count)
		return 0;
	int r = expect(l, "if");
	if (r < 0)
		return r;
	do {
		if (ret->count == TEST_MAX)
			return wrong(l, "more than 6 tests in one line", NULL);
		r = parse_test(l, &ret->tests[ret->count++]);
		if (r < 0)
			return r;
	} while (accept(l, "and"));
	if (l->at < l->count)
		return wrong(l, "'and' or the end of the line is expected", peek(l));
	return 0;
}

/* --- tests applied to a call ------------------------------------------------------------------ */

/* The bits of argument t->arg of @name that are compared, or 0 with an error. */
static uint64_t compared_bits(
	const struct line *l, const struct written_test *t, const char *name)
{
	unsigned bits = t->bits ? t->bits : filter_width(name, t->arg);

	/* What the mask leaves decides where the width is not known, if it is surely looked at. */
	if (bits == 0 && t->masked && t->mask <= 0xffffffff)
		bits = 32;
	if (bits == 0) {
		char what[128];
		(void)snprintf(what, sizeof(what),
			"how many bits of arg%u count is not known for", t->arg);
		(void)wrong(l, what, name);
		error_hint(l->e, "write low32(arg%u) or full(arg%u)", t->arg, t->arg);
		return 0;
	}
	uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
	if (!t->masked)
		return mask;
	if (t->mask & ~mask) {
		(void)wrong(l, "the mask has bits that the kernel does not look at for", name);
		return 0;
	}
	return t->mask;
}

/* A negative number means the low bits of it where fewer than 64 are compared. */
static uint64_t fit_value(const struct written_test *t, uint64_t mask, uint64_t value)
{
	return !t->masked && (int64_t)value < 0 && (int64_t)value >= INT32_MIN ? value & mask
									       : value;
}

static int apply_test(const struct line *l, const struct written_test *t, const char *name,
	struct filter_test *ret)
{
	bool is_order = t->op != FILTER_IN && t->op != FILTER_NE;
	uint64_t mask = compared_bits(l, t, name);

	if (mask == 0)
		return -EINVAL;
	/* Order on 64 bits needs two words and is where filter compilers have gone wrong. */
	if (is_order && (t->masked || mask > 0xffffffff))
		return wrong(l, "order is compared on 32 bits, without a mask", name);
	uint64_t *values = arena_array(l->f->arena, t->value_count, sizeof(*values));
	if (!values)
		return full(l);
	for (size_t i = 0; i < t->value_count; i++) {
		values[i] = fit_value(t, mask, t->values[i]);
		if (values[i] & ~mask)
			return wrong(l, "the value has bits that are not compared for", name);
	}
	*ret = (struct filter_test){ t->arg, t->op, mask, values, t->value_count };
	return 0;
}

static int add_rule(const struct line *l, const char *name, uint32_t action,
	const struct written_tests *written)
{
	struct filter *f = l->f;
	struct filter_test *tests = NULL;

	int x86_64 = filter_number(name, AUDIT_ARCH_X86_64);

	if (x86_64 == -EINVAL)
		return unknown(
			l, "unknown system call", name, filter_nearest_call(f->arena, name));
	if (written->count > 0) {
		tests = arena_array(f->arena, written->count, sizeof(*tests));
		if (!tests)
			return full(l);
	}
	for (size_t i = 0; i < written->count; i++) {
		int r = apply_test(l, &written->tests[i], name, &tests[i]);
		if (r < 0)
			return r;
	}
	const char *copy = arena_copy(f->arena, name, strlen(name));
	struct filter_rule *rules =
		arena_push(f->arena, f->rules, f->rule_count, sizeof(*rules));
	if (!rules || !copy)
		return full(l);
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
		return full(l);
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
		return wrong(l, "unknown group", name);
	if (word[0] != '@') {
		if (filter_number(word, AUDIT_ARCH_X86_64) == -EINVAL)
			return unknown(l, "unknown system call", word,
				filter_nearest_call(l->f->arena, word));
		return add_group_word(l, g, word);
	}
	const struct filter_group *other = find_group(l->f, word);
	if (!other || other == g)
		return unknown(l, "unknown group", word, nearest_group(l->f, word));
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
		return full(l);
	f->groups = groups;
	groups[f->group_count++] = (struct filter_group){ copy, NULL, 0 };
	return 0;
}

/* group @NAME = WORD..., group @NAME += WORD... */
static int parse_group(struct line *l)
{
	const char *name = peek(l);

	if (!name || name[0] != '@' || !name[1])
		return wrong(l, "a group's name begins with @", name ? name : "end of line");
	l->at++;
	bool exists = find_group(l->f, name) != NULL;
	if (accept(l, "+=")) {
		if (!exists)
			return unknown(l, "unknown group", name, nearest_group(l->f, name));
	} else {
		int r = expect(l, "=");
		if (r < 0)
			return r;
		if (exists)
			return wrong(l, "the group exists already", name);
		r = new_group(l, name);
		if (r < 0)
			return r;
	}
	if (l->at == l->count)
		return wrong(l, "the group is empty", name);
	for (; l->at < l->count; l->at++) {
		int r = add_group_member(l, name, peek(l));
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- statements ------------------------------------------------------------------------------- */

static const char *const statements[] = { "default", "include", "group", "allow", "errno",
	"enosys", "kill" };

/* errno's name is in capitals, a call's never is: so it may be left out. */
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

		if (is_errno_name(peek(l))) {
			const char *name = l->tokens[l->at++];

			errnum = filter_errno(name);
			if (errnum < 0)
				return wrong(l, "unknown error name", name);
		}
		*ret = SECCOMP_RET_ERRNO | (uint32_t)errnum;
	} else {
		return unknown(l, "unknown statement", word,
			text_nearest(word, statements, LENGTH(statements)));
	}
	return 0;
}

static int parse_default(struct line *l)
{
	const char *word = peek(l);
	struct filter *f = l->f;

	if (f->default_file)
		return wrong(l, "there is a default already, from", f->default_file);
	if (!word)
		return wrong(l, "an action is expected", "end of line");
	l->at++;
	int r = parse_action(l, word, &f->default_action);
	if (r < 0)
		return r;
	if (l->at < l->count)
		return wrong(l, "the end of the line is expected", peek(l));
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
		return unknown(l, "unknown group", word, nearest_group(l->f, word));
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
	while (starts_word(peek(l)) && strcmp(peek(l), "if") != 0)
		l->at++;
	size_t end = l->at;
	if (first == end)
		return wrong(l, "a system call or a group is expected",
			peek(l) ? peek(l) : "end of line");
	struct written_tests *tests = arena_alloc(l->f->arena, sizeof(*tests));
	if (!tests)
		return full(l);
	r = parse_tests(l, tests);
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
			return wrong(l, "the file includes itself", name);
	if (is_included(f, name))
		return 0;
	if (!text)
		return wrong(l, "there is no such file to include", name);
	if (strlen(text->text) != text->size)
		return wrong(l, "the file has a NUL byte", name);
	if (r->depth == INCLUDE_MAX)
		return wrong(l, "more than 8 files include each other", name);
	const char **included =
		arena_push(f->arena, f->included, f->included_count, sizeof(*included));
	if (!included)
		return full(l);
	f->included = included;
	f->included[f->included_count++] = text->name;
	r->frames[r->depth++] = (struct frame){ text, 0, 0 };
	return 0;
}

static int parse_include(struct reader *r, struct line *l)
{
	const char *name = peek(l);

	if (!starts_word(name) || l->count != 2)
		return wrong(l, "one file name is expected", name ? name : "end of line");
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
	int result = cut_line(l, start, size);
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
		return error_set(e, ERROR_LIMIT, "policy", ENOMEM, name, "no memory to read");
	int result = push_file(&r, l, name);
	while (result == 0 && r.depth > 0)
		result = read_line(&r, l);
	if (result == 0 && !f->default_file) {
		l->number = 1;
		l->file = name;
		result = wrong(l, "the filter has no 'default' line", NULL);
	}
	return result;
}

int filter_parse_line(
	struct filter *f, const char *text, const char *file, unsigned line, struct error *e)
{
	struct line *l = new_line(f, file, e);

	if (!l)
		return error_set(e, ERROR_LIMIT, "policy", ENOMEM, file, "no memory to read");
	l->number = line;
	int r = cut_line(l, text, strlen(text));
	if (r < 0)
		return r;
	if (!accept(l, "allow") && !accept(l, "errno"))
		return wrong(
			l, "'allow' or 'errno' is expected", peek(l) ? peek(l) : "end of line");
	return parse_rule(l, l->tokens[0]);
}

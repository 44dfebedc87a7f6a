/*
 * filter_cond.c - `if TEST and TEST...`: what a line of a filter asks of a call's arguments.
 *
 * Runs in: mkpolicy, carrel-policy, tests. PURE. A test is read as it is written and then applied
 * to each call of its line, because how many bits of an argument count depends on the call.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/filter_line.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* --- tests ------------------------------------------------------------------------------------ */

static int parse_term(struct line *l, uint64_t *ret)
{
	const char *word = line_peek(l);
	char *end = NULL;

	if (!line_starts_word(word))
		return line_wrong(
			l, "a number or a constant is expected", word ? word : "end of line");
	l->at++;
	if (filter_constant(word, ret))
		return 0;
	if ((word[0] < '0' || word[0] > '9') && word[0] != '-')
		return line_unknown(l, "unknown constant", word, filter_nearest_constant(word));
	errno = 0;
	uint64_t value = strtoull(word, &end, 0);
	if (errno || end == word || *end)
		return line_wrong(l, "not a number of at most 64 bits", word);
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
	} while (line_accept(l, "|"));
	*ret = value;
	return 0;
}

static int parse_operand(struct line *l, struct written_test *t)
{
	bool wrapped = true;

	if (line_accept(l, "low32"))
		t->bits = 32;
	else if (line_accept(l, "full"))
		t->bits = 64;
	else
		wrapped = false;
	if (wrapped) {
		int r = line_expect(l, "(");
		if (r < 0)
			return r;
	}
	const char *word = line_peek(l);
	if (!word || strncmp(word, "arg", 3) != 0 || word[3] < '0' || word[3] > '5' || word[4])
		return line_wrong(l, "arg0 to arg5, low32(argN) or line_full(argN) is expected",
			word ? word : "end of line");
	t->arg = (unsigned)(word[3] - '0');
	l->at++;
	return wrapped ? line_expect(l, ")") : 0;
}

static int parse_list(struct line *l, struct written_test *t)
{
	int r = line_expect(l, "{");

	if (r < 0)
		return r;
	do {
		if (t->value_count == VALUE_MAX)
			return line_wrong(l, "more than 64 values in one list", NULL);
		r = parse_value(l, &t->values[t->value_count++]);
		if (r < 0)
			return r;
	} while (line_accept(l, ","));
	return line_expect(l, "}");
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
	if (line_accept(l, "in"))
		return parse_list(l, t);
	for (size_t i = 0; i < LENGTH(ops); i++) {
		if (!line_accept(l, ops[i]))
			continue;
		t->op = (enum filter_op)i;
		t->value_count = 1;
		return parse_value(l, &t->values[0]);
	}
	const char *found = line_peek(l);
	return line_wrong(l, "a comparison or 'in' is expected", found ? found : "end of line");
}

static int parse_test(struct line *l, struct written_test *t)
{
	int r = parse_operand(l, t);

	if (r < 0)
		return r;
	if (line_accept(l, "&")) {
		t->masked = true;
		r = parse_value(l, &t->mask);
		if (r < 0)
			return r;
		if (t->mask == 0)
			return line_wrong(l, "a mask of 0 tests nothing", NULL);
	}
	return parse_op(l, t);
}

int cond_parse(struct line *l, struct written_tests *ret)
{
	if (l->at == l->count)
		return 0;
	int r = line_expect(l, "if");
	if (r < 0)
		return r;
	do {
		if (ret->count == TEST_MAX)
			return line_wrong(l, "more than 6 tests in one line", NULL);
		r = parse_test(l, &ret->tests[ret->count++]);
		if (r < 0)
			return r;
	} while (line_accept(l, "and"));
	if (l->at < l->count)
		return line_wrong(l, "'and' or the end of the line is expected", line_peek(l));
	return 0;
}

/* --- tests applied to a call ------------------------------------------------------------------ */

/* The bits of argument t->arg of @name that are compared, or 0 with an error. */
static uint64_t compared_bits(
	const struct line *l, const struct written_test *t, const char *name)
{
	unsigned bits = t->bits ? t->bits : filter_width(name, t->arg);

	/* If the width is not known, the mask decides: when it has only low bits, the filter looks at 32. */
	if (bits == 0 && t->masked && t->mask <= 0xffffffff)
		bits = 32;
	if (bits == 0) {
		char what[128];
		(void)snprintf(what, sizeof(what),
			"how many bits of arg%u count is not known for", t->arg);
		(void)line_wrong(l, what, name);
		error_hint(l->e, "write low32(arg%u) or line_full(arg%u)", t->arg, t->arg);
		return 0;
	}
	uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
	if (!t->masked)
		return mask;
	if (t->mask & ~mask) {
		(void)line_wrong(
			l, "the mask has bits that the kernel does not look at for", name);
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

int cond_apply(const struct line *l, const struct written_test *t, const char *name,
	struct filter_test *ret)
{
	bool is_order = t->op != FILTER_IN && t->op != FILTER_NE;
	uint64_t mask = compared_bits(l, t, name);

	if (mask == 0)
		return -EINVAL;
	/* Order on 64 bits needs two words and is where filter compilers have gone wrong. */
	if (is_order && (t->masked || mask > 0xffffffff))
		return line_wrong(l, "order is compared on 32 bits, without a mask", name);
	uint64_t *values = arena_array(l->f->arena, t->value_count, sizeof(*values));
	if (!values)
		return line_full(l);
	for (size_t i = 0; i < t->value_count; i++) {
		values[i] = fit_value(t, mask, t->values[i]);
		if (values[i] & ~mask)
			return line_wrong(
				l, "the value has bits that are not compared for", name);
	}
	*ret = (struct filter_test){ t->arg, t->op, mask, values, t->value_count };
	return 0;
}

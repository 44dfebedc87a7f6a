/*
 * filter_code.c - see filter_code.h.
 *
 * Runs in: mkpolicy, carrel-policy, tests. PURE but for the memory taken.
 */
#include "policy/filter_code.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#define JUMP_NEAR 240 /* a conditional jump holds 255; the rest is for what comes between */

/* --- instructions ----------------------------------------------------------------------------- */

/* Write one instruction before all others and return its place. */
static size_t put_instruction(struct code *c, uint16_t code, uint32_t k)
{
	if (c->start == 1) {
		c->overflow = true;
		return c->start;
	}
	c->code[--c->start] = (struct sock_filter){ code, 0, 0, k };
	return c->start;
}

static bool is_near(const struct code *c, size_t label)
{
	return label - c->start < JUMP_NEAR;
}

/* A place with the same effect as @label that a conditional jump can reach, if it is written next. */
static size_t near(struct code *c, size_t label)
{
	if (is_near(c, label))
		return label;
	bool is_return = BPF_CLASS(c->code[label].code) == BPF_RET;
	for (size_t i = c->start; i < FILTER_SIZE_MAX && is_near(c, i); i++) {
		const struct sock_filter *at = &c->code[i];

		/* Another copy of the return, or a jump to the same place, may be closer. */
		if (is_return ? at->code == (BPF_RET | BPF_K) && at->k == c->code[label].k
			      : at->code == (BPF_JMP | BPF_JA) && i + 1 + at->k == label)
			return i;
	}
	if (is_return)
		return put_instruction(c, BPF_RET | BPF_K, c->code[label].k);
	return put_instruction(c, BPF_JMP | BPF_JA, (uint32_t)(label - c->start));
}

size_t code_jump(struct code *c, uint16_t op, uint32_t k, size_t yes, size_t no)
{
	if (yes == no)
		return yes;
	yes = near(c, yes);
	no = near(c, no);
	size_t at = put_instruction(c, (uint16_t)(BPF_JMP | op | BPF_K), k);
	c->code[at].jt = (uint8_t)(yes - at - 1);
	c->code[at].jf = (uint8_t)(no - at - 1);
	return at;
}

size_t code_return(struct code *c, uint32_t action)
{
	for (size_t i = c->start; i < FILTER_SIZE_MAX; i++)
		if (c->code[i].code == (BPF_RET | BPF_K) && c->code[i].k == action)
			return i;
	return put_instruction(c, BPF_RET | BPF_K, action);
}

size_t code_load(struct code *c, uint32_t offset, size_t next)
{
	/* A load has no target: @next must come right after it. */
	if (next != c->start)
		(void)put_instruction(c, BPF_JMP | BPF_JA, (uint32_t)(next - c->start));
	return put_instruction(c, BPF_LD | BPF_W | BPF_ABS, offset);
}

/* @label without its load, if the accumulator holds the word at @offset already. */
static size_t skip_load(const struct code *c, uint32_t offset, size_t label)
{
	const struct sock_filter *at = &c->code[label];

	return at->code == (BPF_LD | BPF_W | BPF_ABS) && at->k == offset ? label + 1 : label;
}

/* --- tests ------------------------------------------------------------------------------------ */

/* Half of an argument: its place in struct seccomp_data and which bits count. */
struct word {
	uint32_t offset, mask;
};

static struct word arg_word(const struct filter_test *t, bool high)
{
	uint32_t offset = (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (size_t)t->arg);

	/* Both architectures are little-endian: the low word comes first. */
	return high ? (struct word){ offset + 4, (uint32_t)(t->mask >> 32) }
		    : (struct word){ offset, (uint32_t)t->mask };
}

/*
 * Loads a word, masks it, compares it with each of @count values: equal to one of them -> @yes.
 * @shift takes the value's half that belongs to the word.
 */
static size_t put_word_in(struct code *c, struct word w, const uint64_t *values, size_t count,
	unsigned shift, size_t yes, size_t no)
{
	uint32_t only = (uint32_t)(values[0] >> shift);
	size_t next = no;

	if (yes == no)
		return yes;
	if (w.mask == UINT32_MAX || (count == 1 && only == 0)) {
		/* The word itself stays in the accumulator: the next test of it need not load it. */
		yes = skip_load(c, w.offset, yes);
		next = skip_load(c, w.offset, no);
	}
	if (w.mask != UINT32_MAX && count == 1 && only == 0) {
		next = code_jump(c, BPF_JSET, w.mask, next, yes);
		return code_load(c, w.offset, next);
	}
	for (size_t i = count; i > 0; i--)
		next = code_jump(c, BPF_JEQ, (uint32_t)(values[i - 1] >> shift), yes, next);
	if (w.mask != UINT32_MAX) {
		if (next != c->start)
			(void)put_instruction(c, BPF_JMP | BPF_JA, (uint32_t)(next - c->start));
		next = put_instruction(c, BPF_ALU | BPF_AND | BPF_K, w.mask);
	}
	return code_load(c, w.offset, next);
}

/* Equal to one of the values -> @yes, on as many halves as the mask reaches into. */
static size_t put_in(struct code *c, const struct filter_test *t, size_t yes, size_t no)
{
	struct word low = arg_word(t, false), high = arg_word(t, true);

	if (high.mask == 0)
		return put_word_in(c, low, t->values, t->value_count, 0, yes, no);
	if (low.mask == 0)
		return put_word_in(c, high, t->values, t->value_count, 32, yes, no);
	/* Both halves of a value belong together: value by value. */
	for (size_t i = t->value_count; i > 0; i--) {
		const uint64_t *value = &t->values[i - 1];
		size_t both = put_word_in(c, low, value, 1, 0, yes, no);

		no = put_word_in(c, high, value, 1, 32, both, no);
	}
	return no;
}

/* Order, on one word only (the parser sees to that). */
static size_t put_order(struct code *c, const struct filter_test *t, size_t yes, size_t no)
{
	struct word w = arg_word(t, false);
	uint16_t op = t->op == FILTER_GE || t->op == FILTER_LT ? BPF_JGE : BPF_JGT;
	bool is_less = t->op == FILTER_LT || t->op == FILTER_LE;

	if (w.mask == UINT32_MAX) {
		yes = skip_load(c, w.offset, yes);
		no = skip_load(c, w.offset, no);
	}
	size_t next = code_jump(
		c, op, (uint32_t)t->values[0], is_less ? no : yes, is_less ? yes : no);
	if (w.mask != UINT32_MAX) {
		if (next != c->start)
			(void)put_instruction(c, BPF_JMP | BPF_JA, (uint32_t)(next - c->start));
		next = put_instruction(c, BPF_ALU | BPF_AND | BPF_K, w.mask);
	}
	return code_load(c, w.offset, next);
}

size_t code_test(struct code *c, const struct filter_test *t, size_t yes, size_t no)
{
	switch (t->op) {
	case FILTER_IN:
		return put_in(c, t, yes, no);
	case FILTER_NE:
		return put_in(c, t, no, yes);
	case FILTER_LT:
	case FILTER_LE:
	case FILTER_GT:
	case FILTER_GE:
		return put_order(c, t, yes, no);
	}
	c->overflow = true;
	return no;
}

/* --- tidying ---------------------------------------------------------------------------------- */

static bool is_conditional(const struct sock_filter *i)
{
	return BPF_CLASS(i->code) == BPF_JMP && BPF_OP(i->code) != BPF_JA;
}

/* Marks what can be reached; jumps only go forward, so once through is enough. */
static void find_live(const struct sock_filter *code, size_t count, bool *live)
{
	live[0] = true;
	for (size_t i = 0; i < count; i++) {
		if (!live[i] || BPF_CLASS(code[i].code) == BPF_RET)
			continue;
		if (is_conditional(&code[i])) {
			live[i + 1 + code[i].jt] = true;
			live[i + 1 + code[i].jf] = true;
		} else if (BPF_CLASS(code[i].code) == BPF_JMP) {
			live[i + 1 + code[i].k] = true;
		} else {
			live[i + 1] = true;
		}
	}
}

/* Copies what can be reached, with the jumps made shorter. Returns how many there are. */
static size_t copy_live(const struct sock_filter *code, size_t count, const bool *live,
	uint32_t *places, struct sock_filter *ret)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		places[i] = (uint32_t)used;
		used += live[i];
	}
	for (size_t i = 0; i < count; i++) {
		if (!live[i])
			continue;
		struct sock_filter *to = &ret[places[i]];
		*to = code[i];
		if (is_conditional(to)) {
			to->jt = (uint8_t)(places[i + 1 + code[i].jt] - places[i] - 1);
			to->jf = (uint8_t)(places[i + 1 + code[i].jf] - places[i] - 1);
		} else if (BPF_CLASS(to->code) == BPF_JMP) {
			to->k = places[i + 1 + code[i].k] - places[i] - 1;
		}
	}
	return used;
}

int code_tidy(struct code *c, struct arena *arena, struct sock_filter *ret_code,
	unsigned short *ret_count)
{
	size_t count = FILTER_SIZE_MAX - c->start;
	bool *live = arena_array(arena, count + 1, sizeof(*live));
	uint32_t *places = arena_array(arena, count + 1, sizeof(*places));

	if (c->overflow)
		return -E2BIG;
	if (!live || !places)
		return -ENOMEM;
	find_live(c->code + c->start, count, live);
	*ret_count =
		(unsigned short)copy_live(c->code + c->start, count, live, places, ret_code);
	return 0;
}

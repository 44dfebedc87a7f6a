/*
 * filter_gen.c - rules -> a classic BPF program for one architecture.
 *
 * Runs in: mkpolicy, carrel-policy, tests. PURE but for the memory taken.
 *
 * Why not libseccomp's own generator: it takes each argument once in a rule and has no "matches
 * none of these", so "ioctl, but not TIOCSTI and not TIOCLINUX" above a default that refuses cannot
 * be said; where rules for one call overlap, which wins is not defined; its 64-bit comparisons have
 * a known fault (fixed in 2.6.1); and its program is longer, and so slower to load at each launch.
 * tests/unit/filter_test.c proves this generator's programs equal to filter_eval() and, wherever
 * libseccomp can express the rule, to libseccomp's own output.
 *
 * The program: the architecture is checked; then a binary search over *ranges* of numbers with the
 * same fate; then the tests of those calls that have any. Calls that are allowed whatever their
 * arguments are reached by comparisons of the number alone, which lets the kernel cache them
 * (seccomp_cache_prepare()): such a call then costs no BPF at all.
 *
 * Code is written from its end to its start, so that every jump goes to what exists already.
 */
#include "policy/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>

#define X32_BIT 0x40000000u
#define NUMBERS 1024  /* calls above this have no name and get the default */
#define JUMP_NEAR 240 /* a conditional jump holds 255; the rest is for what comes between */
#define FATE_MAX 512
#define RANGE_MAX (NUMBERS + 8)
#define TREE_DEPTH_MAX 16 /* of 2^16 ranges */

#define LD_ARCH ((uint32_t)offsetof(struct seccomp_data, arch))
#define LD_NR ((uint32_t)offsetof(struct seccomp_data, nr))

/* What happens to a call: some tests in turn, then an action. */
struct fate {
	const struct filter_rule **rules; /* with tests; the first to match decides */
	size_t rule_count;
	uint32_t action; /* where none does */
	size_t label;    /* where its code begins, 0: not written yet */
};

struct range {
	uint32_t first;
	size_t fate;
};

struct gen {
	const struct filter *f;
	uint32_t arch;
	struct fate *fates;
	size_t fate_count;
	struct range *ranges;
	size_t range_count;
	struct sock_filter *code; /* FILTER_SIZE_MAX; filled from the end */
	size_t start;             /* first instruction written */
	bool overflow;
};

/* --- instructions ----------------------------------------------------------------------------- */

/* Writes one instruction before all others and returns its place. */
static size_t put(struct gen *g, uint16_t code, uint32_t k)
{
	if (g->start == 1) {
		g->overflow = true;
		return g->start;
	}
	g->code[--g->start] = (struct sock_filter){ code, 0, 0, k };
	return g->start;
}

static bool is_near(const struct gen *g, size_t label)
{
	return label - g->start < JUMP_NEAR;
}

/* A place with the same effect as @label that a conditional jump put next can reach. */
static size_t near(struct gen *g, size_t label)
{
	if (is_near(g, label))
		return label;
	bool is_return = BPF_CLASS(g->code[label].code) == BPF_RET;
	for (size_t i = g->start; i < FILTER_SIZE_MAX && is_near(g, i); i++) {
		const struct sock_filter *at = &g->code[i];

		/* Another copy of the return, or a jump to the same place, may be closer. */
		if (is_return ? at->code == (BPF_RET | BPF_K) && at->k == g->code[label].k
			      : at->code == (BPF_JMP | BPF_JA) && i + 1 + at->k == label)
			return i;
	}
	if (is_return)
		return put(g, BPF_RET | BPF_K, g->code[label].k);
	return put(g, BPF_JMP | BPF_JA, (uint32_t)(label - g->start));
}

static size_t put_jump(struct gen *g, uint16_t op, uint32_t k, size_t yes, size_t no)
{
	if (yes == no)
		return yes;
	yes = near(g, yes);
	no = near(g, no);
	size_t at = put(g, (uint16_t)(BPF_JMP | op | BPF_K), k);
	g->code[at].jt = (uint8_t)(yes - at - 1);
	g->code[at].jf = (uint8_t)(no - at - 1);
	return at;
}

static size_t put_return(struct gen *g, uint32_t action)
{
	for (size_t i = g->start; i < FILTER_SIZE_MAX; i++)
		if (g->code[i].code == (BPF_RET | BPF_K) && g->code[i].k == action)
			return i;
	return put(g, BPF_RET | BPF_K, action);
}

static size_t put_load(struct gen *g, uint32_t offset, size_t next)
{
	/* What follows must be next in line. */
	if (next != g->start)
		(void)put(g, BPF_JMP | BPF_JA, (uint32_t)(next - g->start));
	return put(g, BPF_LD | BPF_W | BPF_ABS, offset);
}

/* @label without its load, where the accumulator holds the word at @offset already. */
static size_t skip_load(const struct gen *g, uint32_t offset, size_t label)
{
	const struct sock_filter *at = &g->code[label];

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
static size_t put_word_in(struct gen *g, struct word w, const uint64_t *values, size_t count,
	unsigned shift, size_t yes, size_t no)
{
	uint32_t only = (uint32_t)(values[0] >> shift);
	size_t next = no;

	if (yes == no)
		return yes;
	if (w.mask == UINT32_MAX || (count == 1 && only == 0)) {
		/* The word itself stays in the accumulator: who looks at it next need not load. */
		yes = skip_load(g, w.offset, yes);
		next = skip_load(g, w.offset, no);
	}
	if (w.mask != UINT32_MAX && count == 1 && only == 0) {
		next = put_jump(g, BPF_JSET, w.mask, next, yes);
		return put_load(g, w.offset, next);
	}
	for (size_t i = count; i > 0; i--)
		next = put_jump(g, BPF_JEQ, (uint32_t)(values[i - 1] >> shift), yes, next);
	if (w.mask != UINT32_MAX) {
		if (next != g->start)
			(void)put(g, BPF_JMP | BPF_JA, (uint32_t)(next - g->start));
		next = put(g, BPF_ALU | BPF_AND | BPF_K, w.mask);
	}
	return put_load(g, w.offset, next);
}

/* Equal to one of the values -> @yes, on as many halves as the mask reaches into. */
static size_t put_in(struct gen *g, const struct filter_test *t, size_t yes, size_t no)
{
	struct word low = arg_word(t, false), high = arg_word(t, true);

	if (high.mask == 0)
		return put_word_in(g, low, t->values, t->value_count, 0, yes, no);
	if (low.mask == 0)
		return put_word_in(g, high, t->values, t->value_count, 32, yes, no);
	/* Both halves of a value belong together: value by value. */
	for (size_t i = t->value_count; i > 0; i--) {
		const uint64_t *value = &t->values[i - 1];
		size_t both = put_word_in(g, low, value, 1, 0, yes, no);

		no = put_word_in(g, high, value, 1, 32, both, no);
	}
	return no;
}

/* Order, on one word only (the parser sees to that). */
static size_t put_order(struct gen *g, const struct filter_test *t, size_t yes, size_t no)
{
	struct word w = arg_word(t, false);
	uint16_t op = t->op == FILTER_GE || t->op == FILTER_LT ? BPF_JGE : BPF_JGT;
	bool is_less = t->op == FILTER_LT || t->op == FILTER_LE;

	if (w.mask == UINT32_MAX) {
		yes = skip_load(g, w.offset, yes);
		no = skip_load(g, w.offset, no);
	}
	size_t next =
		put_jump(g, op, (uint32_t)t->values[0], is_less ? no : yes, is_less ? yes : no);
	if (w.mask != UINT32_MAX) {
		if (next != g->start)
			(void)put(g, BPF_JMP | BPF_JA, (uint32_t)(next - g->start));
		next = put(g, BPF_ALU | BPF_AND | BPF_K, w.mask);
	}
	return put_load(g, w.offset, next);
}

static size_t put_test(struct gen *g, const struct filter_test *t, size_t yes, size_t no)
{
	switch (t->op) {
	case FILTER_IN:
		return put_in(g, t, yes, no);
	case FILTER_NE:
		return put_in(g, t, no, yes);
	case FILTER_LT:
	case FILTER_LE:
	case FILTER_GT:
	case FILTER_GE:
		return put_order(g, t, yes, no);
	}
	g->overflow = true;
	return no;
}

/* The code of one fate; its rules are tried in order, so the last is written first. */
static size_t put_fate(struct gen *g, struct fate *fate)
{
	if (fate->label)
		return fate->label;
	size_t label = put_return(g, fate->action);
	for (size_t i = fate->rule_count; i > 0; i--) {
		const struct filter_rule *rule = fate->rules[i - 1];
		size_t yes = put_return(g, rule->action);

		for (size_t t = rule->test_count; t > 0; t--)
			yes = put_test(g, &rule->tests[t - 1], yes, label);
		label = yes;
	}
	fate->label = label;
	return label;
}

/* --- fates ------------------------------------------------------------------------------------ */

static bool same_tests(const struct filter_rule *a, const struct filter_rule *b)
{
	if (a->test_count != b->test_count || a->action != b->action)
		return false;
	for (size_t i = 0; i < a->test_count; i++) {
		const struct filter_test *s = &a->tests[i], *t = &b->tests[i];

		if (s->arg != t->arg || s->op != t->op || s->mask != t->mask ||
			s->value_count != t->value_count ||
			memcmp(s->values, t->values, s->value_count * sizeof(*s->values)) != 0)
			return false;
	}
	return true;
}

static bool same_fate(const struct fate *a, const struct fate *b)
{
	if (a->rule_count != b->rule_count || a->action != b->action)
		return false;
	for (size_t i = 0; i < a->rule_count; i++)
		if (!same_tests(a->rules[i], b->rules[i]))
			return false;
	return true;
}

/* The index of that fate, which is added where it is new; FATE_MAX where there are too many. */
static size_t intern_fate(struct gen *g, const struct fate *fate)
{
	for (size_t i = 0; i < g->fate_count; i++)
		if (same_fate(&g->fates[i], fate))
			return i;
	if (g->fate_count == FATE_MAX)
		return FATE_MAX;
	g->fates[g->fate_count] = *fate;
	return g->fate_count++;
}

static size_t action_fate(struct gen *g, uint32_t action)
{
	return intern_fate(g, &(struct fate){ .action = action });
}

/* The lines for one number, last first, down to the first without tests. */
static int fate_of(struct gen *g, uint32_t nr, size_t *ret)
{
	const struct filter *f = g->f;
	struct fate fate = { .action = f->default_action };

	for (size_t i = f->rule_count; i > 0; i--) {
		const struct filter_rule *rule = &f->rules[i - 1];

		if (filter_rule_number(rule, g->arch) != (int)nr)
			continue;
		if (rule->test_count == 0) {
			fate.action = rule->action;
			break;
		}
		const struct filter_rule **rules =
			arena_push(f->arena, fate.rules, fate.rule_count, sizeof(*rules));
		if (!rules)
			return -ENOMEM;
		fate.rules = rules;
		fate.rules[fate.rule_count++] = rule;
	}
	size_t index = intern_fate(g, &fate);
	if (index == FATE_MAX)
		return -E2BIG;
	*ret = index;
	return 0;
}

static void add_range(struct gen *g, uint32_t first, size_t fate)
{
	if (g->range_count > 0 && g->ranges[g->range_count - 1].fate == fate)
		return;
	g->ranges[g->range_count++] = (struct range){ first, fate };
}

/* Every number from 0 to 2^32 - 1, cut into ranges with the same fate. */
static int find_ranges(struct gen *g)
{
	const struct filter *f = g->f;

	for (uint32_t nr = 0; nr < NUMBERS; nr++) {
		size_t fate = 0;
		int r = fate_of(g, nr, &fate);
		if (r < 0)
			return r;
		add_range(g, nr, fate);
	}
	size_t other = action_fate(g, f->default_action);
	size_t killed = action_fate(g, SECCOMP_RET_KILL_PROCESS);
	if (other == FATE_MAX || killed == FATE_MAX)
		return -E2BIG;
	add_range(g, NUMBERS, other);
	if (g->arch == AUDIT_ARCH_X86_64) {
		/* x32; but -1 is what a tracer writes to have a call skipped. */
		add_range(g, X32_BIT, killed);
		add_range(g, UINT32_MAX, other);
	}
	return 0;
}

/* --- search ----------------------------------------------------------------------------------- */

/*
 * The search among the ranges from @first up to @end, the number being loaded. @depth bounds the
 * recursion: each step halves the ranges.
 */
static size_t put_search(struct gen *g, size_t first, size_t end, unsigned depth)
{
	const struct range *at = &g->ranges[first];

	if (end - first == 1 || depth == 0)
		return put_fate(g, &g->fates[at->fate]);
	/* One number amid others that share a fate takes one comparison instead of two. */
	if (end - first == 3 && at[0].fate == at[2].fate && at[2].first == at[1].first + 1) {
		size_t outer = put_fate(g, &g->fates[at[0].fate]);
		size_t inner = put_fate(g, &g->fates[at[1].fate]);

		return put_jump(g, BPF_JEQ, at[1].first, inner, outer);
	}
	size_t middle = first + (end - first) / 2;
	size_t above = put_search(g, middle, end, depth - 1);
	size_t below = put_search(g, first, middle, depth - 1);

	return put_jump(g, BPF_JGE, g->ranges[middle].first, above, below);
}

static void put_program(struct gen *g)
{
	size_t search = put_search(g, 0, g->range_count, TREE_DEPTH_MAX);
	size_t number = put_load(g, LD_NR, search);
	size_t killed = put_return(g, SECCOMP_RET_KILL_PROCESS);

	(void)put_load(g, LD_ARCH, put_jump(g, BPF_JEQ, g->arch, number, killed));
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

static int tidy(struct gen *g, struct sock_filter *ret_code, unsigned short *ret_count)
{
	size_t count = FILTER_SIZE_MAX - g->start;
	bool *live = arena_array(g->f->arena, count + 1, sizeof(*live));
	uint32_t *places = arena_array(g->f->arena, count + 1, sizeof(*places));

	if (!live || !places)
		return -ENOMEM;
	find_live(g->code + g->start, count, live);
	*ret_count =
		(unsigned short)copy_live(g->code + g->start, count, live, places, ret_code);
	return 0;
}

static int generate(struct gen *g, struct sock_filter *ret_code, unsigned short *ret_count)
{
	struct arena *arena = g->f->arena;

	g->fates = arena_array(arena, FATE_MAX, sizeof(*g->fates));
	g->ranges = arena_array(arena, RANGE_MAX, sizeof(*g->ranges));
	g->code = arena_array(arena, FILTER_SIZE_MAX, sizeof(*g->code));
	g->start = FILTER_SIZE_MAX;
	if (!g->fates || !g->ranges || !g->code)
		return -ENOMEM;
	int r = find_ranges(g);
	if (r < 0)
		return r;
	put_program(g);
	return g->overflow ? -E2BIG : tidy(g, ret_code, ret_count);
}

int filter_compile(const struct filter *f, uint32_t arch, struct sock_filter *ret_code,
	unsigned short *ret_count, struct error *e)
{
	struct gen g = { .f = f, .arch = arch };

	if (!f->default_file || (arch != AUDIT_ARCH_X86_64 && arch != AUDIT_ARCH_AARCH64))
		return error_set(e, ERROR_POLICY, "policy", EINVAL, f->default_file,
			"the filter has no default, or the architecture is not known");
	int r = generate(&g, ret_code, ret_count);
	if (r < 0)
		return error_set(e, ERROR_LIMIT, "policy", -r, f->default_file,
			"the filter does not fit into one BPF program");
	return 0;
}

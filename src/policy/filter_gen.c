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
 */
#include "policy/filter_code.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>

#define X32_BIT 0x40000000u
#define NUMBERS 1024 /* calls above this have no name and get the default */
#define FATE_MAX 512
#define RANGE_MAX (NUMBERS + 8)
#define TREE_DEPTH_MAX 16 /* of 2^16 ranges */

#define LD_ARCH ((uint32_t)offsetof(struct seccomp_data, arch))
#define LD_NR ((uint32_t)offsetof(struct seccomp_data, nr))

/* What happens to a call: some tests, one after the other, then an action. */
struct fate {
	const struct filter_rule **rules; /* with tests; the first to match decides */
	size_t rule_count;
	uint32_t action; /* if none matches */
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
	struct code out;
};

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

/* The index of that fate, which is added if it is new; FATE_MAX: there are too many. */
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

/* The code of one fate; its rules are tried in order, so the last is written first. */
static size_t put_fate(struct gen *g, struct fate *fate)
{
	if (fate->label)
		return fate->label;
	size_t label = code_return(&g->out, fate->action);
	for (size_t i = fate->rule_count; i > 0; i--) {
		const struct filter_rule *rule = fate->rules[i - 1];
		size_t yes = code_return(&g->out, rule->action);

		for (size_t t = rule->test_count; t > 0; t--)
			yes = code_test(&g->out, &rule->tests[t - 1], yes, label);
		label = yes;
	}
	fate->label = label;
	return label;
}

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

		return code_jump(&g->out, BPF_JEQ, at[1].first, inner, outer);
	}
	size_t middle = first + (end - first) / 2;
	size_t above = put_search(g, middle, end, depth - 1);
	size_t below = put_search(g, first, middle, depth - 1);

	return code_jump(&g->out, BPF_JGE, g->ranges[middle].first, above, below);
}

static void put_program(struct gen *g)
{
	size_t search = put_search(g, 0, g->range_count, TREE_DEPTH_MAX);
	size_t number = code_load(&g->out, LD_NR, search);
	size_t killed = code_return(&g->out, SECCOMP_RET_KILL_PROCESS);

	(void)code_load(&g->out, LD_ARCH, code_jump(&g->out, BPF_JEQ, g->arch, number, killed));
}

static int generate(struct gen *g, struct sock_filter *ret_code, unsigned short *ret_count)
{
	struct arena *arena = g->f->arena;

	g->fates = arena_array(arena, FATE_MAX, sizeof(*g->fates));
	g->ranges = arena_array(arena, RANGE_MAX, sizeof(*g->ranges));
	g->out.code = arena_array(arena, FILTER_SIZE_MAX, sizeof(*g->out.code));
	g->out.start = FILTER_SIZE_MAX;
	if (!g->fates || !g->ranges || !g->out.code)
		return -ENOMEM;
	int r = find_ranges(g);
	if (r < 0)
		return r;
	put_program(g);
	return code_tidy(&g->out, arena, ret_code, ret_count);
}

int filter_compile(const struct filter *f, uint32_t arch, struct sock_filter *ret_code,
	unsigned short *ret_count, struct error *e)
{
	struct gen g = { .f = f, .arch = arch };

	if (!f->default_file || (arch != AUDIT_ARCH_X86_64 && arch != AUDIT_ARCH_AARCH64))
		return error_set(e, ERROR_POLICY, "policy", ERROR_OWN(EINVAL), f->default_file,
			"the filter has no default, or the architecture is not known");
	int r = generate(&g, ret_code, ret_count);
	if (r < 0)
		return error_set(e, ERROR_LIMIT, "policy", -r, f->default_file,
			"the filter does not fit into one BPF program");
	return 0;
}

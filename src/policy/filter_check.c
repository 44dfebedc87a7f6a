/*
 * filter_check.c - is the compiled program what the text says?
 *
 * Runs in: mkpolicy and carrel-policy, on every program before it is used, and the tests. PURE but
 * for the memory taken. Two readings that share no code, filter_eval() and the program in
 * filter_run(), are compared call by call.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>

#include "policy/filter.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))
#define NUMBER_MAX 600
#define CANDIDATE_MAX 1024 /* values of one argument */
#define ARG_COUNT 6

struct check {
	const struct filter *f;
	uint32_t arch;
	const struct sock_filter *code;
	size_t count;
	uint64_t (*values)[CANDIDATE_MAX]; /* of each argument */
	size_t value_counts[ARG_COUNT];
	uint64_t seed;
	unsigned long cases;
	struct error *e;
};

/* The same numbers in every run (xorshift): a failure can be looked at again. */
static uint64_t next_number(struct check *c)
{
	c->seed ^= c->seed << 13;
	c->seed ^= c->seed >> 7;
	c->seed ^= c->seed << 17;
	return c->seed;
}

static int differs(struct check *c, const struct seccomp_data *d, uint32_t said, uint32_t done)
{
	char on[256], name[64];

	filter_name((uint32_t)d->nr, c->arch, name, sizeof(name));
	(void)snprintf(on, sizeof(on),
		"%s: arch %#x %s(%#llx, %#llx, %#llx, %#llx, %#llx, %#llx)", c->f->default_file,
		d->arch, name, d->args[0], d->args[1], d->args[2], d->args[3], d->args[4],
		d->args[5]);
	return error_set(c->e, ERROR_INTERNAL, "policy", ERROR_OWN(EINVAL), on,
		"the compiled filter gives %#x where its text says %#x", done, said);
}

static int try_call(struct check *c, const struct seccomp_data *data)
{
	struct filter_outcome out = { 0 };
	uint32_t said = filter_eval(c->f, c->arch, data, NULL);
	int r = filter_run(c->code, c->count, data, &out);

	if (r < 0)
		return error_set(c->e, ERROR_INTERNAL, "policy", ERROR_OWN(EINVAL),
			c->f->default_file, "the compiled filter is not a valid program");
	c->cases++;
	return out.action == said ? 0 : differs(c, data, said, out.action);
}

/* --- values ----------------------------------------------------------------------------------- */

static void add_value(struct check *c, unsigned arg, uint64_t value)
{
	size_t n = c->value_counts[arg];

	for (size_t i = 0; i < n; i++)
		if (c->values[arg][i] == value)
			return;
	if (n < CANDIDATE_MAX)
		c->values[arg][c->value_counts[arg]++] = value;
}

/* At, beside and above one value. */
static void add_values_near(struct check *c, const struct filter_test *t, uint64_t value)
{
	uint64_t lowest = t->mask & -t->mask;

	add_value(c, t->arg, value);
	add_value(c, t->arg, value + lowest);
	add_value(c, t->arg, value - lowest);
	add_value(c, t->arg, value | ~t->mask);
	add_value(c, t->arg, value | (~t->mask & -~t->mask)); /* one bit that does not count */
	add_value(c, t->arg, value | UINT64_C(1) << 32);
	add_value(c, t->arg, value | UINT64_C(0x8000000000000000));
	add_value(c, t->arg, value << 32);
}

static void add_test_values(struct check *c, const struct filter_test *t)
{
	for (size_t i = 0; i < t->value_count; i++)
		add_values_near(c, t, t->values[i]);
	add_value(c, t->arg, t->mask);
	add_value(c, t->arg, ~t->mask);
	/* A mask of scattered bits: each alone. */
	for (unsigned bit = 0; bit < 64 && t->mask < UINT32_MAX; bit++)
		if (t->mask >> bit & 1)
			add_value(c, t->arg, UINT64_C(1) << bit);
}

/* The values worth trying for number @nr. Returns the number of combinations, at least 1. */
static uint64_t collect_values(struct check *c, uint32_t nr)
{
	uint64_t product = 1;

	for (unsigned a = 0; a < ARG_COUNT; a++) {
		c->value_counts[a] = 0;
		add_value(c, a, 0);
	}
	for (size_t i = 0; i < c->f->rule_count; i++) {
		const struct filter_rule *rule = &c->f->rules[i];

		if (filter_rule_number(rule, c->arch) != (int)nr)
			continue;
		for (size_t t = 0; t < rule->test_count; t++)
			add_test_values(c, &rule->tests[t]);
	}
	for (unsigned a = 0; a < ARG_COUNT; a++) {
		if (c->value_counts[a] > 1)
			add_value(c, a, UINT64_MAX);
		product *= c->value_counts[a]; /* at most 2^60 */
	}
	return product;
}

/* --- calls ------------------------------------------------------------------------------------ */

static int try_combination(struct check *c, uint32_t nr, uint64_t index)
{
	struct seccomp_data data = { .nr = (int)nr, .arch = c->arch };

	for (unsigned a = 0; a < ARG_COUNT; a++) {
		data.args[a] = c->values[a][index % c->value_counts[a]];
		index /= c->value_counts[a];
	}
	return try_call(c, &data);
}

static int try_number(struct check *c, uint32_t nr)
{
	uint64_t product = collect_values(c, nr);
	bool is_all = product <= FILTER_CHECK_MAX;
	uint64_t count = is_all ? product : FILTER_CHECK_MAX;
	struct seccomp_data data = { .nr = (int)nr, .arch = c->arch };
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < count; i++)
		r = try_combination(c, nr, is_all ? i : next_number(c) % product);
	/* And a few arguments that nobody thought of. */
	for (unsigned i = 0; r == 0 && i < 4; i++) {
		for (unsigned a = 0; a < ARG_COUNT; a++)
			data.args[a] = next_number(c) >> (16 * i);
		r = try_call(c, &data);
	}
	return r;
}

static int try_foreign(struct check *c, uint32_t nr)
{
	static const uint32_t archs[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_X86_64,
		AUDIT_ARCH_AARCH64, 0 };

	for (size_t i = 0; i < LENGTH(archs); i++) {
		int r = try_call(c, &(struct seccomp_data){ .nr = (int)nr, .arch = archs[i] });
		if (r < 0)
			return r;
	}
	return 0;
}

static int try_all(struct check *c)
{
	static const uint32_t odd[] = { 1022, 1023, 1024, 1025, 4096, 65535, 0x3fffffff,
		0x7fffffff, 0x80000000, 0xbfffffff, 0xc0000000, 0xfffffffe, 0xffffffff };

	for (uint32_t nr = 0; nr <= NUMBER_MAX; nr++) {
		int r = try_number(c, nr);
		if (r == 0)
			r = try_call(c,
				&(struct seccomp_data){
					.nr = (int)(nr | 0x40000000), .arch = c->arch });
		if (r == 0)
			r = try_foreign(c, nr);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < LENGTH(odd); i++) {
		int r = try_number(c, odd[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

int filter_check(const struct filter *f, uint32_t arch, const struct sock_filter *code,
	size_t count, unsigned long *ret_cases, struct error *e)
{
	struct check c = { f, arch, code, count, NULL, { 0 }, UINT64_C(0x9e3779b97f4a7c15), 0,
		e };

	c.values = arena_array(f->arena, ARG_COUNT, sizeof(*c.values));
	if (!c.values)
		return error_set(e, ERROR_LIMIT, "policy", ERROR_OWN(ENOMEM), f->default_file,
			"out of memory: the filter cannot be checked");
	int r = try_all(&c);
	if (r == 0 && ret_cases)
		*ret_cases = c.cases;
	return r;
}

/*
 * filter_eval.c - what the text of a filter says about one call, without a compiler in between.
 *
 * Runs in: carrel-policy (explanations) and the tests, which compare the compiled program with it.
 * PURE. It is as plain as its rule: the last line that matches decides.
 */
#include "policy/filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>

#define X32_BIT 0x40000000u

static bool test_holds(const struct filter_test *t, uint64_t arg)
{
	uint64_t value = arg & t->mask;

	switch (t->op) {
	case FILTER_IN:
		for (size_t i = 0; i < t->value_count; i++)
			if (value == t->values[i])
				return true;
		return false;
	case FILTER_NE:
		return value != t->values[0];
	case FILTER_LT:
		return value < t->values[0];
	case FILTER_LE:
		return value <= t->values[0];
	case FILTER_GT:
		return value > t->values[0];
	case FILTER_GE:
		return value >= t->values[0];
	}
	return false;
}

static bool rule_matches(
	const struct filter_rule *rule, uint32_t arch, const struct seccomp_data *data)
{
	int nr = filter_rule_number(rule, arch);

	if (nr < 0 || nr != data->nr)
		return false;
	for (size_t i = 0; i < rule->test_count; i++)
		if (!test_holds(&rule->tests[i], data->args[rule->tests[i].arg]))
			return false;
	return true;
}

uint32_t filter_eval(const struct filter *f, uint32_t arch, const struct seccomp_data *data,
	const struct filter_rule **ret_rule)
{
	uint32_t nr = (uint32_t)data->nr;

	if (ret_rule)
		*ret_rule = NULL;
	if (data->arch != arch)
		return SECCOMP_RET_KILL_PROCESS;
	/*
	 * x32 and everything above it, as libseccomp does; but -1 is what a tracer writes to have a
	 * call skipped.
	 */
	if (arch == AUDIT_ARCH_X86_64 && nr >= X32_BIT && nr != UINT32_MAX)
		return SECCOMP_RET_KILL_PROCESS;
	for (size_t i = f->rule_count; i > 0; i--) {
		if (!rule_matches(&f->rules[i - 1], arch, data))
			continue;
		if (ret_rule)
			*ret_rule = &f->rules[i - 1];
		return f->rules[i - 1].action;
	}
	return f->default_action;
}

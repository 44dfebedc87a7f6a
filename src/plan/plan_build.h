/*
 * plan_build.h - from policy and facts to a plan.
 *
 * Runs in: the launcher and carrel-policy. PURE: no system calls.
 */
#pragma once

#include <linux/filter.h>

#include "plan/plan.h"

/*
 * plan_build - policy + facts -> plan.
 * @arena: holds the plan; not sealed here. @argv: the command, NULL-terminated, borrowed.
 * @filter: the system-call program; borrowed.
 * Returns 0, or -errno with @e: ERROR_PATH (a rule that cannot be met), ERROR_UNAVAILABLE (a required or
 * not degradable wall is unavailable), ERROR_LIMIT (too many rules, arena full).
 */
MUST_CHECK int plan_build(struct plan *ret, struct arena *arena, const struct policy *policy,
	const struct facts *facts, const char *const *argv, const struct sock_filter *filter,
	unsigned short filter_count, struct error *e);

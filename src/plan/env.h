/*
 * env.h - the payload's environment.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#pragma once

#include "plan/plan.h"

/*
 * plan_environment - fill plan->envp from the policy's `env` and `unsetenv` lines, the caller's
 * environment (facts) and carrel's own variables (CARREL_*, TMPDIR). What no line allows does not
 * get in. Returns 0 or -errno with @e.
 */
MUST_CHECK int plan_environment(struct plan *plan, struct error *e);

/*
 * plan_env_rule - the policy's line that set @entry (NAME=VALUE of plan->envp). The line's value is
 * NULL if it took the caller's. Returns NULL if carrel itself set the variable.
 */
const struct env_rule *plan_env_rule(const struct plan *plan, const char *entry);

/* plan_find_env - the value of NAME in the payload's environment, or NULL. */
const char *plan_find_env(const struct plan *plan, const char *name);

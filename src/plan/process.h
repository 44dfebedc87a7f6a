/*
 * process.h - the operations on init itself: identity, limits, capabilities, Landlock, filter.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#pragma once

#include "plan/plan.h"
#include "plan/tree.h"

/*
 * plan_process - append the operations that follow the mounts, and state each wall.
 * @proc_slot: the slot of the session's procfs. Returns 0 or -errno with @e: ERROR_UNAVAILABLE where a wall
 * is unavailable and the policy does not say `degraded`, or requires it.
 */
MUST_CHECK int plan_process(
	struct plan *plan, const struct tree *tree, uint16_t proc_slot, struct error *e);

/*
 * network.h - the operations that make a session's network, where the policy says `net allow`.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#pragma once

#include "plan/plan.h"

/*
 * plan_network - append them; they come after the mounts, while init still has its rights. Returns
 * 0 or -errno with @e:
 * ERROR_UNAVAILABLE where there is no network namespace, ERROR_POLICY where the policy names more than NETRULE_LISTEN_MAX
 * ports, or publishes what it cannot, ERROR_LIMIT.
 */
MUST_CHECK int plan_network(struct plan *plan, struct error *e);

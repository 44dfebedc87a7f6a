/*
 * network.h - what carrel-egress has reported, in the form of the session's report.
 *
 * Runs in: S.
 */
#pragma once

#include "base/arena.h"
#include "host/egress/egress.h"
#include "host/report/report.h"
#include "plan/policy.h"

/*
 * network_report - fill in the network of @r: what the session published, and what was reached
 * where the policy says `net allow`. @arena: owns the list; without room in it the names count as
 * untold. Borrows @g and @policy.
 */
void network_report(struct report *r, const struct egress *g, const struct policy *policy,
	struct arena *arena);

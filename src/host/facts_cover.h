/*
 * facts_cover.h - hide and protect rules about places where a bind shows something else.
 *
 * Runs in: the launcher and carrel-policy, outside. May not: change anything.
 */
#pragma once

#include "host/resolve.h"
#include "plan/plan.h"

/*
 * facts_cover - for each rule about a place below a bind's destination, look at what the bind shows
 * there instead of what the host has there: a fact for it is added, and that of the host is marked
 * `covered`. After all rules were looked up; costs nothing without binds. 0 or -errno.
 */
MUST_CHECK int facts_cover(
	struct facts *facts, struct resolver *resolver, const struct policy *policy);

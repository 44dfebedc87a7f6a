/*
 * promote_session.h - what the policy's `promote` lines ask for, when the command has succeeded.
 *
 * Runs in: the launcher, when every process of the session is dead, before what appeared at protected
 * paths is quarantined (so that what was promoted is looked at as well) and the scratch goes.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "host/promote/until.h"
#include "host/report/report.h"
#include "host/session/session.h"
#include "plan/plan.h"

/*
 * promote_session - promote all that the lines name; one that fails does not keep others from being
 * promoted. A line without wild cards must name something.
 * @until: what is not promoted by then stays. @arena: owns what @report then points to. Returns 0, or -errno of the first failure with @e: then
 * something of value is still in the scratch.
 */
MUST_CHECK int promote_session(const struct plan *plan, const struct session *session,
	struct until *until, struct arena *arena, struct report *report, struct error *e);

/*
 * close.h - what a session leaves behind: protected paths, and its own directory.
 *
 * Runs in: the launcher, when every process of the session is dead.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "host/report.h"
#include "host/session.h"
#include "plan/plan.h"

/*
 * close_quarantine - move away what appeared at protected paths that were absent, or that are not what
 * was protected any more. @breached: the session was ended because the host replaced one; @lost: something of
 * value is still in the scratch, which goes first where a full disk leaves no room for the quarantine.
 * @arena: owns what @report then points to. Returns 0 or -errno with @e where something that appeared
 * still stands.
 */
MUST_CHECK int close_quarantine(const struct plan *plan, const struct session *session,
	bool breached, bool lost, struct arena *arena, struct report *report, struct error *e);

/*
 * close_directory - keep the session directory where the policy says so, or where @lost says that
 * something of value is still in it; else remove it.
 * Fills the scratch and teardown members of @report (texts in @arena). Returns 0 or -errno with @e.
 */
MUST_CHECK int close_directory(const struct plan *plan, struct session *session, bool lost,
	struct arena *arena, struct report *report, struct error *e);

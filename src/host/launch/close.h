/*
 * close.h - what a session leaves behind: protected paths, and its own directory.
 *
 * Runs in: the launcher, when every process of the session is dead.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "host/cover/cover.h"
#include "host/quarantine/newpath_watch.h"
#include "host/report/report.h"
#include "host/session/session.h"
#include "plan/plan.h"

/*
 * close_review_deadline - when the review of git must end; 0: it takes as long as it needs.
 * @deadline_ns: when the run was promised to end; 0: nothing was promised. @cut: the run's time is
 * over: half a second is left for the review. All times are of CLOCK_MONOTONIC.
 */
int64_t close_review_deadline(int64_t now_ns, int64_t deadline_ns, bool cut);

/*
 * close_quarantine - move away what appeared at protected paths that were absent, or that no longer
 * hold what was protected. @breached: carrel ended the session because the host replaced a
 * protected path.
 * @watch: what was moved before, which is reported as well. @deadline_ns: close_review_deadline():
 * what the review has not read by then is moved away unread.
 * @arena: owns what @report then points to. Returns 0 or -errno with @e where something that
 * appeared still stands.
 */
MUST_CHECK int close_quarantine(const struct plan *plan, const struct cover *cover,
	const struct newpath_watch *watch, bool breached, int64_t deadline_ns,
	struct arena *arena, struct report *report, struct error *e);

/*
 * close_directory - keep the session directory where the policy says so, or where @lost says that
 * something of value is still in it; else remove it. @deadline_ns: CLOCK_MONOTONIC; what is not removed by
 * then is left to a sweep, which is no failure; 0: none.
 * Fills the scratch and teardown members of @report (texts in @arena). Returns 0 or -errno with @e.
 */
MUST_CHECK int close_directory(const struct plan *plan, struct session *session, bool lost,
	int64_t deadline_ns, struct arena *arena, struct report *report, struct error *e);

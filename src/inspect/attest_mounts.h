/*
 * attest_mounts.h - a session's mount table against the operations of its plan.
 *
 * Runs in: carrel-inspect. PURE: two tables and a plan go in, findings come out.
 */
#pragma once

#include "inspect/finding.h"
#include "inspect/mounts.h"
#include "plan/plan.h"

/*
 * attest_mounts - judge every mount of @seen.
 * @plan:    worked out anew, so that it has another name for the session.
 * @session: the name of the session that was looked at (carrel-<id>).
 * @host:    the caller's own mounts at the time.
 * @is_gone: whether nothing is at a path of the host any more: a socket of the host that is gone needs no cover.
 */
void attest_mounts(struct findings *f, const struct plan *plan, const char *session,
	const struct mount_table *host, const struct mount_table *seen,
	bool (*is_gone)(const char *path));

/*
 * attest_rename - @text with every session name @from replaced by @to, of the same length.
 * @text itself if it has none; NULL: the arena is full.
 */
const char *attest_rename(struct arena *a, const char *text, const char *from, const char *to);

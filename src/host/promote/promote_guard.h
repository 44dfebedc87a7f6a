/*
 * promote_guard.h - where artifacts may go, and where never.
 *
 * Runs in: the supervisor and the client (host side).
 * May not: look at paths (but in promote_guard_resolve): it compares texts. What it is asked about is the
 * canonical name of something that was, or is about to be, opened beneath one of its roots.
 *
 * Promotion writes with the rights of the caller, outside of every mount that protects something. So it
 * keeps to what the session's policy says by itself: below the workspace or a `promote-to` directory, and
 * there neither at, in nor above anything that is protected, hidden, or read-only inside the workspace,
 * whether it exists or not; nor in the session's own directory.
 *
 * A client has no plan: the supervisor of a live session writes the guard to the session's record,
 * which tools do not reach.
 */
#pragma once

/* In the scratch: what tools call $TMPDIR, /tmp and /var/tmp. */
#define PROMOTE_TMP "tmp/"

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/plan.h"

struct promote_guard {
	const struct promote_root *roots; /* the first is the workspace */
	size_t root_count;
	const char *const *denied; /* absolute, canonical as far as they exist */
	size_t denied_count;
	const char *const
		*mount_points; /* in the scratch: what the session's own mounts stand on */
	size_t mount_point_count;
	bool bounded; /* scratch-size: the scratch is memory, mounted in the session alone */
	enum workspace_mode
		mode; /* direct: tools write there themselves, a rename gives them nothing */
};

/*
 * promote_guard_resolve - look at what `promote-to` names, before anything runs, and check the
 * `promote` lines as far as that is possible by then.
 * Fills facts->promote_roots. Returns 0, or -errno with @e (ERROR_PATH, ERROR_POLICY: names the line).
 */
MUST_CHECK int promote_guard_resolve(
	struct facts *facts, struct arena *a, const struct policy *policy, struct error *e);

/* promote_guard_from_plan - @a: owns the lists; the texts stay the plan's. 0 or -ENOMEM. */
MUST_CHECK int promote_guard_from_plan(
	struct promote_guard *ret, struct arena *a, const struct plan *plan);

/* promote_guard_write - note the guard in the session's record @dir. 0 or -errno. */
MUST_CHECK int promote_guard_write(int dir, const struct promote_guard *g);

/*
 * promote_guard_read - the guard in the session's record @dir, in @a. 0, -ENOENT where there is
 * none, -EPROTO, ...
 */
MUST_CHECK int promote_guard_read(struct promote_guard *ret, struct arena *a, int dir);

/*
 * promote_guard_check - may something be put at @path, or a directory be made there?
 * @path: absolute, canonical, below a root. 0, or -EPERM with @e (ERROR_PROMOTE).
 */
MUST_CHECK int promote_guard_check(
	const struct promote_guard *g, const char *path, struct error *e);

/*
 * promote_guard_check_inside - may something be put into the directory @dir? As promote_guard_check().
 * @a: for the time of the call.
 */
MUST_CHECK int promote_guard_check_inside(
	const struct promote_guard *g, struct arena *a, const char *dir, struct error *e);

/*
 * promote_guard_foresee - the same for the directory of every `promote` line, before the launch: 0, or
 * -errno with @e, which names the line.
 */
MUST_CHECK int promote_guard_foresee(const struct plan *plan, struct arena *a, struct error *e);

/*
 * promote_pattern_below - where the pattern @pattern (glob(7), absolute) names something in the scratch, by
 * its path or as tools see it below /tmp and /var/tmp: the pattern relative to the scratch, in @a.
 * NULL where it does not, or has a ".." component.
 */
const char *promote_pattern_below(
	struct arena *a, const char *scratch_dir, const char *pattern);

/*
 * toolplace.h - whether a path on the host still leads to what the caller named, or tools have redirected it.
 *
 * Runs in: the launcher and the client, outside. May not: change anything.
 *
 * A tool of another session, or of an earlier one, may have put a link in the way of a report: carrel would then write
 * the report where the link leads, with the caller's rights. Or it put a FIFO there that nobody reads: carrel would wait
 * without a time-out. A file that the caller gives to a session has the same problem: a link to a key would bring that key in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/plan.h"

/* Directories that tools can write, canonical. */
struct toolplace {
	const char *const *dirs;
	size_t count;
};

/*
 * toolplace_of - the directories of a plan's facts, in @a; the working directory if the workspace is not known.
 * 0 or -ENOMEM.
 */
MUST_CHECK int toolplace_of(struct toolplace *ret, struct arena *a, const struct facts *facts);

/*
 * toolplace_check_dir - @dirfd was opened for the leading @length bytes of @target, the directory of a report.
 * Returns 0, and in @ret_of_tools whether tools can write in it; or -errno with @e (ERROR_REPORT): tools cannot, but a
 * link where they can led to it; or it was replaced meanwhile.
 */
MUST_CHECK int toolplace_check_dir(const struct toolplace *p, const char *target, size_t length,
	int dirfd, bool *ret_of_tools, struct error *e);

/*
 * toolplace_open - open @file for reading, as the caller named it. Where tools can write it must be a regular file, and
 * a link there must not lead to a place where they cannot write. @a: for the time of the call. The descriptor, or -errno
 * with @e (ERROR_PATH).
 */
MUST_CHECK int toolplace_open(
	const struct toolplace *p, struct arena *a, const char *file, struct error *e);

/*
 * toolplace.h - whether a path on the host is what the caller named, or what tools made of it.
 *
 * Runs in: the launcher and the client, outside. May not: change anything.
 *
 * An earlier session, or another one, may have put a link in the way of a report, which then is written, with the
 * caller's rights, where the link leads; or a FIFO in its place, which nobody reads: no time-out would end that. The
 * same for what the caller gives to a session: a link to a key would bring that key in.
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
 * toolplace_of - those of a plan's facts, in @a; where the workspace is not known, the working directory.
 * 0 or -ENOMEM.
 */
MUST_CHECK int toolplace_of(struct toolplace *ret, struct arena *a, const struct facts *facts);

/*
 * toolplace_check_dir - @dirfd was opened for the leading @length bytes of @target, the directory of a report.
 * Returns 0, and in @ret_of_tools whether it is one of tools'; or -errno with @e (ERROR_REPORT): it is none, and a
 * link in one led to it; or it was replaced meanwhile.
 */
MUST_CHECK int toolplace_check_dir(const struct toolplace *p, const char *target, size_t length,
	int dirfd, bool *ret_of_tools, struct error *e);

/*
 * toolplace_open - open @file for reading, as the caller named it. What lies where tools can write must be a regular
 * file, and no link of theirs leads to what lies elsewhere. @a: for the time of the call. The descriptor, or -errno
 * with @e (ERROR_PATH).
 */
MUST_CHECK int toolplace_open(
	const struct toolplace *p, struct arena *a, const char *file, struct error *e);

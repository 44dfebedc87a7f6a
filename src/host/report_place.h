/*
 * report_place.h - whether a report's directory is what the caller named, or what tools made of it.
 *
 * Runs in: the launcher and the client, outside. May not: change anything.
 *
 * An earlier session, or another one, may have put a link in the way of a report, which then is written, with the
 * caller's rights, where the link leads; or a FIFO in its place, which nobody reads: no time-out would end that.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/plan.h"

/* Directories that tools can write, canonical. */
struct report_place {
	const char *const *dirs;
	size_t count;
};

/*
 * report_place_of - those of a plan's facts, in @a; where the workspace is not known, the working directory.
 * 0 or -ENOMEM.
 */
MUST_CHECK int report_place_of(
	struct report_place *ret, struct arena *a, const struct facts *facts);

/*
 * report_place_check - @dirfd was opened for the leading @length bytes of @target, the directory of a report.
 * Returns 0, and in @ret_of_tools whether it is one of tools'; or -errno with @e (ERROR_REPORT): it is none, and a
 * link in one led to it; or it was replaced meanwhile.
 */
MUST_CHECK int report_place_check(const struct report_place *p, const char *target,
	size_t length, int dirfd, bool *ret_of_tools, struct error *e);

/*
 * census.h - what a tree holds, within bounds: for the report on a scratch that is kept, or was memory.
 *
 * Runs in: the supervisor (host side), on trees that tools wrote.
 * May not: change anything, follow a link, cross a mount, take longer than its bound.
 *
 * A scratch that is removed needs no census: remove_tree() counts what it removes, in the same way.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum {
	CENSUS_MAX_ENTRIES = 1000000,
	CENSUS_MAX_MS = 200, /* for a launcher at its end */
	CENSUS_MAX_DEPTH = 64,
};

struct census {
	uint64_t files;  /* regular files; a file with two names counts twice */
	uint64_t others; /* links, and what is neither these nor a directory */
	uint64_t bytes; /* sum of their apparent sizes (st_size): a hole counts as its length */
	bool truncated; /* a bound was reached, or a directory could not be read: at least so many */
};

/*
 * census_tree - count the regular files below @name, which is a directory in @parent_fd, or "." for
 * that itself, for @max_ms milliseconds at most.
 * @ret: filled in on success, untouched otherwise.
 * Costs 6 system calls, 4 for each directory below (18 for a scratch with three empty ones) and one
 * for each file.
 * Returns 0 or -errno: -ENOENT, -ENOTDIR, -ELOOP, -EXDEV where @name is no
 * directory of its own, -EACCES, -EMFILE, -ENOMEM. See: openat2(2), getdents(2).
 */
MUST_CHECK int census_tree(int parent_fd, const char *name, int max_ms, struct census *ret);

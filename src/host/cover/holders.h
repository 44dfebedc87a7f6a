/*
 * holders.h - which processes hold something that was uncovered for a moment.
 *
 * Runs in: the coverer's child, in the session's mount namespace, while everything stands still. What it reads
 * tools have made: descriptors, names, mappings; it compares numbers and the beginnings of names, and opens none of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "host/cover/freeze.h"

struct uncovered {
	const char *path; /* as the session sees it */
	dev_t dev;        /* what was found there */
	ino_t ino;
	bool is_dir;
};

/*
 * holders_each - @call for each process that holds one of @things: by a descriptor of any kind, as its working or
 * root directory, in a mapping; of a directory also what lies in it. A descriptor for reading is as good as one for
 * writing, since /proc/self/fd opens it again by another. One that is on its way through a socket cannot be
 * seen (unix(7), SCM_RIGHTS): who has such a socket counts as a holder of the first thing.
 * Each process once. 0, -ETIMEDOUT at the deadline of @f, or -errno; or what @call returned, if not 0.
 */
MUST_CHECK int holders_each(const struct freeze *f, const struct uncovered *things,
	size_t count, int (*call)(void *context, pid_t process, size_t thing), void *context);

/*
 * holders.h - finds the processes that hold a file which was uncovered for a moment.
 *
 * Runs in: the coverer's child, in the session's mount namespace, while all processes are stopped. Tools have made what it reads
 * (descriptors, names, mappings): it compares numbers and the beginnings of names, and opens none of these files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "host/cover/freeze.h"

struct uncovered {
	const char *path; /* as the session sees it */
	dev_t dev;        /* of what was found there */
	ino_t ino;
	bool is_dir;
};

/*
 * holders_each - @call once for each process that holds one of @things: by a descriptor of any kind, as its working or
 * root directory, or in a mapping. A holder of something below a directory holds the directory. A descriptor for reading counts as
 * one for writing does, since a process can open it again through /proc/self/fd. The search cannot see a descriptor that was sent
 * over a socket and not received yet (unix(7), SCM_RIGHTS): a process with such a socket counts as a holder of the first thing.
 * 0, -ETIMEDOUT at the deadline of @f, or -errno; or what @call returned, if not 0.
 */
MUST_CHECK int holders_each(const struct freeze *f, const struct uncovered *things,
	size_t count, int (*call)(void *context, pid_t process, size_t thing), void *context);

/*
 * scratch_list.h - what is in a scratch, while tools write to it.
 *
 * Runs in: the client. May not: follow a link, cross a mount, go on for ever: an endless tree is cut.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <time.h>

#include "base/arena.h"
#include "base/error.h"

enum { SCRATCH_LIST_MAX = 10000, SCRATCH_LIST_DEPTH = 64 };

struct scratch_entry {
	const char *path; /* relative to the scratch; any bytes */
	mode_t mode;
	off_t size;
	struct timespec modified;
};

struct scratch_list {
	struct scratch_entry *entries; /* sorted by path */
	size_t count;
	bool truncated; /* there is more: too many, too deep, or a directory cannot be read */
};

/*
 * scratch_list_read - list everything below @below (relative to the scratch, NULL: all of it).
 * @a: owns the result. The list leaves out what vanishes meanwhile.
 * Returns 0, or -errno with @e: -ENOENT, -ENOTDIR, -ELOOP.
 */
MUST_CHECK int scratch_list_read(struct scratch_list *ret, struct arena *a, int scratch,
	const char *below, struct error *e);

/* scratch_list_print - one line for each: type, size, time, name. 0 or -errno with @e. */
MUST_CHECK int scratch_list_print(const struct scratch_list *l, struct error *e);

/* scratch_list_json - as one JSON document. @path: of the scratch. 0 or -errno with @e. */
MUST_CHECK int scratch_list_json(
	const struct scratch_list *l, const char *path, struct error *e);

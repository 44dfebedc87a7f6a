/*
 * gitindex.h - the submodule entries of a git index, read from a file that nobody vouches for.
 *
 * Runs in: the launcher, outside, before a session and when it ends. May not: allocate, trust a length in the
 * file, read twice. See: gitformat-index(5), versions 2 to 4.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct gitindex {
	char name[PATH_MAX]; /* of the entry just read: relative to the work tree, any bytes */
	/* The reader's own: */
	int fd; /* borrowed */
	uint32_t version, left;
	size_t hash_size, name_length;
	size_t at, length;
	unsigned char buffer[32768];
};

/*
 * gitindex_start - begin reading @fd (borrowed, at its start).
 * @hash_size: bytes of an object name, 20 or 32. 0, -EBADMSG for no index, or -errno.
 */
MUST_CHECK int gitindex_start(struct gitindex *x, int fd, size_t hash_size);

/*
 * gitindex_next - the next submodule entry ("gitlink"), into @x->name.
 * Returns 1, 0 after the last entry, -EBADMSG where git would refuse the file, or -errno.
 */
MUST_CHECK int gitindex_next(struct gitindex *x);

/*
 * gitpath.h - opening, listing and reading inside git directories that nobody vouches for.
 *
 * Runs in: the launcher, outside. May not: follow a magic link, wait on a FIFO, read without a
 * bound, write.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * gitpath_open - openat2(2) with O_CLOEXEC; magic links are never followed.
 * @resolve: further RESOLVE_* flags. Returns a descriptor or -errno.
 */
MUST_CHECK int gitpath_open(int dirfd, const char *path, int flags, uint64_t resolve);

/* gitpath_of - the canonical path of @fd, into @ret_path. Its length, or -errno. */
MUST_CHECK ssize_t gitpath_of(int fd, char *ret_path, size_t size);

/*
 * gitpath_read - a regular file of at most @max bytes, its last component no symbolic link.
 * @ret_text: at least @max + 1 bytes; NUL-terminated. Returns the length, -EFBIG where it is
 * longer, -EBADMSG where it has NUL bytes, -EINVAL for anything but a regular file, or -errno.
 */
MUST_CHECK ssize_t gitpath_read(int dirfd, const char *path, char *ret_text, size_t max);

/* A directory being read. */
struct gitpath_list {
	int fd; /* borrowed */
	uint32_t at, length;
	_Alignas(8) char buffer[8192];
};

/*
 * gitpath_next - the next entry of a listing that was started with its fd and zero lengths.
 * @ret_name: valid until the next call; never "." or "..". @ret_type: DT_*, never DT_UNKNOWN.
 * Returns 1, 0 at the end, or -errno.
 */
MUST_CHECK int gitpath_next(
	struct gitpath_list *list, const char **ret_name, unsigned char *ret_type);

/* gitpath_type - DT_* of @path, links not followed; 0 where there is nothing, or -errno. */
MUST_CHECK int gitpath_type(int dirfd, const char *path);

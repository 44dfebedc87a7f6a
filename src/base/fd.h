/*
 * fd.h - descriptors with one owner.
 *
 * Runs in: every process outside the box. May not: keep state.
 * Every descriptor is O_CLOEXEC from birth; `autofd int fd = -1;` closes it at the end of scope.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* fd_close - close *fd where it is open and set it to -1. For the cleanup attribute. */
void fd_close(int *fd);
#define autofd __attribute__((cleanup(fd_close), unused))

/* take_fd - give the descriptor away: returns *fd and leaves -1 behind. */
static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* fd_write_all - write every byte, retrying EINTR and short writes. 0 or -errno. */
MUST_CHECK int fd_write_all(int fd, const void *data, size_t size);

/* fd_write_to - the same as a writer_fn (base/writer.h); @context points at an int, the descriptor. */
MUST_CHECK int fd_write_to(void *context, const void *data, size_t size);

/* fd_write_visible - @text, and what a terminal would obey as \xNN (text_visible()). 0 or -errno. */
MUST_CHECK int fd_write_visible(int fd, const char *text);

/*
 * fd_read_up_to - read until @size bytes are there, or to the end of the file: never fewer for a signal or a short
 * read. Returns how many, or -errno.
 */
MUST_CHECK ssize_t fd_read_up_to(int fd, char *ret_data, size_t size);

/*
 * fd_read_file - read to the end of file, at most @max bytes.
 * @ret_data: at least @max + 1 bytes, owned by the caller; NUL-terminated on success.
 * Returns the length, -EFBIG where the file is longer than @max, or -errno.
 */
MUST_CHECK ssize_t fd_read_file(int fd, char *ret_data, size_t max);

/* fd_open_at - openat(2) with O_CLOEXEC, again after EINTR. Returns the descriptor or -errno. */
MUST_CHECK int fd_open_at(int dirfd, const char *path, int flags, unsigned mode);

/*
 * fd_openat2 - openat2(2), again after EINTR and, 64 times at most, after EAGAIN: something was renamed while
 * the kernel walked the path, and somebody may do that for ever. Returns the descriptor or -errno.
 */
struct open_how;
MUST_CHECK int fd_openat2(int dirfd, const char *path, const struct open_how *how);

/* fd_random - @size random bytes from getrandom(2), 0 or -errno. */
MUST_CHECK int fd_random(void *ret_data, size_t size);

/*
 * copy.c - see copy.h.
 *
 * Runs in: the supervisor and the client (host side).
 */
#include "host/promote/copy.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 << 20 };

/* Copy by copy_file_range(2) as far as that works: not across file systems, nor on some. */
static int copy_in_place(int from_fd, int to_fd, off_t *at, off_t end, struct until *until)
{
	while (*at < end) {
		int r = until_is_over(until);
		if (r < 0)
			return r;
		size_t want = end - *at < CHUNK_BYTES ? (size_t)(end - *at) : CHUNK_BYTES;
		int64_t in = *at, out = *at;
		long n = syscall(SYS_copy_file_range, from_fd, &in, to_fd, &out, want, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EINVAL; /* some file systems say so instead of refusing */
		*at += n;
	}
	return 0;
}

static bool has_no_range(int r)
{
	return r == -EXDEV || r == -EINVAL || r == -ENOSYS || r == -EOPNOTSUPP || r == -EPERM ||
		r == -EBADF;
}

/* Copies the bytes from @at to @end. */
static int copy_range(int from_fd, int to_fd, off_t at, off_t end, struct until *until)
{
	int r = copy_in_place(from_fd, to_fd, &at, end, until);

	if (!has_no_range(r))
		return r;
	if (lseek(to_fd, at, SEEK_SET) < 0)
		return -errno;
	while (at < end) {
		r = until_is_over(until);
		if (r < 0)
			return r;
		size_t want = end - at < CHUNK_BYTES ? (size_t)(end - at) : CHUNK_BYTES;
		ssize_t n = sendfile(to_fd, from_fd, &at, want);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO; /* it became shorter: somebody still writes to it */
	}
	return 0;
}

/* Copies data and leaves out holes. */
static int copy_data(int from_fd, int to_fd, off_t size, struct until *until)
{
	off_t at = 0;

	if (ftruncate(to_fd, size) < 0)
		return -errno;
	while (at < size) {
		off_t data = lseek(from_fd, at, SEEK_DATA);

		if (data < 0 && errno == ENXIO)
			return 0; /* only a hole is left */
		if (data < 0)
			return -errno;
		off_t hole = lseek(from_fd, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		at = hole < size ? hole : size;
		int r = copy_range(from_fd, to_fd, data, at, until);
		if (r < 0)
			return r;
	}
	return 0;
}

int copy_contents(
	int from_fd, int to_fd, off_t size, struct until *until, enum copy_how *ret_how)
{
	/* Whatever the reason that blocks cannot be shared: the bytes can still be copied. */
	bool shared = size > 0 && ioctl(to_fd, FICLONE, from_fd) == 0;
	int r = shared ? 0 : copy_data(from_fd, to_fd, size, until);

	if (r == 0 && ret_how)
		*ret_how = shared ? COPY_REFLINKED : COPY_COPIED;
	return r;
}

/*
 * fd.c - see fd.h.
 *
 * Runs in: every process outside the box.
 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"

void fd_close(int *fd)
{
	/* close(2) must not be retried on EINTR on Linux, and errno belongs to the caller. */
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = saved;
}

int fd_write_all(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size > 0) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

int fd_write_to(void *context, const void *data, size_t size)
{
	return fd_write_all(*(const int *)context, data, size);
}

int fd_write_visible(int fd, const char *text)
{
	char part[1024];

	while (*text) {
		size_t n = text_visible(&text, "", part, sizeof(part));
		int r = fd_write_all(fd, part, n);

		if (r < 0)
			return r;
	}
	return 0;
}

ssize_t fd_read_up_to(int fd, char *ret_data, size_t size)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = read(fd, ret_data + got, size - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

ssize_t fd_read_file(int fd, char *ret_data, size_t max)
{
	/* One byte more than allowed tells "exactly max" from "too long". */
	ssize_t got = fd_read_up_to(fd, ret_data, max + 1);

	if (got < 0)
		return got;
	if ((size_t)got > max)
		return -EFBIG;
	ret_data[got] = '\0';
	return got;
}

int fd_open_at(int dirfd, const char *path, int flags, unsigned mode)
{
	int fd;

	do
		fd = openat(dirfd, path, flags | O_CLOEXEC, mode);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

int fd_openat2(int dirfd, const char *path, const struct open_how *how)
{
	for (int attempt = 0; attempt < 64; attempt++) {
		long fd = syscall(SYS_openat2, dirfd, path, how, sizeof(*how));

		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return -EAGAIN;
}

int fd_random(void *ret_data, size_t size)
{
	char *at = ret_data;

	while (size > 0) {
		ssize_t n = getrandom(at, size, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

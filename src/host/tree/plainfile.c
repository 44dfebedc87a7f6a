/*
 * plainfile.c - see plainfile.h.
 *
 * Runs in: every process outside.
 */
#include "host/tree/plainfile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

static int open_place(int dirfd, const char *path, uint64_t resolve, bool follow)
{
	struct open_how how = {
		.flags = (uint64_t)(O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW)),
		.resolve = RESOLVE_NO_MAGICLINKS | resolve,
	};

	return fd_openat2(dirfd, path, &how);
}

int plainfile_reopen(int place)
{
	char path[32];
	struct stat st;

	if (fstat(place, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	/* A lease on it would let its holder keep us waiting: O_NONBLOCK. */
	int fd = openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int plainfile_open(int dirfd, const char *path, uint64_t resolve, bool follow)
{
	autofd int place = open_place(dirfd, path, resolve, follow);

	return place < 0 ? place : plainfile_reopen(place);
}

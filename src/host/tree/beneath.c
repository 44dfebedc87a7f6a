/*
 * beneath.c - see beneath.h.
 *
 * Runs in: the supervisor and the removal workers it forks (host side).
 */
#include "host/tree/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/tree/plainfile.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* the same number on every architecture; Linux 6.6 */
#endif

int beneath_open(int dirfd, const char *path, int flags, enum beneath_mounts mounts)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	if (mounts == BENEATH_SAME_MOUNT)
		how.resolve |= RESOLVE_NO_XDEV;
	return fd_openat2(dirfd, path, &how);
}

int beneath_chmod(int fd, unsigned mode)
{
	if (syscall(SYS_fchmodat2, fd, "", mode, AT_EMPTY_PATH) == 0)
		return 0;
	/* EPERM as well: filters of container engines answer unknown calls with it. */
	if (errno != ENOSYS && errno != EPERM)
		return -errno;
	char path[32];
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return fchmodat(AT_FDCWD, path, mode, 0) < 0 ? -errno : 0;
}

/* The directory as an O_PATH descriptor, its mode already 0700. */
static int open_unlocked(int dirfd, const char *name)
{
	autofd int fd = beneath_open(
		dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, BENEATH_SAME_MOUNT);

	if (fd < 0)
		return fd;
	int result = beneath_chmod(fd, 0700);
	return result < 0 ? result : take_fd(&fd);
}

int beneath_unlock_dir(int dirfd, const char *name)
{
	autofd int fd = open_unlocked(dirfd, name);

	return fd < 0 ? fd : 0;
}

int beneath_open_dir(int dirfd, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
	int opened = beneath_open(dirfd, name, flags, BENEATH_SAME_MOUNT);

	if (opened != -EACCES)
		return opened;
	autofd int fd = open_unlocked(dirfd, name);
	if (fd < 0)
		return fd;
	/* By ".", so that it is the very directory that was unlocked. */
	return beneath_open(fd, ".", flags, BENEATH_SAME_MOUNT);
}

int beneath_open_file(int dirfd, const char *name)
{
	struct stat st;
	autofd int place = beneath_open(dirfd, name, O_PATH | O_NOFOLLOW, BENEATH_SAME_MOUNT);

	if (place < 0)
		return place;
	int opened = plainfile_reopen(place);
	/* A mode belongs to all names of a file. */
	if (opened != -EACCES || fstat(place, &st) < 0 || st.st_nlink != 1)
		return opened;
	int r = beneath_chmod(place, 0600);
	return r < 0 ? r : plainfile_reopen(place);
}

ssize_t beneath_read(int fd, void *buffer, size_t size)
{
	long n;

	do
		n = syscall(SYS_getdents64, fd, buffer, size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

struct beneath_entry *beneath_read_already(char *buffer, uint32_t *at, uint32_t end)
{
	while (*at < end) {
		struct beneath_entry *entry = (void *)(buffer + *at);

		*at += entry->length;
		if (!beneath_is_dots(entry->name))
			return entry;
	}
	return NULL;
}

int beneath_next(struct beneath_list *list, struct beneath_entry **ret)
{
	for (;;) {
		*ret = beneath_read_already(list->buffer, &list->at, list->end);
		if (*ret)
			return 1;
		ssize_t n = beneath_read(list->fd, list->buffer, list->size);
		if (n <= 0)
			return (int)n;
		list->at = 0;
		list->end = (uint32_t)n;
	}
}

int beneath_is_name(const char *name)
{
	return name[0] && !beneath_is_dots(name) && !strchr(name, '/');
}

/*
 * gitpath.c - see gitpath.h.
 *
 * Runs in: the launcher, outside.
 */
#include "host/git/gitpath.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/tree/beneath.h"
#include "host/tree/plainfile.h"

int gitpath_open(int dirfd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_NO_MAGICLINKS | resolve,
	};
	long fd;
	int tries = 0;

	/* EAGAIN: something was renamed while a ".." was walked under RESOLVE_BENEATH. */
	do
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	while (fd < 0 && (errno == EINTR || (errno == EAGAIN && ++tries < 16)));
	return fd < 0 ? -errno : (int)fd;
}

ssize_t gitpath_of(int fd, char *ret_path, size_t size)
{
	char link[32];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, ret_path, size);

	if (length < 0)
		return -errno;
	if (length == 0 || (size_t)length == size || ret_path[0] != '/')
		return -ENAMETOOLONG;
	ret_path[length] = '\0';
	return length;
}

ssize_t gitpath_read(int dirfd, const char *path, char *ret_text, size_t max)
{
	autofd int fd = plainfile_open(dirfd, path, 0, false);

	if (fd < 0)
		return fd;
	ssize_t length = fd_read_file(fd, ret_text, max);

	if (length > 0 && memchr(ret_text, '\0', (size_t)length))
		return -EBADMSG;
	return length;
}

int gitpath_type(int dirfd, const char *path)
{
	struct stat st;

	if (fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	return (int)((st.st_mode & S_IFMT) >> 12);
}

int gitpath_next(struct gitpath_list *list, const char **ret_name, unsigned char *ret_type)
{
	struct beneath_list names = { .fd = list->fd,
		.buffer = list->buffer,
		.size = sizeof(list->buffer),
		.at = list->at,
		.end = list->length };
	struct beneath_entry *entry;
	int r;

	while ((r = beneath_next(&names, &entry)) > 0) {
		list->at = names.at;
		list->length = names.end;
		int type = entry->type == DT_UNKNOWN ? gitpath_type(list->fd, entry->name)
						     : entry->type;
		if (type < 0)
			return type;
		if (type == 0) /* gone since */
			continue;
		*ret_name = entry->name;
		*ret_type = (unsigned char)type;
		return 1;
	}
	list->at = list->length = 0;
	return r;
}

/*
 * netlog.c - see netlog.h.
 *
 * Runs in: the launcher, outside.
 */
#include "host/egress/netlog.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

enum { DIR_MAX = 2048 };

static int refuse(struct error *e, int errnum, const char *target, const char *what)
{
	return error_set(e, ERROR_REPORT, "options", errnum, target, "%s", what);
}

/*
 * A terminal may take a part of a line and let the writer wait for room, whatever poll(2) said, and O_NONBLOCK on the
 * caller's open file would be set for the caller as well. So carrel opens the terminal once more; if that is refused,
 * the caller's descriptor serves.
 */
static int own_terminal(int fd)
{
	char path[32];

	if (!isatty(fd))
		return fd;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (own < 0)
		return fd;
	(void)close(fd);
	return own;
}

/* A descriptor of the caller's has survived an execve: one with close-on-exec is carrel's own. */
static int take_descriptor(const char *target, struct error *e)
{
	uint64_t number = 0;

	if (text_parse_count(target + 3, &number) < 0 || number > INT_MAX || number < 2)
		return refuse(e, ERROR_OWN(EINVAL), target,
			"the log of the network cannot go to the command's own streams");
	int fd = (int)number, flags = fcntl(fd, F_GETFD), mode = fcntl(fd, F_GETFL);

	if (flags < 0 || mode < 0 || (fd > 2 && (flags & FD_CLOEXEC)) || (mode & O_PATH) ||
		(mode & O_ACCMODE) == O_RDONLY)
		return refuse(e, ERROR_OWN(EBADF), target,
			"the descriptor for the log of the network is not open for writing");
	if (fd == 2)
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	else if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		fd = -1;
	return fd < 0 ? refuse(e, errno, target, "cannot keep the log's descriptor")
		      : own_terminal(fd);
}

int netlog_open(const char *target, const struct toolplace *place, struct error *e)
{
	const char *slash = strrchr(target, '/'), *name = slash ? slash + 1 : target;
	size_t length = slash ? (size_t)(name - target) : 0;
	char dir[DIR_MAX];
	bool of_tools = false;
	struct stat st;

	if (!strncmp(target, "fd:", 3))
		return take_descriptor(target, e);
	if (length >= sizeof(dir))
		return refuse(e, ENAMETOOLONG, target, "cannot open the log of the network");
	if (!*name)
		return refuse(
			e, ERROR_OWN(EISDIR), target, "the log of the network is no file");
	memcpy(dir, target, length);
	dir[length] = '\0';
	autofd int dirfd = fd_open_at(AT_FDCWD, length ? dir : ".", O_PATH | O_DIRECTORY, 0);
	if (dirfd < 0)
		return refuse(e, -dirfd, target, "cannot open the log of the network");
	int r = toolplace_check_dir(place, target, length, dirfd, &of_tools, e);
	if (r < 0)
		return r;
	if (of_tools) {
		r = refuse(e, ERROR_OWN(EPERM), target,
			"the command could write the log of the network there");
		error_hint(e, "name a file outside of the workspace");
		return r;
	}
	autofd int fd = fd_open_at(dirfd, name,
		O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
	if (fd == -ENXIO)
		error_hint(e, "it is a FIFO that nobody reads: start its reader first");
	if (fd < 0)
		return refuse(e, -fd, target, "cannot open the log of the network");
	if (fstat(fd, &st) < 0 ||
		(!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode)))
		return refuse(e, ERROR_OWN(EINVAL), target,
			"the log of the network is neither a file nor a FIFO");
	return take_fd(&fd);
}

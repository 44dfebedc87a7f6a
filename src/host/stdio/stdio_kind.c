/*
 * stdio_kind.c - what kind of thing a descriptor of the caller's is; see stdio.h for what follows.
 *
 * Runs in: S (or the client of an exec). May not: change the caller's descriptions, wait.
 */
#include "host/stdio/stdio_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/magic.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

const char *const stdio_stream_names[STDIO_STREAMS] = {
	"standard input",
	"standard output",
	"standard error",
};

static int socket_option(int fd, int name, int *ret_value)
{
	socklen_t size = sizeof(*ret_value);

	return getsockopt(fd, SOL_SOCKET, name, ret_value, &size) < 0 ? -errno : 0;
}

/* Returns NULL with *ret_kind set, or why it is refused. */
static const char *classify_socket(int fd, enum stdio_kind *ret_kind)
{
	int family = 0;
	int type = 0;
	int listening = 0;

	if (socket_option(fd, SO_DOMAIN, &family) < 0 || socket_option(fd, SO_TYPE, &type) < 0)
		return "a socket that cannot be examined";
	if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
		return "a socket of a family that is not passed on";
	if (type != SOCK_STREAM && type != SOCK_SEQPACKET) {
		*ret_kind = STDIO_KIND_DATAGRAM;
		return type == SOCK_DGRAM ? NULL : "a raw socket";
	}
	if (socket_option(fd, SO_ACCEPTCONN, &listening) < 0 || listening)
		return "a listening socket";
	/*
	 * An unconnected one could still connect to the abstract sockets of the host's network
	 * namespace; a connected one cannot be connected anew (EISCONN), its peer gone or not.
	 */
	struct sockaddr_un peer;
	socklen_t size = sizeof(peer);
	bool connected =
		family == AF_UNIX && getpeername(fd, (struct sockaddr *)&peer, &size) == 0;
	*ret_kind = connected ? STDIO_KIND_UNIX : STDIO_KIND_SOCKET;
	return NULL;
}

static enum stdio_kind classify_device(int fd, dev_t rdev)
{
	unsigned number = minor(rdev);

	if (major(rdev) == 1)
		return number == 3 || number == 5 || number == 7 || number == 8 || number == 9
			? STDIO_KIND_HARMLESS
			: STDIO_KIND_DEVICE;
	/* A master says yes to isatty(3), but commands the terminal on its other side. */
	bool master = (major(rdev) == 5 && number == 2) || major(rdev) == 2;
	return !master && isatty(fd) ? STDIO_KIND_TERMINAL : STDIO_KIND_DEVICE;
}

static enum stdio_kind classify_fifo(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC)
		return STDIO_KIND_PIPE;
	return STDIO_KIND_FIFO;
}

const char *stdio_classify(int fd, enum stdio_kind *ret_kind, int *ret_access)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fstat(fd, &st) < 0)
		return "not a usable descriptor";
	if (flags & O_PATH)
		return "an O_PATH descriptor";
	*ret_access = flags & O_ACCMODE;
	switch (st.st_mode & S_IFMT) {
	case S_IFIFO:
		*ret_kind = classify_fifo(fd);
		return NULL;
	case S_IFCHR:
		*ret_kind = classify_device(fd, st.st_rdev);
		return NULL;
	case S_IFREG:
		*ret_kind = STDIO_KIND_FILE;
		return NULL;
	case S_IFBLK:
		*ret_kind = STDIO_KIND_BLOCK;
		return NULL;
	case S_IFSOCK:
		return classify_socket(fd, ret_kind);
	case S_IFDIR:
		return "a directory";
	default:
		return "a kernel object without a file type (pidfd, epoll, ...)";
	}
}

bool stdio_same_description(int a, int b)
{
	struct stat sa, sb;
	long r = syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, a, b);

	if (r == 0)
		return true;
	if (fstat(a, &sa) < 0 || fstat(b, &sb) < 0 || sa.st_dev != sb.st_dev ||
		sa.st_ino != sb.st_ino)
		return false;
	int flags = fcntl(a, F_GETFL);
	if (flags != fcntl(b, F_GETFL))
		return false;
	/* Two descriptions that both append have one order: the file's. */
	if (S_ISREG(sa.st_mode) && (flags & O_APPEND))
		return true;
	return r < 0 && lseek(a, 0, SEEK_CUR) == lseek(b, 0, SEEK_CUR);
}

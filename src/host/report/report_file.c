/*
 * report_file.c - see report_file.h.
 *
 * Runs in: the launcher, outside, with the caller's rights.
 */
#include "host/report/report_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define NAME_FORMAT ".carrel-report-%016llx"
#define PROC_FD_SIZE 40
#define PATIENCE_MS 10000

static int refuse_target(struct error *e, int errnum, const char *target, const char *what)
{
	return error_set(e, ERROR_REPORT, "report", errnum, target, "%s", what);
}

/* --- fd:N ------------------------------------------------------------------------------------- */

/* The part of @target that names a descriptor; NULL: it is an ordinary path. */
static const char *descriptor_text(const char *target)
{
	static const char *const prefixes[] = { "fd:", "/dev/fd/", "/proc/self/fd/" };

	if (!strcmp(target, "/dev/stdin"))
		return "0";
	if (!strcmp(target, "/dev/stdout"))
		return "1";
	if (!strcmp(target, "/dev/stderr"))
		return "2";
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t length = strlen(prefixes[i]);

		if (!strncmp(target, prefixes[i], length))
			return target + length;
	}
	return NULL;
}

/* Digits only: no sign, no space, nothing after them. */
static int parse_descriptor(const char *text)
{
	int fd = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || fd > (INT_MAX - 9) / 10)
			return -EINVAL;
		fd = fd * 10 + (*text - '0');
	}
	return fd;
}

static int refuse_descriptor(struct error *e, int errnum, const char *target, const char *what)
{
	int r = refuse_target(e, errnum, target, what);

	error_hint(e, "open one for the report: --report fd:3 3>report.json");
	return r;
}

static int open_descriptor(
	const char *target, const char *digits, struct report_file *ret, struct error *e)
{
	int fd = parse_descriptor(digits);

	if (fd < 0)
		return refuse_descriptor(e, ERROR_OWN(EINVAL), target,
			"the report's descriptor is not a number");
	if (fd < 2)
		return refuse_descriptor(e, ERROR_OWN(EINVAL), target,
			"the report cannot go to the command's own stdin or stdout");
	int flags = fcntl(fd, F_GETFD);
	/* A descriptor of the caller's has survived an execve: one with close-on-exec is carrel's own. */
	if (flags < 0 || (fd > 2 && (flags & FD_CLOEXEC)))
		return refuse_descriptor(
			e, ERROR_OWN(EBADF), target, "the report's descriptor is not open");
	int mode = fcntl(fd, F_GETFL);
	if (mode < 0 || (mode & O_PATH) || (mode & O_ACCMODE) == O_RDONLY)
		return refuse_descriptor(e, ERROR_OWN(EBADF), target,
			"the report's descriptor is not open for writing");
	if (ret->dry)
		return 0;
	if (fd == 2)
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	else if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		fd = -1;
	if (fd < 0)
		return refuse_target(e, errno, target, "cannot keep the report's descriptor");
	*ret = (struct report_file){ REPORT_FILE_STREAM, .fd = fd, .dirfd = -1,
		.patience_ms = -1, .target = target };
	return 0;
}

/* --- a path ----------------------------------------------------------------------------------- */

static int refuse_unread(const struct report_file *f, struct error *e)
{
	int r = refuse_target(e, ERROR_OWN(ENXIO), f->target,
		"no process reads the FIFO that `report` names");

	error_hint(e,
		"start the reader first, or let the shell wait for it: --report fd:3 3>FIFO");
	return r;
}

/*
 * If no plan says where tools can write, a tool may have made the FIFO and may read it: opening and writing both wait with a bound.
 * O_NONBLOCK: ENXIO where nobody reads, fifo(7).
 */
static int open_stream(struct report_file *f, struct error *e)
{
	struct stat st;

	if (f->dry)
		return faccessat(f->dirfd, f->name, W_OK, AT_EACCESS) < 0
			? refuse_target(e, errno, f->target, "cannot open the report")
			: 0;
	autofd int fd =
		fd_open_at(f->dirfd, f->name, O_WRONLY | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK, 0);

	if (fd == -ENXIO)
		return refuse_unread(f, e);
	if (fd < 0)
		return refuse_target(e, -fd, f->target, "cannot open the report");
	/* Somebody may have replaced it between fstatat and openat: never write into the replacement. */
	if (fstat(fd, &st) < 0 || (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode)))
		return refuse_target(e, ERROR_OWN(EINVAL), f->target,
			"the report was replaced while it was opened");
	f->kind = REPORT_FILE_STREAM;
	f->patience_ms = PATIENCE_MS;
	f->fd = take_fd(&fd);
	return 0;
}

static void proc_path(int fd, char ret_path[PROC_FD_SIZE])
{
	(void)snprintf(ret_path, PROC_FD_SIZE, "/proc/self/fd/%d", fd);
}

static int make_name(char ret_name[REPORT_TEMP_SIZE])
{
	unsigned long long number;
	int r = fd_random(&number, sizeof(number));

	if (r < 0)
		return r;
	(void)snprintf(ret_name, REPORT_TEMP_SIZE, NAME_FORMAT, number);
	return 0;
}

/* Creates a hidden file with a random name beside the target; returns its descriptor. */
static int create_named(struct report_file *f)
{
	char name[sizeof(f->temp)];
	int r = make_name(name);

	if (r < 0)
		return r;
	int fd = fd_open_at(f->dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
	if (fd >= 0)
		memcpy(f->temp, name, sizeof(name));
	return fd;
}

static void remove_named(struct report_file *f)
{
	/* Nothing can be done about a failure here, and the first error is already known. */
	if (f->temp[0])
		(void)unlinkat(f->dirfd, f->temp, 0);
	f->temp[0] = '\0';
}

/*
 * Some file systems have no O_TMPFILE (EOPNOTSUPP; older kernels EISDIR, ENOENT or EINVAL), and
 * without /proc an ordinary user cannot give an unnamed file a name. Then this makes a file to show
 * that one can be made here, removes it, and makes it again when there is something to write: during
 * the session no name of ours stands in a directory that tools may be able to write.
 */
static int open_file(struct report_file *f, struct error *e)
{
	char path[PROC_FD_SIZE];

	if (f->dry)
		return faccessat(f->dirfd, ".", W_OK | X_OK, AT_EACCESS) < 0
			? refuse_target(e, errno, f->target, "cannot create the report")
			: 0;
	int fd = fd_open_at(f->dirfd, ".", O_TMPFILE | O_WRONLY, 0666);

	if (fd >= 0) {
		proc_path(fd, path);
		if (faccessat(AT_FDCWD, path, F_OK, 0) == 0) {
			f->kind = REPORT_FILE_UNNAMED;
			f->fd = fd;
			return 0;
		}
		fd_close(&fd);
	} else if (fd != -EOPNOTSUPP && fd != -EISDIR && fd != -ENOENT && fd != -EINVAL) {
		return refuse_target(e, -fd, f->target, "cannot create the report");
	}
	fd = create_named(f);
	if (fd < 0)
		return refuse_target(e, -fd, f->target, "cannot create the report");
	fd_close(&fd);
	remove_named(f);
	f->kind = REPORT_FILE_NAMED;
	return 0;
}

/* Whether a regular file may be replaced at the end: what the directory's rights do not show. */
static int check_existing(const struct report_file *f, const struct stat *st, struct error *e)
{
	struct stat dir;

	if (faccessat(f->dirfd, f->name, W_OK, 0) < 0)
		return refuse_target(
			e, errno, f->target, "cannot write to the report that exists");
	if (fstatat(f->dirfd, ".", &dir, 0) < 0)
		return refuse_target(e, errno, f->target, "cannot open the report's directory");
	/* Sticky: only the owner of the file or of the directory may rename over it. */
	if ((dir.st_mode & S_ISVTX) && geteuid() != 0 && st->st_uid != geteuid() &&
		dir.st_uid != geteuid())
		return refuse_target(e, ERROR_OWN(EPERM), f->target,
			"the report exists and belongs to another user");
	return 0;
}

static int refuse_symlink(const struct report_file *f, struct error *e)
{
	int r = refuse_target(e, ERROR_OWN(ELOOP), f->target, "the report is a symbolic link");

	error_hint(e, "name the file it points to, or pass a descriptor (fd:N)");
	return r;
}

/* Nobody may read it, and then no time-out holds. */
static int refuse_stream(const struct report_file *f, struct error *e)
{
	int r = refuse_target(e, ERROR_OWN(EINVAL), f->target,
		"the report is a FIFO in a directory that tools can write");

	error_hint(e, "name a FIFO elsewhere, or pass a descriptor (fd:N)");
	return r;
}

static int open_by_type(struct report_file *f, struct error *e)
{
	struct stat st;

	if (fstatat(f->dirfd, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return open_file(f, e);
		return refuse_target(e, errno, f->target, "cannot look at the report");
	}
	if (S_ISREG(st.st_mode)) {
		int r = check_existing(f, &st, e);

		return r < 0 ? r : open_file(f, e);
	}
	if ((S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) && f->of_tools)
		return refuse_stream(f, e);
	if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))
		return open_stream(f, e);
	if (S_ISLNK(st.st_mode))
		return refuse_symlink(f, e);
	if (S_ISDIR(st.st_mode))
		return refuse_target(
			e, ERROR_OWN(EISDIR), f->target, "the report is a directory");
	return refuse_target(
		e, ERROR_OWN(EINVAL), f->target, "the report is neither a file nor a stream");
}

/* Opens the directory of @target; @name is where its last component begins. */
static int open_directory(const char *target, const char *name)
{
	if (name == target)
		return fd_open_at(AT_FDCWD, ".", O_PATH | O_DIRECTORY, 0);
	/* With the slash: right for "/" too. */
	char *directory = strndup(target, (size_t)(name - target));
	if (!directory)
		return -ENOMEM;
	int fd = fd_open_at(AT_FDCWD, directory, O_PATH | O_DIRECTORY, 0);
	free(directory);
	return fd;
}

static int open_path(const char *target, const struct toolplace *place, struct report_file *ret,
	struct error *e)
{
	const char *slash = strrchr(target, '/');
	const char *name = slash ? slash + 1 : target;
	size_t length = strlen(name);

	if (length == 0 || !strcmp(name, ".") || !strcmp(name, ".."))
		return refuse_target(e, ERROR_OWN(EISDIR), target, "the report is a directory");
	struct report_file f = { .fd = -1, .target = target, .dry = ret->dry };
	if (length >= sizeof(f.name))
		return refuse_target(e, ENAMETOOLONG, target, "cannot create the report");
	memcpy(f.name, name, length + 1);
	autofd int dirfd = open_directory(target, name);
	if (dirfd < 0)
		return refuse_target(e, -dirfd, target, "cannot open the report's directory");
	f.dirfd = dirfd;
	int r = place ? toolplace_check_dir(
				place, target, (size_t)(name - target), dirfd, &f.of_tools, e)
		      : 0;
	if (r >= 0)
		r = open_by_type(&f, e);
	if (r < 0 || f.dry)
		return r;
	f.dirfd = take_fd(&dirfd);
	*ret = f;
	return 0;
}

static int open_target(const char *target, const struct toolplace *place,
	struct report_file *ret, struct error *e)
{
	const char *digits = descriptor_text(target);

	if (!*target)
		return refuse_target(e, ERROR_OWN(EINVAL), NULL, "the report's name is empty");
	return digits ? open_descriptor(target, digits, ret, e)
		      : open_path(target, place, ret, e);
}

int report_open(const char *target, const struct toolplace *place, struct report_file *ret,
	struct error *e)
{
	ret->dry = false;
	return open_target(target, place, ret, e);
}

int report_check(const char *target, struct error *e)
{
	struct report_file f = { .dry = true };

	return open_target(target, NULL, &f, e);
}

/* --- writing ---------------------------------------------------------------------------------- */

int report_file_begin(struct report_file *f)
{
	if (f->kind != REPORT_FILE_NAMED)
		return 0;
	f->fd = create_named(f);
	return f->fd < 0 ? f->fd : 0;
}

/* Waits until the stream takes more, at most patience_ms. 0 or -errno. */
static int wait_writable(const struct report_file *f)
{
	struct pollfd p = { .fd = f->fd, .events = POLLOUT };
	int r = poll(&p, 1, f->patience_ms);

	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	return r == 0 ? -ETIMEDOUT : 0;
}

int report_file_write(void *context, const void *data, size_t size)
{
	const struct report_file *f = context;
	const char *at = data;

	while (size > 0) {
		ssize_t n = write(f->fd, at, size);
		int r = n > 0 ? 0 : n == 0 ? -EIO : -errno;

		if (r == -EAGAIN)
			r = wait_writable(f);
		if (r < 0 && r != -EINTR)
			return r;
		if (n > 0) {
			at += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

static int sync_data(int fd)
{
	int r;

	do
		r = fdatasync(fd) < 0 ? -errno : 0;
	while (r == -EINTR);
	return r == -EINVAL ? 0 : r; /* a file system that has nothing to sync */
}

/* Gives the unnamed file the name @name, which must be free. 0 or -errno. */
static int link_as(const struct report_file *f, const char *name)
{
	char path[PROC_FD_SIZE];

	proc_path(f->fd, path);
	if (linkat(AT_FDCWD, path, f->dirfd, name, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	return 0;
}

/* linkat(2) cannot replace a file: link a second name beside the target, then renameat(2) that over it. */
static int link_temp(struct report_file *f)
{
	char name[sizeof(f->temp)];
	int r = make_name(name);

	if (r < 0)
		return r;
	r = link_as(f, name);
	if (r == 0)
		memcpy(f->temp, name, sizeof(name));
	return r;
}

int report_file_commit(struct report_file *f)
{
	if (f->kind == REPORT_FILE_STREAM)
		return 0;
	int r = sync_data(f->fd);
	if (r < 0)
		return r;
	if (f->kind == REPORT_FILE_UNNAMED) {
		r = link_as(f, f->name);
		if (r != -EEXIST)
			return r;
		r = link_temp(f);
		if (r < 0)
			return r;
	}
	if (renameat(f->dirfd, f->temp, f->dirfd, f->name) < 0)
		return -errno;
	f->temp[0] = '\0';
	return 0;
}

void report_discard(struct report_file *f)
{
	if (f->kind == REPORT_FILE_NONE)
		return;
	remove_named(f);
	fd_close(&f->fd);
	fd_close(&f->dirfd);
	f->kind = REPORT_FILE_NONE;
}

/*
 * attack_files.c - attempts on files: writing what is read-only, reading what is hidden, taking
 * away what is protected, and what can be made of a descriptor.
 *
 * Runs in: a session; for the control arm, outside. May not: leave anything on the machine
 * itself. Where an attempt on it succeeds (`create`, `rewrite`, `mkdir`, ...), it is undone at once.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <dirent.h>

#include "attack.h"

static int write_byte(int fd)
{
	int r = fd < 0 ? -errno : attack_result(write(fd, "x", 1));

	if (fd >= 0)
		(void)close(fd);
	return r;
}

static int write_file(char *const *arg)
{
	return write_byte(open(arg[0], O_WRONLY | O_APPEND));
}

/* Writing is asked for, and nothing is written. */
static int open_for_writing(char *const *arg)
{
	return attack_result(open(arg[0], O_WRONLY));
}

static int open_device(char *const *arg)
{
	return attack_result(open(arg[0], O_RDONLY | O_NONBLOCK));
}

static int create_file(char *const *arg)
{
	int fd = open(arg[0], O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		return -errno;
	(void)unlink(arg[0]);
	return write_byte(fd);
}

static int make_directory(char *const *arg)
{
	int r = attack_result(mkdir(arg[0], 0700));

	if (r == 0)
		(void)rmdir(arg[0]);
	return r;
}

static int make_symlink(char *const *arg)
{
	int r = attack_result(symlink("nowhere", arg[0]));

	if (r == 0)
		(void)unlink(arg[0]);
	return r;
}

static int make_fifo(char *const *arg)
{
	int r = attack_result(mkfifo(arg[0], 0600));

	if (r == 0)
		(void)unlink(arg[0]);
	return r;
}

/* What is in it, written again: a setting of the machine stays what it is. */
static int rewrite_file(char *const *arg)
{
	char text[1024];
	int fd = open(arg[0], O_RDWR);

	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, text, sizeof(text));
	if (n < 0)
		return -errno;
	return attack_result(pwrite(fd, text, (size_t)n, 0));
}

static int read_file(char *const *arg)
{
	char text[512];
	int fd = open(arg[0], O_RDONLY | O_NONBLOCK);

	if (fd < 0)
		return errno == ENOENT ? ATTACK_ABSENT : -errno;
	ssize_t n = read(fd, text, sizeof(text));
	return n < 0 ? -errno : n == 0 ? ATTACK_ABSENT : 0;
}

static int list_directory(char *const *arg)
{
	struct dirent *entry;
	DIR *dir = opendir(arg[0]);

	if (!dir)
		return errno == ENOENT ? ATTACK_ABSENT : -errno;
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			return 0;
	return ATTACK_ABSENT;
}

static int truncate_file(char *const *arg)
{
	return attack_result(truncate(arg[0], 0));
}

static int unlink_file(char *const *arg)
{
	return attack_result(unlink(arg[0]));
}

static int remove_directory(char *const *arg)
{
	return attack_result(rmdir(arg[0]));
}

static int rename_file(char *const *arg)
{
	return attack_result(rename(arg[0], arg[1]));
}

static int exchange(char *const *arg)
{
	return attack_result(syscall(
		SYS_renameat2, AT_FDCWD, arg[0], AT_FDCWD, arg[1], 2 /* RENAME_EXCHANGE */));
}

static int link_file(char *const *arg)
{
	return attack_result(link(arg[0], arg[1]));
}

/* A second name, made inside, and the file written through it. */
static int link_and_write(char *const *arg)
{
	int r = link_file(arg);

	return r < 0 ? r : write_file(arg + 1);
}

/* The file itself, whatever is mounted on it: by way of its directory's descriptor. */
static int write_at(char *const *arg)
{
	int dir = open(arg[0], O_PATH | O_DIRECTORY);

	return dir < 0 ? -errno : write_byte(openat(dir, arg[1], O_WRONLY | O_APPEND));
}

static int write_through_o_path(char *const *arg)
{
	char path[64];
	int fd = open(arg[0], O_PATH);

	if (fd < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return write_byte(open(path, O_WRONLY | O_APPEND));
}

static int write_by_mapping(char *const *arg)
{
	int fd = open(arg[0], O_RDWR);

	return fd < 0 ? -errno : attack_result(ftruncate(fd, 1));
}

static int change_mode(char *const *arg)
{
	return attack_result(chmod(arg[0], 0777));
}

static int change_times(char *const *arg)
{
	return attack_result(utimensat(AT_FDCWD, arg[0], NULL, 0));
}

static int change_xattr(char *const *arg)
{
	return attack_result(setxattr(arg[0], "user.escape", "x", 1, 0));
}

/* Named by its handle, below a mount that was reached otherwise. See: open_by_handle_at(2). */
static int open_by_handle(char *const *arg)
{
	struct {
		struct file_handle head;
		unsigned char bytes[MAX_HANDLE_SZ];
	} handle = { .head.handle_bytes = MAX_HANDLE_SZ };
	int mount_id;
	int mount = open(".", O_RDONLY | O_DIRECTORY);

	if (name_to_handle_at(AT_FDCWD, arg[0], &handle.head, &mount_id, 0) < 0)
		return -errno;
	return attack_result(open_by_handle_at(mount, &handle.head, O_RDONLY));
}

/* --- set-uid files, in a workspace that outlives the session ---------------------------------- */

static int gained_setuid(const char *path, long result)
{
	struct stat st;

	if (result < 0)
		return -errno;
	if (stat(path, &st) < 0)
		return -errno;
	return st.st_mode & S_ISUID ? 0 : ATTACK_HELD;
}

static int make_setuid(char *const *arg)
{
	const char *path = arg[1];

	(void)umask(0);
	if (!strcmp(arg[0], "open"))
		return gained_setuid(path, open(path, O_WRONLY | O_CREAT | O_EXCL, 04755));
	if (!strcmp(arg[0], "creat"))
		return gained_setuid(path, creat(path, 04755));
	if (!strcmp(arg[0], "mknod"))
		return gained_setuid(path, mknod(path, S_IFREG | 04755, 0));
	int fd = open(path, O_RDWR | O_CREAT, 0755);

	if (fd < 0)
		return -errno;
	if (!strcmp(arg[0], "chmod"))
		return gained_setuid(path, chmod(path, 04755));
	if (!strcmp(arg[0], "fchmod"))
		return gained_setuid(path, fchmod(fd, 04755));
	if (!strcmp(arg[0], "fchmodat"))
		return gained_setuid(path, syscall(SYS_fchmodat, AT_FDCWD, path, 04755));
	if (!strcmp(arg[0], "fchmodat2"))
		return gained_setuid(path, syscall(452, AT_FDCWD, path, 04755, 0));
	return -EINVAL;
}

/* --- devices ---------------------------------------------------------------------------------- */

static int make_device(char *const *arg)
{
	mode_t type = arg[0][0] == 'b' ? S_IFBLK : S_IFCHR;
	int r = attack_result(mknod(arg[1], type | 0666, makedev(1, 1)));

	if (r == 0)
		(void)unlink(arg[1]);
	return r;
}

/* --- descriptors ------------------------------------------------------------------------------ */

static int find_descriptors(char *const *arg)
{
	int found = 0;

	(void)arg;
	for (int fd = 3; fd < 4096; fd++)
		found += fcntl(fd, F_GETFD) >= 0;
	return found ? 0 : ATTACK_ABSENT;
}

static int reopen(const char *number, int flags)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%s", number);
	return open(path, flags);
}

static int reopen_to_write(char *const *arg)
{
	return write_byte(reopen(arg[0], O_WRONLY | O_NONBLOCK));
}

static int reopen_to_read(char *const *arg)
{
	char text[64];
	int fd = reopen(arg[0], O_RDONLY | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	return n < 0 ? -errno : n == 0 ? ATTACK_ABSENT : 0;
}

/* A log that may only grow: O_APPEND is cleared, and its beginning overwritten. */
static int clear_append(char *const *arg)
{
	(void)arg;
	int flags = fcntl(1, F_GETFL);

	if (flags < 0 || fcntl(1, F_SETFL, flags & ~O_APPEND) < 0)
		return -errno;
	return pwrite(1, "EVIL", 4, 0) == 4 ? 0 : -errno;
}

static int truncate_stdout(char *const *arg)
{
	(void)arg;
	return attack_result(ftruncate(1, 0));
}

static int lock_stdin(char *const *arg)
{
	(void)arg;
	return attack_result(flock(0, LOCK_EX | LOCK_NB));
}

static int lock_file(char *const *arg)
{
	int fd = open(arg[0], O_RDONLY);

	return fd < 0 ? -errno : attack_result(flock(fd, LOCK_EX | LOCK_NB));
}

static int step_out_of_stdin(char *const *arg)
{
	return attack_result(openat(0, arg[0], O_RDONLY));
}

static int raise_oom_score(char *const *arg)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%s/oom_score_adj", arg[0]);
	int fd = open(path, O_WRONLY);
	int r = fd < 0 ? -errno : attack_result(write(fd, arg[1], strlen(arg[1])));

	return r;
}

/* Twenty processes that make a file again as soon as it is gone, until they are killed. */
static int make_again(char *const *arg)
{
	int r = 0;

	for (int i = 0; i < 20; i++)
		if (fork() == 0)
			break;
	while (r <= 0)
		r = close(open(arg[0], O_WRONLY | O_CREAT, 0600));
	return r;
}

int main(int argc, char **argv)
{
	static const struct attack attacks[] = {
		{ "write", 1, write_file },
		{ "open-write", 1, open_for_writing },
		{ "open-device", 1, open_device },
		{ "create", 1, create_file },
		{ "mkdir", 1, make_directory },
		{ "symlink", 1, make_symlink },
		{ "fifo", 1, make_fifo },
		{ "rewrite", 1, rewrite_file },
		{ "read", 1, read_file },
		{ "list", 1, list_directory },
		{ "truncate", 1, truncate_file },
		{ "ftruncate", 1, write_by_mapping },
		{ "unlink", 1, unlink_file },
		{ "rmdir", 1, remove_directory },
		{ "rename", 2, rename_file },
		{ "exchange", 2, exchange },
		{ "link", 2, link_file },
		{ "link-write", 2, link_and_write },
		{ "write-at", 2, write_at },
		{ "write-o-path", 1, write_through_o_path },
		{ "chmod", 1, change_mode },
		{ "touch", 1, change_times },
		{ "setxattr", 1, change_xattr },
		{ "by-handle", 1, open_by_handle },
		{ "setuid-file", 2, make_setuid },
		{ "mknod", 2, make_device },
		{ "descriptors", 0, find_descriptors },
		{ "reopen-write", 1, reopen_to_write },
		{ "reopen-read", 1, reopen_to_read },
		{ "clear-append", 0, clear_append },
		{ "truncate-stdout", 0, truncate_stdout },
		{ "lock-stdin", 0, lock_stdin },
		{ "lock", 1, lock_file },
		{ "step-out", 1, step_out_of_stdin },
		{ "oom-score", 2, raise_oom_score },
		{ "make-again", 1, make_again },
	};

	return attack_main(argc, argv, attacks, sizeof(attacks) / sizeof(attacks[0]));
}

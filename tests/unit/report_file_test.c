/*
 * report_file_test.c - where a report may go, and that it is there whole or not at all.
 *
 * Runs in: the unit tests, each in a directory of its own, as root and as an ordinary user.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/report/report.h"

#define NOBODY 65534

static const char *const command[] = { "true", NULL };

/* --- a directory for each test ---------------------------------------------------------------- */

static int enter_directory(void **state)
{
	char *path = strdup("/tmp/carrel-report-file-XXXXXX");

	*state = path;
	umask(022);
	return path && mkdtemp(path) && chdir(path) == 0 ? 0 : -1;
}

/* Each test removes what it made: rmdir(2) shows that nothing else was left. */
static int leave_directory(void **state)
{
	char *path = *state;
	int r = chdir("/") == 0 ? rmdir(path) : -1;

	free(path);
	return r;
}

static int entries_here(void)
{
	DIR *d = opendir(".");
	int count = 0;

	if (!d)
		return -1;
	for (struct dirent *entry = readdir(d); entry; entry = readdir(d))
		count++;
	closedir(d);
	return count - 2;
}

static int open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int count = 0;

	if (!d)
		return -1;
	while (readdir(d))
		count++;
	closedir(d);
	return count - 3;
}

static void put_file(const char *name, const char *text)
{
	autofd int fd = fd_open_at(AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static bool file_starts(const char *name, const char *text)
{
	char found[65536] = "";
	autofd int fd = fd_open_at(AT_FDCWD, name, O_RDONLY | O_NOFOLLOW, 0);
	ssize_t n = fd < 0 ? -1 : fd_read_file(fd, found, sizeof(found) - 1);

	return n >= 0 && !strncmp(found, text, strlen(text));
}

/* A whole report and nothing else: one line, from the first to the last brace. */
static bool is_report(const char *name)
{
	char found[65536] = "";
	autofd int fd = fd_open_at(AT_FDCWD, name, O_RDONLY | O_NOFOLLOW, 0);
	ssize_t n = fd < 0 ? -1 : fd_read_file(fd, found, sizeof(found) - 1);

	return n > 2 && !strncmp(found, "{\"schema\":1,", 12) &&
		!strcmp(found + n - 2, "}\n") && strchr(found, '\n') == found + n - 1;
}

static int write_report(struct report_file *f, struct error *e)
{
	struct report r;

	report_init(&r, command);
	return report_write(f, &r, e);
}

static void must_open(const char *target, struct report_file *ret)
{
	struct error e = { 0 };

	if (report_open(target, NULL, ret, &e) < 0)
		fail_msg("%s: %s (%s)", target, e.what, strerror(e.errnum));
}

static void must_write(struct report_file *f)
{
	struct error e = { 0 };

	if (write_report(f, &e) < 0)
		fail_msg("%s: %s (%s)", e.on, e.what, strerror(e.errnum));
}

/* The target cannot be opened; nothing is made, nothing stays open, the struct is untouched. */
static void refused(const char *target, int errnum)
{
	struct report_file f = { .dirfd = 77 };
	struct error e = { 0 };
	int entries = entries_here(), descriptors = open_descriptors();

	assert_int_equal(report_open(target, NULL, &f, &e), -errnum);
	assert_int_equal(e.code, ERROR_REPORT);
	assert_int_equal(e.errnum, errnum);
	assert_string_equal(e.stage, "report");
	assert_string_equal(e.on, target);
	assert_true(e.what[0]);
	assert_int_equal(f.kind, REPORT_FILE_NONE);
	assert_int_equal(f.dirfd, 77);
	assert_int_equal(entries_here(), entries);
	assert_int_equal(open_descriptors(), descriptors);
}

/* --- files ------------------------------------------------------------------------------------ */

static void test_new_file(void **state)
{
	struct report_file f = { 0 };
	struct stat st;
	int descriptors = open_descriptors();

	(void)state;
	must_open("r", &f);
	assert_int_equal(f.kind, REPORT_FILE_UNNAMED);
	assert_int_equal(entries_here(), 0);
	must_write(&f);
	assert_true(is_report("r"));
	assert_int_equal(entries_here(), 1);
	assert_int_equal(stat("r", &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(f.kind, REPORT_FILE_NONE);
	assert_int_equal(open_descriptors(), descriptors);
	assert_int_equal(unlink("r"), 0);
}

static void test_umask(void **state)
{
	struct report_file f = { 0 };
	struct stat st;

	(void)state;
	umask(0077);
	must_open("r", &f);
	umask(0022);
	must_write(&f);
	assert_int_equal(stat("r", &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(unlink("r"), 0);
}

/* The old content stays to the last moment, also for those who have it open. */
static void test_existing_file_is_replaced(void **state)
{
	struct report_file f = { 0 };
	char text[8];

	(void)state;
	put_file("r", "old");
	assert_int_equal(link("r", "other"), 0);
	autofd int reader = fd_open_at(AT_FDCWD, "r", O_RDONLY, 0);
	assert_true(reader >= 0);
	must_open("r", &f);
	assert_true(file_starts("r", "old"));
	assert_int_equal(entries_here(), 2);
	must_write(&f);
	assert_true(is_report("r"));
	assert_true(file_starts("other", "old"));
	assert_int_equal(read(reader, text, sizeof(text)), 3);
	assert_int_equal(entries_here(), 2);
	assert_int_equal(unlink("r"), 0);
	assert_int_equal(unlink("other"), 0);
}

static void test_discard(void **state)
{
	struct report_file f = { 0 };
	int descriptors = open_descriptors();

	(void)state;
	put_file("r", "old");
	must_open("r", &f);
	report_discard(&f);
	report_discard(&f);
	assert_true(file_starts("r", "old"));
	assert_int_equal(entries_here(), 1);
	assert_int_equal(open_descriptors(), descriptors);
	assert_int_equal(unlink("r"), 0);
}

/* Without a report there is nothing to write, and that is no failure. */
static void test_no_report(void **state)
{
	struct report_file f = { 0 };

	(void)state;
	must_write(&f);
	assert_int_equal(entries_here(), 0);
}

static void test_odd_names(void **state)
{
	char longest[256];
	struct report_file f = { 0 };

	(void)state;
	memset(longest, 'x', 255);
	longest[255] = '\0';
	const char *const names[] = { " \n\xff\xfe\"", "./a", "fd", "fd3", "..a", longest };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		must_open(names[i], &f);
		must_write(&f);
		assert_true(is_report(names[i]));
		assert_int_equal(unlink(names[i]), 0);
	}
}

/* A directory path near PATH_MAX, through more components than names. */
static void test_long_path(void **state)
{
	char path[4096] = "";
	struct report_file f = { 0 };

	(void)state;
	for (size_t i = 0; i + 4 < sizeof(path); i += 2)
		memcpy(path + i, "./", 3);
	memcpy(path + strlen(path), "r", 2);
	must_open(path, &f);
	must_write(&f);
	assert_true(is_report("r"));
	assert_int_equal(unlink("r"), 0);
}

/* --- what changes while the session runs ------------------------------------------------------ */

static void test_symlink_put_in_place(void **state)
{
	struct report_file f = { 0 };

	(void)state;
	put_file("precious", "old");
	must_open("r", &f);
	assert_int_equal(symlink("precious", "r"), 0);
	must_write(&f);
	assert_true(is_report("r"));
	assert_true(file_starts("precious", "old"));
	assert_int_equal(entries_here(), 2);
	assert_int_equal(unlink("r"), 0);
	assert_int_equal(unlink("precious"), 0);
}

static void test_directory_put_in_place(void **state)
{
	struct report_file f = { 0 };
	struct error e = { 0 };

	(void)state;
	must_open("r", &f);
	assert_int_equal(mkdir("r", 0700), 0);
	assert_int_equal(write_report(&f, &e), -EISDIR);
	assert_int_equal(e.code, ERROR_REPORT);
	assert_int_equal(entries_here(), 1);
	assert_int_equal(rmdir("r"), 0);
}

/* The directory is the one that was opened, wherever its path leads now. */
static void test_directory_moved_away(void **state)
{
	struct report_file f = { 0 };

	(void)state;
	assert_int_equal(mkdir("d", 0700), 0);
	assert_int_equal(mkdir("trap", 0700), 0);
	must_open("d/r", &f);
	assert_int_equal(rename("d", "moved"), 0);
	assert_int_equal(symlink("trap", "d"), 0);
	must_write(&f);
	assert_true(is_report("moved/r"));
	assert_int_equal(unlink("moved/r"), 0);
	assert_int_equal(rmdir("moved"), 0);
	assert_int_equal(unlink("d"), 0);
	assert_int_equal(rmdir("trap"), 0); /* empty */
}

static void test_directory_removed(void **state)
{
	struct report_file f = { 0 };
	struct error e = { 0 };

	(void)state;
	assert_int_equal(mkdir("d", 0700), 0);
	must_open("d/r", &f);
	assert_int_equal(rmdir("d"), 0);
	assert_int_equal(write_report(&f, &e), -ENOENT);
	assert_int_equal(e.code, ERROR_REPORT);
}

/* --- paths that are refused ------------------------------------------------------------------- */

static void test_wrong_paths(void **state)
{
	char long_name[258];

	(void)state;
	memset(long_name, 'x', 256);
	long_name[256] = '\0';
	put_file("file", "old");
	refused("", EINVAL);
	refused(".", EISDIR);
	refused("..", EISDIR);
	refused("/", EISDIR);
	refused("file/", EISDIR);
	refused("missing/r", ENOENT);
	refused("file/r", ENOTDIR);
	refused(long_name, ENAMETOOLONG);
	assert_true(file_starts("file", "old"));
	assert_int_equal(unlink("file"), 0);
}

static void test_wrong_types(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };
	autofd int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(bind(s, (const struct sockaddr *)&address, sizeof(address)), 0);
	refused("socket", EINVAL);
	refused("/proc", EISDIR);
	put_file("file", "old");
	assert_int_equal(symlink("file", "link"), 0);
	assert_int_equal(symlink("nowhere", "dangling"), 0);
	refused("link", ELOOP);
	refused("dangling", ELOOP);
	assert_true(file_starts("file", "old"));
	assert_int_equal(unlink("link"), 0);
	assert_int_equal(unlink("dangling"), 0);
	assert_int_equal(unlink("file"), 0);
	assert_int_equal(unlink("socket"), 0);
}

/* As an ordinary user, whoever runs the test. */
static void become_user(void)
{
	if (geteuid() == 0)
		assert_int_equal(setresuid(NOBODY, NOBODY, 0), 0);
}

static void become_self(void)
{
	uid_t real, effective, saved;

	assert_int_equal(getresuid(&real, &effective, &saved), 0);
	assert_int_equal(setresuid(saved, saved, saved), 0);
}

static void test_unwritable(void **state)
{
	(void)state;
	put_file("readonly", "old");
	assert_int_equal(mkdir("d", 0755), 0);
	assert_int_equal(chown("readonly", geteuid() ? geteuid() : NOBODY, (gid_t)-1), 0);
	assert_int_equal(chown("d", geteuid() ? geteuid() : NOBODY, (gid_t)-1), 0);
	assert_int_equal(chmod("readonly", 0444), 0);
	assert_int_equal(chmod("d", 0555), 0);
	assert_int_equal(chmod(".", 0755), 0);
	become_user();
	refused("readonly", EACCES);
	refused("d/r", EACCES);
	refused("/proc/r", EACCES);
	become_self();
	assert_int_equal(unlink("readonly"), 0);
	assert_int_equal(rmdir("d"), 0);
}

/* In a sticky directory a file of someone else could be written to, but not replaced. */
static void test_sticky(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		print_message("skip: needs root\n");
		skip();
	}
	put_file("r", "old");
	assert_int_equal(chmod("r", 0666), 0);
	assert_int_equal(chmod(".", 01777), 0);
	become_user();
	refused("r", EPERM);
	become_self();
	assert_int_equal(unlink("r"), 0);
}

/* --- writing that fails ----------------------------------------------------------------------- */

static void test_file_size_limit(void **state)
{
	struct report_file f = { 0 };
	struct error e = { 0 };
	struct rlimit old, small;

	(void)state;
	put_file("r", "old");
	must_open("r", &f);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){ .rlim_cur = 100, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	int r = write_report(&f, &e);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(r, -EFBIG);
	assert_int_equal(e.code, ERROR_REPORT);
	assert_string_equal(e.on, "r");
	assert_true(file_starts("r", "old"));
	assert_int_equal(entries_here(), 1);
	assert_int_equal(unlink("r"), 0);
}

static void test_full_device(void **state)
{
	struct report_file f = { 0 };
	struct error e = { 0 };
	int descriptors = open_descriptors();

	(void)state;
	must_open("/dev/full", &f);
	assert_int_equal(f.kind, REPORT_FILE_STREAM);
	assert_int_equal(write_report(&f, &e), -ENOSPC);
	assert_int_equal(e.errnum, ENOSPC);
	assert_int_equal(open_descriptors(), descriptors);
}

/* In a forked process: a failed check ends it, with the line. */
#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			print_error("line %d: %s\n", __LINE__, #condition); \
			_exit(1); \
		} \
	} while (0)

/* Runs @run in a process of its own; returns its exit status. */
static int in_child(void (*run)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool write_text(const char *path, const char *text)
{
	autofd int fd = fd_open_at(AT_FDCWD, path, O_WRONLY, 0);

	return fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0;
}

/* A tmpfs of four pages on the current directory, ours alone; status 77 where that is refused. */
static void mount_small(void)
{
	char here[256], uid_map[64], gid_map[64];
	int flags = CLONE_NEWNS | (geteuid() ? CLONE_NEWUSER : 0);

	(void)snprintf(uid_map, sizeof(uid_map), "0 %u 1", geteuid());
	(void)snprintf(gid_map, sizeof(gid_map), "0 %u 1", getegid());
	if (!getcwd(here, sizeof(here)) || unshare(flags) < 0)
		_exit(77);
	if ((flags & CLONE_NEWUSER) &&
		(!write_text("/proc/self/setgroups", "deny") ||
			!write_text("/proc/self/uid_map", uid_map) ||
			!write_text("/proc/self/gid_map", gid_map)))
		_exit(77);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("none", here, "tmpfs", 0, "size=16k") < 0)
		_exit(77);
	CHECK(chdir(here) == 0);
}

static void full_disk(void)
{
	static char word[32768];
	const char *const long_command[] = { word, NULL };
	struct report_file f = { 0 };
	struct error e = { 0 };
	struct report r;

	mount_small();
	memset(word, 'w', sizeof(word) - 1);
	report_init(&r, long_command);
	CHECK(mknod("r", S_IFREG | 0600, 0) == 0 && write_text("r", "old"));
	CHECK(report_open("r", NULL, &f, &e) == 0);
	CHECK(report_write(&f, &r, &e) == -ENOSPC);
	CHECK(e.code == ERROR_REPORT && e.errnum == ENOSPC);
	CHECK(file_starts("r", "old") && entries_here() == 1);
	CHECK(report_open("new", NULL, &f, NULL) == 0);
	CHECK(report_write(&f, &r, NULL) == -ENOSPC);
	CHECK(entries_here() == 1);
	CHECK(report_open("r", NULL, &f, NULL) == 0); /* the control: a small one fits */
	CHECK(write_report(&f, NULL) == 0 && is_report("r"));
}

static void test_full_disk(void **state)
{
	int status = in_child(full_disk);

	(void)state;
	if (status == 77) {
		print_message("skip: no user namespaces for this user\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* --- without O_TMPFILE, without /proc --------------------------------------------------------- */

static void named_new(void)
{
	struct report_file f = { 0 };

	CHECK(report_open("r", NULL, &f, NULL) == 0);
	CHECK(f.kind == REPORT_FILE_NAMED);
	CHECK(entries_here() == 0); /* no name of ours while the session runs */
	report_discard(&f);
	CHECK(entries_here() == 0);
	CHECK(report_open("r", NULL, &f, NULL) == 0);
	CHECK(write_report(&f, NULL) == 0);
	CHECK(is_report("r") && entries_here() == 1);
	CHECK(unlink("r") == 0);
}

static void named_replaced(void)
{
	struct report_file f = { 0 };
	const struct rlimit small = { 100, RLIM_INFINITY };
	const struct rlimit large = { RLIM_INFINITY, RLIM_INFINITY };

	CHECK(mknod("r", S_IFREG | 0600, 0) == 0 && write_text("r", "old"));
	CHECK(report_open("r", NULL, &f, NULL) == 0);
	CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
	CHECK(write_report(&f, NULL) == -EFBIG);
	CHECK(setrlimit(RLIMIT_FSIZE, &large) == 0);
	CHECK(file_starts("r", "old") && entries_here() == 1);
	CHECK(report_open("r", NULL, &f, NULL) == 0);
	CHECK(write_report(&f, NULL) == 0);
	CHECK(is_report("r") && entries_here() == 1);
	CHECK(unlink("r") == 0);
}

static void load_rule(int errnum, int call, unsigned count, struct scmp_arg_cmp compare)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	CHECK(filter);
	CHECK(seccomp_rule_add_array(
		      filter, SCMP_ACT_ERRNO((uint16_t)errnum), call, count, &compare) == 0);
	CHECK(seccomp_load(filter) == 0);
	seccomp_release(filter);
}

static void without_tmpfile(void)
{
	load_rule(EOPNOTSUPP, SCMP_SYS(openat), 1,
		SCMP_A2(SCMP_CMP_MASKED_EQ, O_TMPFILE, O_TMPFILE));
	named_new();
	named_replaced();
}

static void without_proc(void)
{
	/* faccessat(3) uses whichever of the two the C library knows. */
	load_rule(ENOENT, SCMP_SYS(faccessat2), 0, (struct scmp_arg_cmp){ 0 });
	load_rule(ENOENT, SCMP_SYS(faccessat), 0, (struct scmp_arg_cmp){ 0 });
	named_new();
}

static void test_without_tmpfile(void **state)
{
	(void)state;
	assert_int_equal(in_child(without_tmpfile), 0);
	assert_int_equal(in_child(without_proc), 0);
}

/* --- streams ---------------------------------------------------------------------------------- */

static void test_fifo(void **state)
{
	struct report_file f = { 0 };
	struct error e = { 0 };
	char text[65536];

	(void)state;
	assert_int_equal(mkfifo("fifo", 0600), 0);
	autofd int reader = fd_open_at(AT_FDCWD, "fifo", O_RDONLY | O_NONBLOCK, 0);
	assert_true(reader >= 0);
	must_open("fifo", &f);
	assert_int_equal(f.kind, REPORT_FILE_STREAM);
	must_write(&f);
	ssize_t n = fd_read_file(reader, text, sizeof(text) - 1);
	assert_true(n > 2);
	assert_string_equal(text + n - 2, "}\n");
	must_open("fifo", &f);
	fd_close(&reader);
	assert_int_equal(write_report(&f, &e), -EPIPE);
	assert_int_equal(e.code, ERROR_REPORT);
	assert_int_equal(entries_here(), 1);
	assert_int_equal(unlink("fifo"), 0);
}

/* A tool may have made it: nothing waits for a reader that never comes, or never reads. */
static void test_fifo_without_reader(void **state)
{
	struct report_file f = { 0 };
	struct error e = { 0 };
	char block[4096] = { 0 };

	(void)state;
	assert_int_equal(mkfifo("fifo", 0600), 0);
	refused("fifo", ENXIO);
	assert_int_equal(report_open("fifo", NULL, &f, &e), -ENXIO);
	assert_non_null(strstr(e.hint, "fd:3 3>"));
	autofd int reader = fd_open_at(AT_FDCWD, "fifo", O_RDONLY | O_NONBLOCK, 0);
	assert_true(reader >= 0);
	must_open("fifo", &f);
	assert_true(f.patience_ms > 0);
	f.patience_ms = 1;
	while (write(f.fd, block, sizeof(block)) > 0)
		;
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(write_report(&f, &e), -ETIMEDOUT);
	assert_int_equal(unlink("fifo"), 0);
}

/* Opens a file without close-on-exec, as a caller's shell passes it on. */
static int inherited(const char *name, int flags)
{
	int fd = open(name, flags, 0600);

	assert_true(fd > 2);
	return fd;
}

static const char *fd_name(const char *prefix, int fd)
{
	static char name[64];

	(void)snprintf(name, sizeof(name), "%s%d", prefix, fd);
	return name;
}

static void test_descriptor(void **state)
{
	static const char *const prefixes[] = { "fd:", "/dev/fd/", "/proc/self/fd/" };

	(void)state;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		struct report_file f = { 0 };
		int fd = inherited("r", O_WRONLY | O_CREAT | O_TRUNC);

		must_open(fd_name(prefixes[i], fd), &f);
		assert_int_equal(f.kind, REPORT_FILE_STREAM);
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
		must_write(&f);
		assert_int_equal(fcntl(fd, F_GETFD), -1); /* it was ours, and is closed */
		assert_true(is_report("r"));
	}
	assert_int_equal(unlink("r"), 0);
}

static void write_to_stderr(void)
{
	struct report_file f = { 0 };
	int fd = open("r", O_WRONLY | O_CREAT, 0600);

	CHECK(dup2(fd, 2) == 2 && close(fd) == 0);
	CHECK(report_open("/dev/stderr", NULL, &f, NULL) == 0);
	CHECK(fcntl(f.fd, F_GETFD) == FD_CLOEXEC && f.fd > 2);
	CHECK(write_report(&f, NULL) == 0);
	CHECK(fcntl(2, F_GETFD) == 0); /* the command's stderr is as it was */
	CHECK(close(2) == 0);
	CHECK(report_open("fd:2", NULL, &f, NULL) == -EBADF);
}

static void test_stderr(void **state)
{
	(void)state;
	assert_int_equal(in_child(write_to_stderr), 0);
	assert_true(is_report("r"));
	assert_int_equal(unlink("r"), 0);
}

static void test_wrong_descriptors(void **state)
{
	static const char *const wrong[] = { "fd:", "fd:x", "fd:-1", "fd:+3", "fd: 3", "fd:3x",
		"fd:0x3", "fd:3 ", "fd:99999999999999999999", "fd:0", "fd:1", "/dev/stdin",
		"/dev/stdout", "/dev/fd/1", "/proc/self/fd/0", "/dev/fd/" };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		refused(wrong[i], EINVAL);
	put_file("r", "old");
	refused("fd:987", EBADF);
	const int flags[] = { O_RDONLY, O_PATH, O_WRONLY | O_CLOEXEC, O_RDWR | O_CLOEXEC };
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		autofd int fd = inherited("r", flags[i]);
		int before = fcntl(fd, F_GETFD);

		refused(fd_name("fd:", fd), EBADF);
		assert_int_equal(fcntl(fd, F_GETFD), before);
	}
	autofd int writable = inherited("r", O_RDWR); /* the control */
	struct report_file f = { 0 };
	must_open(fd_name("fd:", writable), &f);
	report_discard(&f);
	assert_int_equal(unlink("r"), 0);
}

/* A pipe that is full and non-blocking is waited for; nothing is lost. */
static void test_slow_reader(void **state)
{
	enum { WORDS = 40000 };
	const char **words = calloc(WORDS + 1, sizeof(*words));
	struct report_file f = { 0 };
	struct report r;
	int ends[2], status;
	size_t total = 0;
	char text[4096], last = 0;

	(void)state;
	assert_non_null(words);
	for (size_t i = 0; i < WORDS; i++)
		words[i] = "word";
	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		CHECK(close(ends[0]) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
		report_init(&r, words);
		CHECK(report_open(fd_name("fd:", ends[1]), NULL, &f, NULL) == 0);
		CHECK(report_write(&f, &r, NULL) == 0);
		_exit(0);
	}
	close(ends[1]);
	for (;;) {
		ssize_t n = read(ends[0], text, sizeof(text));

		assert_true(n >= 0);
		if (n == 0)
			break;
		total += (size_t)n;
		last = text[n - 1];
	}
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(total > WORDS * sizeof("\"word\""));
	assert_int_equal(last, '\n');
	free(words);
}

static int ignore_signals(void **state)
{
	(void)state;
	/* As in the supervisor, where both are blocked. */
	return signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR ? -1
											  : 0;
}

int main(void)
{
#define TEST(function) \
	cmocka_unit_test_setup_teardown(function, enter_directory, leave_directory)
	const struct CMUnitTest tests[] = {
		TEST(test_new_file),
		TEST(test_umask),
		TEST(test_existing_file_is_replaced),
		TEST(test_discard),
		TEST(test_no_report),
		TEST(test_odd_names),
		TEST(test_long_path),
		TEST(test_symlink_put_in_place),
		TEST(test_directory_put_in_place),
		TEST(test_directory_moved_away),
		TEST(test_directory_removed),
		TEST(test_wrong_paths),
		TEST(test_wrong_types),
		TEST(test_unwritable),
		TEST(test_sticky),
		TEST(test_file_size_limit),
		TEST(test_full_device),
		TEST(test_full_disk),
		TEST(test_without_tmpfile),
		TEST(test_fifo),
		TEST(test_fifo_without_reader),
		TEST(test_descriptor),
		TEST(test_stderr),
		TEST(test_wrong_descriptors),
		TEST(test_slow_reader),
	};

	return cmocka_run_group_tests(tests, ignore_signals, NULL);
}

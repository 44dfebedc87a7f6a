/*
 * remove_test.c - remove_tree() against what hostile tools leave, and what they do meanwhile.
 *
 * Runs in: a test program, as root and as an ordinary user; what needs root says so.
 */
/* ctest: cost=25 */
#include <signal.h>

#include "tree_fixture.h"

#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>

#define NEEDS_ROOT(why) \
	do { \
		if (geteuid() != 0) { \
			print_message("skipped: only root can " why "\n"); \
			skip(); \
		} \
	} while (0)

/* removes - remove_tree() succeeds, and @name is gone. Returns what it says. */
static struct remove_result removes(int at, const char *name, unsigned workers)
{
	const struct remove_options options = {
		.flags = REMOVE_COUNT_BYTES,
		.workers = workers,
	};
	struct remove_result result;
	struct error e = { 0 };

	if (remove_tree_with(at, name, &options, &result, &e) < 0)
		fail_msg("%s: %s: %s", e.what, e.on, strerror(e.errnum));
	assert_false(exists(at, name));
	assert_int_equal(result.remained, 0);
	assert_int_equal(result.errnum, 0);
	assert_string_equal(result.first, "");
	return result;
}

static void pause_shortly(void)
{
	const struct timespec wait = { .tv_nsec = 100000 };

	(void)nanosleep(&wait, NULL);
}

/* --- shapes ---------------------------------------------------------------------------------- */

static void test_counts(void **state)
{
	struct tree *t = *state;

	make_dir(t->fd, "s");
	make_dir(t->fd, "s/scratch");
	make_dir(t->fd, "s/scratch/tmp");
	make_dir(t->fd, "s/tool-results");
	make_file(t->fd, "s/scratch/a", "12345", 0600);
	make_file(t->fd, "s/scratch/b", "123", 0);
	assert_int_equal(symlinkat("/etc/passwd", t->fd, "s/scratch/link"), 0);
	struct remove_result result = removes(t->fd, "s", 0);
	assert_int_equal(result.removed, 7);
	assert_int_equal(result.files, 2);
	assert_int_equal(result.bytes, 8);
	assert_int_equal(result.workers, 1);
}

static void test_absent(void **state)
{
	struct tree *t = *state;
	struct remove_result result = removes(t->fd, "nothing", 0);

	assert_int_equal(result.removed, 0);
}

static void test_bad_names(void **state)
{
	static const char *const names[] = { "", ".", "..", "a/b", "/", "/tmp", "../x" };
	struct tree *t = *state;
	struct remove_result result;

	make_dir(t->fd, "a");
	make_dir(t->fd, "a/b");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct error e = { 0 };

		assert_int_equal(remove_tree(t->fd, names[i], &result, &e), -EINVAL);
		assert_int_equal(e.code, ERROR_INTERNAL);
	}
	assert_true(exists(t->fd, "a/b"));
}

static void test_single_entries(void **state)
{
	struct tree *t = *state;

	make_file(t->fd, "file", "abc", 0);
	struct remove_result result = removes(t->fd, "file", 0);
	assert_int_equal(result.removed, 1);
	assert_int_equal(result.files, 1);
	assert_int_equal(result.bytes, 3);
	make_dir(t->fd, "kept");
	make_file(t->fd, "kept/inside", "abc", 0600);
	assert_int_equal(symlinkat("kept", t->fd, "link"), 0);
	assert_int_equal(removes(t->fd, "link", 0).files, 0);
	assert_text(t->fd, "kept/inside", "abc");
	assert_int_equal(mkfifoat(t->fd, "fifo", 0600), 0);
	assert_int_equal(removes(t->fd, "fifo", 0).removed, 1);
}

static void test_locked_directories(void **state)
{
	struct tree *t = *state;
	static const unsigned modes[] = { 0, 0100, 0200, 0300, 0400, 0500, 0600, 01000 };

	make_dir(t->fd, "s");
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "s/d%zu", i);
		make_dir(t->fd, name);
		int fd = open_dir(t->fd, name);
		make_dir(fd, "inner");
		make_dir(fd, "empty");
		make_file(fd, "inner/file", "x", 0);
		assert_int_equal(fchmodat(fd, "inner", modes[i], 0), 0);
		assert_int_equal(fchmodat(fd, "empty", 0, 0), 0);
		assert_int_equal(fchmod(fd, modes[i]), 0);
		assert_int_equal(close(fd), 0);
	}
	assert_int_equal(fchmodat(t->fd, "s", 0, 0), 0);
	assert_int_equal(removes(t->fd, "s", 0).removed, 1 + 8 * 4);
}

/* In a child, because the limit would hold for the rest of the tests. */
static void chain_with_descriptors(
	struct tree *t, unsigned levels, unsigned mode, unsigned descriptors)
{
	make_chain(t->fd, "s", levels, mode);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct rlimit limit;
		struct remove_result result;

		/* So that the bound is @descriptors minus 4, whatever the test has inherited. */
		if (dup2(t->fd, 3) < 0 || syscall(SYS_close_range, 4U, ~0U, 0U) < 0 ||
			getrlimit(RLIMIT_NOFILE, &limit) < 0)
			_exit(2);
		if (limit.rlim_max > descriptors) /* which may be no more than these already */
			limit.rlim_max = descriptors;
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
			_exit(2);
		if (remove_tree(3, "s", &result, NULL) < 0)
			_exit(3);
		_exit(result.removed == levels + 1 ? 0 : 4);
	}
	end_child(pid, 0);
	assert_false(exists(t->fd, "s"));
}

static void test_deep(void **state)
{
	chain_with_descriptors(*state, 5000, 0755, 1024);
}

static void test_deep_few_descriptors(void **state)
{
	chain_with_descriptors(*state, 5000, 0755, 16);
}

static void test_deep_locked(void **state)
{
	chain_with_descriptors(*state, 5000, 0, 16);
	chain_with_descriptors(*state, 1000, 0500, 9);
}

static void test_deep_two_descriptors(void **state)
{
	chain_with_descriptors(*state, 300, 0755, 6);
}

static void test_names(void **state)
{
	struct tree *t = *state;
	char name[256];

	make_dir(t->fd, "s");
	int fd = open_dir(t->fd, "s");
	for (unsigned first = 1; first < 256; first++) {
		if (first == '/')
			continue;
		for (unsigned i = 0; i < 255; i++) {
			unsigned byte = (first + i) % 256;

			name[i] = (char)(byte == 0 || byte == '/' ? 1 : byte);
		}
		name[255] = '\0';
		if (first % 2)
			make_file(fd, name, "", 0600);
		else
			make_dir(fd, name);
	}
	make_file(fd, "...", "", 0600);
	make_file(fd, "-rf *\n", "", 0600);
	assert_int_equal(close(fd), 0);
	assert_int_equal(removes(t->fd, "s", 0).removed, 254 + 3);
}

static void make_socket(const struct tree *t, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", t->path, name);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(close(fd), 0);
}

static void test_outside_is_untouched(void **state)
{
	struct tree *t = *state;

	make_dir(t->fd, "victim");
	make_file(t->fd, "victim/file", "precious", 0640);
	make_dir(t->fd, "s");
	assert_int_equal(linkat(t->fd, "victim/file", t->fd, "s/hard", 0), 0);
	assert_int_equal(symlinkat("../victim", t->fd, "s/dir-link"), 0);
	assert_int_equal(symlinkat("../victim/file", t->fd, "s/file-link"), 0);
	assert_int_equal(symlinkat("/", t->fd, "s/root"), 0);
	assert_int_equal(symlinkat("..", t->fd, "s/up"), 0);
	assert_int_equal(symlinkat("loop", t->fd, "s/loop"), 0);
	assert_int_equal(mkfifoat(t->fd, "s/fifo", 0), 0);
	make_socket(t, "s/socket");
	int fd = openat(t->fd, "s/sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
	assert_int_equal(close(fd), 0);

	struct stat before = stat_of(t->fd, "victim");
	struct remove_result result = removes(t->fd, "s", 0);
	assert_int_equal(result.removed, 10);
	assert_int_equal(result.files, 2);
	assert_true(result.bytes == ((uint64_t)1 << 40) + 8);
	struct stat after = stat_of(t->fd, "victim");
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	struct stat file = stat_of(t->fd, "victim/file");
	assert_int_equal(file.st_nlink, 1);
	assert_int_equal(file.st_mode & 07777, 0640);
	assert_text(t->fd, "victim/file", "precious");
}

/* --- what cannot be removed ------------------------------------------------------------------- */

static void test_mount_inside(void **state)
{
	struct tree *t = *state;

	NEEDS_ROOT("mount");
	make_dir(t->fd, "s");
	make_dir(t->fd, "s/a");
	make_dir(t->fd, "s/a/mnt");
	make_dir(t->fd, "s/b");
	make_file(t->fd, "s/b/file", "x", 0600);
	make_dir(t->fd, "victim");
	make_file(t->fd, "victim/file", "precious", 0600);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct remove_result result;
		char from[128], to[128];

		/* A bind of the same file system: the device number does not tell. */
		(void)snprintf(from, sizeof(from), "%s/victim", t->path);
		(void)snprintf(to, sizeof(to), "%s/s/a/mnt", t->path);
		if (unshare(CLONE_NEWNS) < 0 ||
			mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
			mount(from, to, NULL, MS_BIND, NULL) < 0)
			_exit(2);
		/* The descriptor was opened in the old namespace. */
		int fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (remove_tree(fd, "s", &result, NULL) != -EBUSY)
			_exit(3);
		if (strcmp(result.first, "s/a/mnt") != 0 || result.remained != 3 ||
			result.removed != 2)
			_exit(4);
		if (remove_tree(fd, "s", &result, NULL) != -EBUSY || result.removed != 0)
			_exit(5);
		_exit(0);
	}
	end_child(pid, 0);
	assert_text(t->fd, "victim/file", "precious");
	(void)removes(t->fd, "s", 0);
}

/* Sets or clears the immutable flag. False where the file system has none. */
static bool set_immutable(int at, const char *name, bool on)
{
	autofd int fd = openat(at, name, O_RDONLY | O_CLOEXEC);
	int flags = on ? FS_IMMUTABLE_FL : 0;

	assert_true(fd >= 0);
	return ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
}

static void test_immutable(void **state)
{
	struct tree *t = *state;
	struct remove_result result;
	struct error e = { 0 };

	NEEDS_ROOT("make a file immutable");
	make_wide(t->fd, "s", 3, 20);
	make_dir(t->fd, "s/dir-1/locked");
	make_file(t->fd, "s/dir-1/locked/one", "x", 0600);
	make_file(t->fd, "s/dir-1/locked/two", "x", 0600);
	if (!set_immutable(t->fd, "s/dir-2/file-7", true)) {
		print_message("skipped: no immutable flag on this file system\n");
		skip();
	}
	assert_true(set_immutable(t->fd, "s/dir-1/locked", true));
	int status = remove_tree(t->fd, "s", &result, &e);
	assert_true(set_immutable(t->fd, "s/dir-2/file-7", false));
	assert_true(set_immutable(t->fd, "s/dir-1/locked", false));
	assert_int_equal(status, -EPERM);
	assert_int_equal(e.code, ERROR_TEARDOWN);
	assert_int_equal(e.errnum, EPERM);
	/* s, dir-1, locked, one, two, dir-2, file-7; and where the first of them is, is true. */
	assert_int_equal(result.remained, 7);
	assert_int_equal(result.removed, 1 + 3 + 60 + 3 - 7);
	assert_true(exists(t->fd, result.first));
	assert_string_equal(e.on, result.first);
	assert_true(exists(t->fd, "s/dir-1/locked/one"));
	assert_true(exists(t->fd, "s/dir-2/file-7"));
	(void)removes(t->fd, "s", 0);
}

/* What is left is found, and counted once, also below many levels and by several processes. */
static void test_immutable_deep(void **state)
{
	struct tree *t = *state;
	struct remove_result result;
	char bottom[1024] = "s";

	NEEDS_ROOT("make a file immutable");
	make_chain(t->fd, "s", 100, 0755);
	for (unsigned i = 1; i < 100; i++)
		(void)snprintf(bottom + strlen(bottom), 16, "/deeper");
	(void)snprintf(bottom + strlen(bottom), 16, "/bottom");
	autofd int fd = openat(t->fd, bottom, O_RDONLY | O_CLOEXEC);
	int on = FS_IMMUTABLE_FL, off = 0;
	if (ioctl(fd, FS_IOC_SETFLAGS, &on) < 0) {
		print_message("skipped: no immutable flag on this file system\n");
		skip();
	}
	int status = remove_tree(t->fd, "s", &result, NULL);
	assert_int_equal(ioctl(fd, FS_IOC_SETFLAGS, &off), 0);
	assert_int_equal(status, -EPERM);
	assert_true(exists(t->fd, result.first));
	assert_int_equal(result.removed + result.remained, 101);
	(void)removes(t->fd, "s", 0);
}

static void test_foreign_directory(void **state)
{
	struct tree *t = *state;
	struct remove_result result;

	NEEDS_ROOT("make files of two users");
	make_dir(t->fd, "s");
	make_dir(t->fd, "s/foreign");
	make_file(t->fd, "s/foreign/file", "x", 0600);
	make_file(t->fd, "s/own", "x", 0600);
	assert_int_equal(fchownat(t->fd, "s", 65534, 65534, 0), 0);
	assert_int_equal(fchmodat(t->fd, ".", 0755, 0), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		/* "s" itself stays as well: its parent is root's. */
		if (remove_tree(t->fd, "s", &result, NULL) != -EACCES)
			_exit(3);
		if (strcmp(result.first, "s/foreign/file") != 0)
			_exit(4);
		_exit(result.removed == 1 && result.remained == 3 ? 0 : 5);
	}
	end_child(pid, 0);
	assert_int_equal(stat_of(t->fd, "s/foreign").st_mode & 07777, 0755);
	(void)removes(t->fd, "s", 0);
}

/* --- large trees ------------------------------------------------------------------------------ */

static void test_large(void **state)
{
	static const unsigned shapes[][2] = { { 1, 12000 }, { 20, 600 }, { 300, 40 } };
	static const unsigned workers[] = { 0, 1, 2, 4, 8 };
	struct tree *t = *state;

	for (size_t i = 0; i < 3; i++) {
		for (size_t j = 0; j < 5; j++) {
			unsigned dirs = shapes[i][0];

			make_wide(t->fd, "s", dirs, shapes[i][1]);
			struct remove_result r = removes(t->fd, "s", workers[j]);
			assert_int_equal(r.removed, 12000 + 1 + (dirs > 1 ? dirs : 0));
			assert_int_equal(r.files, 12000);
			assert_int_equal(r.bytes, 12000 * 5);
			if (workers[j])
				assert_int_equal(r.workers, workers[j]);
		}
	}
}

static int64_t now_ns(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* At a deadline that is over nothing is touched. */
static void test_deadline(void **state)
{
	const struct remove_options options = { .deadline_ns = 1 };
	struct tree *t = *state;
	struct remove_result result;

	make_wide(t->fd, "s", 1, 300);
	assert_int_equal(remove_tree_with(t->fd, "s", &options, &result, NULL), -ETIME);
	assert_int_equal(result.errnum, ETIME);
	assert_int_equal(result.remained, 1);
	assert_int_equal(result.removed, 0);
	assert_int_equal(count_entries(t->fd, "s"), 300);
	(void)removes(t->fd, "s", 0);
}

/* One that comes in the middle: what is gone is gone, the rest is for the next, and no process is left. */
static void test_deadline_meanwhile(void **state)
{
	struct tree *t = *state;
	struct remove_options options = { .workers = 3 };
	struct remove_result result;
	int status;

	for (int64_t ns = 250000; ns <= 64000000; ns *= 2) {
		make_wide(t->fd, "s", 20, 300);
		options.deadline_ns = now_ns() + ns;
		int r = remove_tree_with(t->fd, "s", &options, &result, NULL);
		assert_true(r == 0 || r == -ETIME);
		assert_int_equal(exists(t->fd, "s"), r != 0);
		assert_int_equal(waitpid(-1, &status, WNOHANG | __WALL), -1);
		if (r < 0)
			(void)removes(t->fd, "s", 0);
	}
}

/* A supervisor must see neither SIGCHLD, nor zombies, nor further descriptors afterwards. */
static void test_large_leaves_no_trace(void **state)
{
	struct tree *t = *state;
	sigset_t child, pending, old;
	int status;

	assert_int_equal(sigemptyset(&child) | sigaddset(&child, SIGCHLD), 0);
	assert_int_equal(sigprocmask(SIG_BLOCK, &child, &old), 0);
	make_wide(t->fd, "s", 10, 300);
	size_t before = count_entries(AT_FDCWD, "/proc/self/fd");
	assert_int_equal(removes(t->fd, "s", 4).workers, 4);
	assert_int_equal(count_entries(AT_FDCWD, "/proc/self/fd"), before);
	assert_int_equal(sigpending(&pending), 0);
	assert_int_equal(sigismember(&pending, SIGCHLD), 0);
	assert_int_equal(waitpid(-1, &status, WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(sigprocmask(SIG_SETMASK, &old, NULL), 0);
}

/* Kills the children that @pid has now. Returns how many, or -1 when @pid is over. */
static int kill_children(pid_t pid)
{
	char path[64], text[256] = "";
	int killed = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return -1;
	for (char *at = text, *end; (void)(end = at), *at; at = end + (*end == ' ')) {
		long child = strtol(at, &end, 10);

		if (end == at)
			break;
		killed += kill((pid_t)child, SIGKILL) == 0;
	}
	return killed;
}

static void test_killed_workers(void **state)
{
	struct tree *t = *state;
	int killed = 0;

	for (unsigned round = 0; round < 5; round++) {
		make_wide(t->fd, "s", round % 2 ? 1 : 40, round % 2 ? 20000 : 500);
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			const struct remove_options options = { .workers = 4 };
			struct remove_result result;

			_exit(remove_tree_with(t->fd, "s", &options, &result, NULL) < 0);
		}
		siginfo_t info = { 0 };
		while (info.si_pid == 0) {
			int now = kill_children(pid);

			killed += now > 0 ? now : 0;
			pause_shortly();
			assert_int_equal(
				waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT),
				0);
		}
		end_child(pid, 0);
		assert_false(exists(t->fd, "s"));
	}
	assert_true(killed > 0);
}

/* When the leader dies, its workers do. */
static void test_killed_leader(void **state)
{
	struct tree *t = *state;
	int alive[2];
	char byte;

	make_wide(t->fd, "s", 40, 500);
	assert_int_equal(pipe2(alive, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const struct remove_options options = { .workers = 4 };
		struct remove_result result;

		_exit(remove_tree_with(t->fd, "s", &options, &result, NULL) < 0);
	}
	assert_int_equal(close(alive[1]), 0);
	kill_child(pid);
	/* End of file: nobody holds the other end, neither the leader nor a worker. */
	assert_int_equal(read(alive[0], &byte, 1), 0);
	assert_int_equal(close(alive[0]), 0);
	(void)removes(t->fd, "s", 0);
}

/* --- others at work meanwhile ------------------------------------------------------------------ */

enum { CREATED_MAX = 5000 }; /* entries during one removal */

enum {
	TURNS,
	TURNS_MAX
}; /* what an attacker shares: its turns, and how many it may take; 0: any number */

static bool may_not(const uint32_t *done, unsigned turn)
{
	uint32_t most = __atomic_load_n(&done[TURNS_MAX], __ATOMIC_SEQ_CST);

	return most && turn > most;
}

/* Forks a process that repeats @work on the tree until it is killed. @ret_done: see above. */
static pid_t start_attacker(
	struct tree *t, void (*work)(int fd, unsigned turn), uint32_t **ret_done)
{
	uint32_t *done =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(done != MAP_FAILED);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails does not stop it */
		for (unsigned turn = 0;; turn++) {
			while (may_not(done, turn))
				pause_shortly();
			work(t->fd, turn);
			__atomic_store_n(&done[TURNS], turn, __ATOMIC_SEQ_CST);
		}
	}
	*ret_done = done;
	return pid;
}

static uint32_t turns(const uint32_t *done)
{
	return __atomic_load_n(&done[TURNS], __ATOMIC_SEQ_CST);
}

static void create_entries(int fd, unsigned turn)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "s/dir/%u", turn);
	if (turn % 3 == 0) {
		(void)!mkdirat(fd, name, 0700);
	} else {
		int made = openat(fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		if (made >= 0)
			(void)close(made);
	}
	if (turn % 5 == 0) {
		(void)snprintf(name, sizeof(name), "s/%u", turn);
		(void)!renameat(fd, "s/dir", fd, name);
		(void)!mkdirat(fd, "s", 0700);
		(void)!mkdirat(fd, "s/dir", 0700);
	}
}

static void test_concurrent_creator(void **state)
{
	struct tree *t = *state;
	uint32_t *done;
	unsigned successes = 0;
	pid_t pid = start_attacker(t, create_entries, &done);

	for (unsigned round = 0; round < 50; round++) {
		struct remove_result result;
		uint32_t from = turns(done);

		/* Who creates faster than is removed, and does not stop, is not outrun. */
		__atomic_store_n(&done[TURNS_MAX], from + CREATED_MAX, __ATOMIC_SEQ_CST);
		while (turns(done) < from + 20)
			pause_shortly();
		int status = remove_tree(t->fd, "s", &result, NULL);
		/* Gone at some moment, or truly reported. */
		assert_true(status == 0 || status == -ENOTEMPTY);
		assert_int_equal(status == 0, result.remained == 0);
		successes += status == 0;
	}
	kill_child(pid);
	print_message("creator: %u turns, %u of 50 removals complete\n", *done, successes);
	(void)removes(t->fd, "s", 0);
	assert_int_equal(munmap(done, 4096), 0);
}

static void test_two_removers(void **state)
{
	struct tree *t = *state;

	for (unsigned round = 0; round < 6; round++) {
		make_wide(t->fd, "s", 30, 100);
		make_chain(t->fd, "s/chain", 200, 0755);
		pid_t pid = fork();
		assert_true(pid >= 0);
		struct remove_result result;
		const struct remove_options options = { .workers = round % 3 };
		int status = remove_tree_with(t->fd, "s", &options, &result, NULL);
		if (pid == 0)
			_exit(status < 0);
		assert_int_equal(status, 0);
		end_child(pid, 0);
		assert_false(exists(t->fd, "s"));
	}
}

/* The directory and a link to the victim change places all the time. */
static void swap_link(int fd, unsigned turn)
{
	(void)turn;
	(void)syscall(SYS_renameat2, fd, "s/dir", fd, "s/link", RENAME_EXCHANGE);
	(void)syscall(SYS_renameat2, fd, "s/dir/sub", fd, "s/sub-link", RENAME_EXCHANGE);
}

static void make_swap_tree(struct tree *t)
{
	make_dir(t->fd, "s");
	make_dir(t->fd, "s/dir");
	make_dir(t->fd, "s/dir/sub");
	make_file(t->fd, "s/dir/file", "x", 0600);
	make_file(t->fd, "s/dir/sub/file", "x", 0600);
	assert_int_equal(symlinkat("../victim", t->fd, "s/link"), 0);
	assert_int_equal(symlinkat("../victim", t->fd, "s/sub-link"), 0);
}

static void test_symlink_swap(void **state)
{
	struct tree *t = *state;
	uint32_t *done;

	make_dir(t->fd, "victim");
	make_dir(t->fd, "victim/inner");
	make_file(t->fd, "victim/file", "precious", 0640);
	make_file(t->fd, "victim/inner/file", "precious", 0640);
	assert_int_equal(fchmodat(t->fd, "victim/inner", 0750, 0), 0);

	/*
	 * Control: a remover by path, which looks ("s/dir" is a directory) and then acts, reaches
	 * the victim when the swap comes in between.
	 */
	make_swap_tree(t);
	make_file(t->fd, "victim/bait", "precious", 0640);
	assert_true(S_ISDIR(stat_of(t->fd, "s/dir").st_mode));
	swap_link(t->fd, 0);
	assert_int_equal(unlinkat(t->fd, "s/dir/bait", 0), 0);
	assert_false(exists(t->fd, "victim/bait"));
	(void)removes(t->fd, "s", 0);

	pid_t pid = start_attacker(t, swap_link, &done);
	for (unsigned round = 0; round < 1500; round++) {
		struct remove_result result;

		make_swap_tree(t);
		int status = remove_tree(t->fd, "s", &result, NULL);
		if (status < 0 && status != -ENOTEMPTY && status != -ENOTDIR)
			fail_msg("%s: %s", result.first, strerror(-status));
		if (status < 0)
			assert_true(result.remained > 0);
		if (exists(t->fd, "s")) {
			assert_true(status < 0);
			assert_int_equal(remove_tree(t->fd, "s", &result, NULL), 0);
		}
	}
	kill_child(pid);
	assert_true(turns(done) > 1500);
	print_message("swapper: %u turns in 1500 removals\n", *done);
	assert_int_equal(munmap(done, 4096), 0);
	assert_text(t->fd, "victim/file", "precious");
	assert_text(t->fd, "victim/inner/file", "precious");
	assert_int_equal(stat_of(t->fd, "victim/file").st_mode & 07777, 0640);
	assert_int_equal(stat_of(t->fd, "victim/inner").st_mode & 07777, 0750);
	assert_int_equal(count_entries(t->fd, "victim"), 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)
#define LARGE(name) cmocka_unit_test_setup_teardown(name, tree_setup_memory, tree_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_counts),
		TEST(test_absent),
		TEST(test_bad_names),
		TEST(test_single_entries),
		TEST(test_locked_directories),
		LARGE(test_deep),
		LARGE(test_deep_few_descriptors),
		LARGE(test_deep_locked),
		LARGE(test_deep_two_descriptors),
		TEST(test_names),
		TEST(test_outside_is_untouched),
		TEST(test_mount_inside),
		TEST(test_immutable),
		TEST(test_immutable_deep),
		TEST(test_foreign_directory),
		LARGE(test_large),
		TEST(test_deadline),
		LARGE(test_deadline_meanwhile),
		LARGE(test_large_leaves_no_trace),
		LARGE(test_killed_workers),
		LARGE(test_killed_leader),
		LARGE(test_concurrent_creator),
		LARGE(test_two_removers),
		LARGE(test_symlink_swap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

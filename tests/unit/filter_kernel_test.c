/*
 * filter_kernel_test.c - the default filter in the kernel: attempts to pass it, each with a control
 * arm that shows what happens without it.
 *
 * Runs in: the unit tests, as root and as a user; each attempt in a child of its own.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plan/embedded.h"

#define NOT_LOADED 250 /* exit status: the filter could not be loaded */

/* Runs in a child, with the filter @name (NULL: none). Its result, as errno, is the exit status. */
typedef int (*attempt_fn)(void);

static int load_filter(const char *name)
{
	const struct embedded_filter *f = embedded_find_filter(name);

	if (!f || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	struct sock_fprog program = { f->count, (struct sock_filter *)(uintptr_t)f->code };
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* The attempt's errno (0: it succeeded), or 1000 + the signal that ended the child. */
static int try(attempt_fn attempt, const char *filter)
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)signal(SIGSEGV,
			SIG_DFL); /* cmocka's handler would go on with the tests here */
		if (filter && load_filter(filter) != 0)
			_exit(NOT_LOADED);
		_exit(attempt());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return 1000 + WTERMSIG(status);
	assert_int_not_equal(WEXITSTATUS(status), NOT_LOADED);
	return WEXITSTATUS(status);
}

static int result(long r)
{
	return r < 0 ? errno : 0;
}

/* --- terminals -------------------------------------------------------------------------------- */

/* TIOCSTI in front of a terminal of our own, the request with something above its 32 bits. */
static int type_into_terminal(unsigned long above)
{
	int master = -1, terminal = -1;
	char typed = '!';

	if (openpty(&master, &terminal, NULL, NULL, NULL) != 0 || setsid() < 0 ||
		ioctl(terminal, TIOCSCTTY, 0) != 0)
		return NOT_LOADED;
	return result(syscall(SYS_ioctl, (unsigned long)terminal, above | TIOCSTI, &typed));
}

static int type_plainly(void)
{
	return type_into_terminal(0);
}

static int type_with_high_bits(void)
{
	return type_into_terminal(0xffffffff00000000ul);
}

static int type_with_one_bit(void)
{
	return type_into_terminal(1ul << 32);
}

/*
 * Without the filter the kernel does it, high bits or not; or, where dev.tty.legacy_tiocsti is 0 and
 * we are not root, it answers EIO, which is the ioctl's own answer and not EPERM.
 */
static void test_tiocsti(void **state)
{
	static const attempt_fn attempts[] = { type_plainly, type_with_high_bits,
		type_with_one_bit };

	(void)state;
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		int without = try(attempts[i], NULL);

		assert_true(without == 0 || without == EIO);
		assert_int_equal(try(attempts[i], "default"), EPERM);
		assert_int_equal(try(attempts[i], "nested"), EPERM);
		assert_int_equal(try(attempts[i], "strict"), EPERM);
	}
}

/* --- other ABIs ------------------------------------------------------------------------------- */

#ifdef __x86_64__
static int call_x32(void)
{
	return result(syscall(0x40000000 | SYS_getppid));
}

static int call_i386(void)
{
	long r = 20; /* getpid there */

	__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
	return r < 0 ? (int)-r : 0;
}

/* Without the filter: done, or unknown to a kernel without that ABI; not SIGSYS. */
static void test_x32_dies(void **state)
{
	(void)state;
	assert_int_equal(try(call_x32, "default"), 1000 + SIGSYS);
	assert_int_not_equal(try(call_x32, NULL), 1000 + SIGSYS);
}

/*
 * Where the kernel has no such ABI (ia32_emulation=off, paravirtual guests) int 0x80 is a segmentation fault for
 * every program, before any filter: nobody gets in. That the filter kills it is then shown by the interpreter
 * alone (filter_test: the `i386` lines of the tables).
 */
static void test_i386_dies(void **state)
{
	int without = try(call_i386, NULL);

	(void)state;
	if (without == 1000 + SIGSEGV) {
		assert_int_equal(try(call_i386, "default"), 1000 + SIGSEGV);
		print_message("skipped: no 32-bit ABI in this kernel\n");
		skip();
	}
	assert_int_equal(try(call_i386, "default"), 1000 + SIGSYS);
	assert_int_not_equal(without, 1000 + SIGSYS);
}
#endif

/* --- files ------------------------------------------------------------------------------------ */

static char directory[64];

/* Each leaves `directory`/x behind if it could make it setuid. */
static int setuid_by_open(void)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/x", directory);
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY, 04755);
	return result(fd);
}

static int setuid_by_high_bits(void)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/x", directory);
	return result(syscall(SYS_openat, (long)AT_FDCWD, path,
		0xffffffff00000000ul | O_CREAT | O_WRONLY, 0xffffffffffff0000ul | 04755));
}

static int setuid_by_chmod(void)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/x", directory);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	if (fd < 0)
		return NOT_LOADED;
	return result(fchmod(fd, 04755));
}

static int setuid_by_openat2(void)
{
	uint64_t how[3] = { O_CREAT | O_WRONLY, 04755, 0 };
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/x", directory);
	return result(syscall(SYS_openat2, AT_FDCWD, path, how, sizeof(how)));
}

/* Whether the attempt left a setuid file; it is removed. */
static bool made_setuid(attempt_fn attempt, const char *filter, int *ret_errno)
{
	char path[128];
	struct stat st = { 0 };

	(void)snprintf(path, sizeof(path), "%s/x", directory);
	*ret_errno = try(attempt, filter);
	bool is_setuid = stat(path, &st) == 0 && (st.st_mode & S_ISUID);
	(void)unlink(path);
	return is_setuid;
}

static void test_no_setuid_file(void **state)
{
	static const struct {
		attempt_fn attempt;
		int answer;
	} cases[] = { { setuid_by_open, EPERM }, { setuid_by_high_bits, EPERM },
		{ setuid_by_chmod, EPERM }, { setuid_by_openat2, ENOSYS } };

	(void)state;
	(void)snprintf(directory, sizeof(directory), "/tmp/filter-test.XXXXXX");
	assert_non_null(mkdtemp(directory));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int answer = 0;

		assert_true(made_setuid(cases[i].attempt, NULL, &answer));
		assert_false(made_setuid(cases[i].attempt, "default", &answer));
		assert_int_equal(answer, cases[i].answer);
	}
	assert_int_equal(rmdir(directory), 0);
}

/* A plain open without O_CREAT may have anything in the register of the mode. */
static int open_with_garbage(void)
{
	return result(syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY, 0xffffffffffffffffl));
}

/* --- processes -------------------------------------------------------------------------------- */

static int clone_user_namespace(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return result(pid);
}

static int clone_plainly(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return result(pid);
}

static int clone_3(void)
{
	uint64_t args[8] = { 0, 0, 0, 0, SIGCHLD };
	pid_t pid = (pid_t)syscall(SYS_clone3, args, sizeof(args));

	if (pid == 0)
		_exit(0);
	return result(pid);
}

static int unshare_files(void)
{
	return result(unshare(CLONE_FILES));
}

static int unknown_call(void)
{
	return result(syscall(500));
}

static int vsock(void)
{
	return result(socket(AF_VSOCK, SOCK_STREAM, 0));
}

static int unix_socket(void)
{
	return result(socket(AF_UNIX, SOCK_STREAM, 0));
}

static void test_processes_and_sockets(void **state)
{
	(void)state;
	/* 0, or what a machine without user namespaces says: never this filter's answer alone. */
	int without = try(clone_user_namespace, NULL);
	assert_int_equal(try(clone_user_namespace, "default"), EPERM);
	if (without == 0)
		assert_int_equal(try(clone_user_namespace, "nested"), 0);
	assert_int_equal(try(clone_plainly, "default"), 0);
	assert_int_equal(try(clone_3, NULL), 0);
	assert_int_equal(try(clone_3, "default"), ENOSYS);
	assert_int_equal(try(unshare_files, "default"), 0);
	assert_int_equal(try(unshare_files, "strict"), EPERM);
	assert_int_equal(try(unknown_call, "default"), ENOSYS);
	assert_int_equal(try(vsock, "default"), EAFNOSUPPORT);
	assert_int_equal(try(unix_socket, "default"), 0);
	assert_int_equal(try(unix_socket, "strict"), 0);
	assert_int_equal(try(open_with_garbage, "default"), 0);
}

/* --- the supervisor's ------------------------------------------------------------------------- */

static int execute(void)
{
	char *const argv[] = { "true", NULL };

	(void)execv("/bin/true", argv);
	return errno;
}

static int map_executable(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? errno : 0;
}

static int map_data(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? errno : 0;
}

/* As the coverer does: into a user namespace, a file system made there, a process stopped. */
static int cover(const char *second, int (*call)(pid_t child))
{
	int inside[2], status = 0;
	pid_t parent = getpid(), child;
	char byte;

	if (pipe(inside) < 0)
		return NOT_LOADED;
	child = fork();
	if (child == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ||
			unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
			write(inside[1], "", 1) != 1)
			_exit(NOT_LOADED);
		for (;;)
			(void)pause();
	}
	(void)close(inside[1]);
	if (child < 0 || read(inside[0], &byte, 1) != 1)
		return NOT_LOADED;
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)child);
	int ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || load_filter("supervisor") != 0 || (second && load_filter(second) != 0))
		return NOT_LOADED;
	int r = call ? call(child) : result(syscall(SYS_setns, ns, CLONE_NEWUSER));
	(void)kill(child, SIGKILL);
	(void)waitpid(child, &status, 0);
	return r;
}

static int stop(pid_t child)
{
	return result(syscall(SYS_ptrace, 0x4206 /* PTRACE_SEIZE */, child, NULL, NULL));
}

static int enter_first(void)
{
	return cover(NULL, NULL);
}

static int enter_settled(void)
{
	return cover("settled", NULL);
}

static int stop_first(void)
{
	return cover(NULL, stop);
}

static int stop_settled(void)
{
	return cover("settled", stop);
}

/* What the supervisor can do for the coverer it cannot when that one has been started. */
static void test_supervisor_settled(void **state)
{
	(void)state;
	/* A machine that refuses user namespaces to this user has none to go into. */
	if (try(clone_user_namespace, NULL) == 0) {
		assert_int_equal(try(enter_first, NULL), 0);
		assert_int_equal(try(enter_settled, NULL), EPERM);
		assert_int_equal(try(stop_first, NULL), 0);
		assert_int_equal(try(stop_settled, NULL), EPERM);
	}
	assert_int_equal(try(map_data, "settled"), 0);
	assert_int_equal(try(clone_plainly, "settled"), 0);
}

static void test_supervisor(void **state)
{
	(void)state;
	assert_int_equal(try(execute, NULL), 0);
	assert_int_equal(try(execute, "supervisor"), EPERM);
	assert_int_equal(try(unix_socket, "supervisor"), EPERM);
	assert_int_equal(try(map_executable, NULL), 0);
	assert_int_equal(try(map_executable, "supervisor"), EPERM);
	assert_int_equal(try(map_data, "supervisor"), 0);
	assert_int_equal(try(clone_user_namespace, "supervisor"), EPERM);
	assert_int_equal(try(clone_plainly, "supervisor"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tiocsti),
#ifdef __x86_64__
		cmocka_unit_test(test_x32_dies),
		cmocka_unit_test(test_i386_dies),
#endif
		cmocka_unit_test(test_no_setuid_file),
		cmocka_unit_test(test_processes_and_sockets),
		cmocka_unit_test(test_supervisor),
		cmocka_unit_test(test_supervisor_settled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

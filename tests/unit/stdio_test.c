/*
 * stdio_test.c - what each kind of descriptor becomes, why (each claim with a control arm that does
 * to the bare descriptor what the payload must not be able to do), and relays end to end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/stdio/stdio.h"

static int64_t now_ms(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int dev_null(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* A file with @text, opened anew with @flags; its path is gone unless @ret_path is given. */
static int make_file(const char *text, int flags, char *ret_path)
{
	char path[] = "/tmp/stdio-test-XXXXXX";
	int made = mkostemp(path, O_CLOEXEC);

	assert_true(made >= 0);
	assert_int_equal(fd_write_all(made, text, strlen(text)), 0);
	int fd = open(path, flags | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(close(made), 0);
	if (ret_path)
		memcpy(ret_path, path, sizeof(path));
	else
		assert_int_equal(unlink(path), 0);
	return fd;
}

static void assert_content(int fd, const char *want)
{
	char got[4096];
	ssize_t n = pread(fd, got, sizeof(got) - 1, 0);

	assert_true(n >= 0);
	got[n] = '\0';
	assert_string_equal(got, want);
}

/* --- classification -------------------------------------------------------------------------- */

/* As stdin, with the other two on /dev/null. Takes @fd. */
static void expect(int fd, enum stdio_kind kind, enum stdio_how how)
{
	struct stdio s;
	struct error e = { 0 };
	autofd int own = fd;
	autofd int null = dev_null();

	assert_true(fd >= 0);
	assert_int_equal(stdio_prepare(&s, (int[]){ fd, null, null }, TTY_NO, &e), 0);
	assert_int_equal(s.stream[0].kind, kind);
	assert_int_equal(s.stream[0].how, how);
	assert_false(s.want_pty);
	if (how == STDIO_PASS) {
		assert_int_equal(s.child_fd[0], fd);
	} else {
		assert_int_not_equal(s.child_fd[0], fd);
		assert_true(fcntl(s.child_fd[0], F_GETFD) & FD_CLOEXEC);
	}
	assert_int_equal(stdio_close(&s, NULL), 0);
}

static void expect_refused(int fd, const char *word)
{
	struct stdio s;
	autofd int own = fd;
	autofd int null = dev_null();

	assert_true(fd >= 0);
	for (unsigned i = 0; i < STDIO_STREAMS; i++) {
		struct error e = { 0 };
		int fds[STDIO_STREAMS] = { null, null, null };
		char on[] = "descriptor 0";

		fds[i] = fd;
		on[11] = (char)('0' + i);
		assert_true(stdio_prepare(&s, fds, TTY_AUTO, &e) < 0);
		assert_int_equal(e.code, ERROR_DESCRIPTOR);
		assert_string_equal(e.on, on);
		assert_non_null(strstr(e.what, word));
		assert_true(e.hint[0] != '\0');
	}
}

static void test_pipes(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	expect(fds[0], STDIO_KIND_PIPE, STDIO_PASS);
	fd_close(&fds[1]);

	char dir[] = "/tmp/stdio-test-XXXXXX";
	char path[64];
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect(open(path, O_RDWR | O_CLOEXEC), STDIO_KIND_FIFO, STDIO_RELAY);

	/* Control arm: with the bare descriptor the host's inode can be changed. */
	struct stat st;
	autofd int bare = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fchmod(bare, 0666), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void test_devices(void **state)
{
	static const char *const harmless[] = { "/dev/null", "/dev/zero", "/dev/full",
		"/dev/random", "/dev/urandom" };
	int master, slave;

	(void)state;
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		expect(open(harmless[i], O_RDWR | O_CLOEXEC), STDIO_KIND_HARMLESS, STDIO_PASS);
	assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
	assert_true(isatty(master)); /* which is why isatty alone does not decide */
	expect(slave, STDIO_KIND_TERMINAL, STDIO_PASS);
	expect(master, STDIO_KIND_DEVICE, STDIO_RELAY);

	int kmsg = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	if (kmsg >= 0)
		expect(kmsg, STDIO_KIND_DEVICE, STDIO_RELAY);
}

static void test_block_device(void **state)
{
	(void)state;
	autofd int fd = open("/dev/loop0", O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		print_message("skipped: /dev/loop0 cannot be opened: %s\n", strerror(errno));
		skip();
	}
	expect(take_fd(&fd), STDIO_KIND_BLOCK, STDIO_RELAY);
}

static void test_files(void **state)
{
	(void)state;
	expect(make_file("x", O_RDONLY, NULL), STDIO_KIND_FILE, STDIO_RELAY);
	expect(make_file("x", O_WRONLY | O_APPEND, NULL), STDIO_KIND_FILE, STDIO_RELAY);
	expect(memfd_create("m", MFD_CLOEXEC), STDIO_KIND_FILE, STDIO_RELAY);
	expect(open("/proc/self/status", O_RDONLY | O_CLOEXEC), STDIO_KIND_FILE, STDIO_RELAY);
}

static void test_refused(void **state)
{
	(void)state;
	expect_refused(open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "directory");
	expect_refused(open("/tmp", O_PATH | O_CLOEXEC), "O_PATH");
	expect_refused(open("/dev/null", O_PATH | O_CLOEXEC), "O_PATH");
	expect_refused(epoll_create1(EPOLL_CLOEXEC), "kernel object");
	expect_refused(eventfd(0, EFD_CLOEXEC), "kernel object");
	expect_refused(pidfd_open(getpid(), 0), "kernel object");
	expect_refused(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), "family");

	/* Control arm: what a directory would give. */
	autofd int dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autofd int out = openat(dir, "../etc/passwd", O_RDONLY | O_CLOEXEC);
	assert_true(out >= 0);
}

/* --- sockets --------------------------------------------------------------------------------- */

/* A listening TCP socket on the loopback; returns it and its address. */
static int listen_tcp(struct sockaddr_in *ret)
{
	socklen_t size = sizeof(*ret);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	*ret = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_int_equal(bind(fd, (struct sockaddr *)ret, size), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)ret, &size), 0);
	return fd;
}

static int listen_abstract(struct sockaddr_un *ret, socklen_t *ret_size)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	int n = snprintf(
		ret->sun_path + 1, sizeof(ret->sun_path) - 1, "stdio-test-%d", getpid());
	*ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	assert_int_equal(bind(fd, (struct sockaddr *)ret, *ret_size), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static void test_tcp(void **state)
{
	struct sockaddr_in here, there;
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	autofd int listener = listen_tcp(&here);
	autofd int elsewhere = listen_tcp(&there);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(connect(fd, (struct sockaddr *)&here, sizeof(here)), 0);
	autofd int bare = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	expect(fd, STDIO_KIND_SOCKET, STDIO_RELAY);
	/* Control arm: the bare descriptor can be sent elsewhere in its network namespace. */
	assert_int_equal(connect(bare, &none, sizeof(none)), 0);
	assert_int_equal(connect(bare, (struct sockaddr *)&there, sizeof(there)), 0);
	expect_refused(take_fd(&listener), "listening");
	expect(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), STDIO_KIND_DATAGRAM,
		STDIO_RELAY);
}

static void test_unix_sockets(void **state)
{
	struct sockaddr_un address;
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	socklen_t size;
	autofd int listener = listen_abstract(&address, &size);
	int fds[2];

	(void)state;
	/* Connected: passed, because it can neither be connected anew nor listen, ... */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	autofd int bare = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
	expect(fds[0], STDIO_KIND_UNIX, STDIO_PASS);
	for (int peer_gone = 0; peer_gone < 2; peer_gone++) {
		assert_int_equal(connect(bare, (struct sockaddr *)&address, size), -1);
		assert_int_equal(errno, EISCONN);
		assert_int_equal(connect(bare, &none, sizeof(none)), -1);
		assert_int_equal(listen(bare, 1), -1);
		fd_close(&fds[1]); /* ... also when its peer is gone */
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	expect(fds[0], STDIO_KIND_UNIX, STDIO_PASS);
	fd_close(&fds[1]);

	/* Not connected: relayed. Control arm: it reaches the host's abstract sockets. */
	int loose = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	autofd int loose_bare = fcntl(loose, F_DUPFD_CLOEXEC, 0);
	expect(loose, STDIO_KIND_SOCKET, STDIO_RELAY);
	assert_int_equal(connect(loose_bare, (struct sockaddr *)&address, size), 0);
	expect_refused(take_fd(&listener), "listening");
}

static void test_unix_datagram(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fds[2];
	char got[8];

	(void)state;
	int n = snprintf(
		address.sun_path + 1, sizeof(address.sun_path) - 1, "stdio-dgram-%d", getpid());
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	autofd int other = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(other, (struct sockaddr *)&address, size), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds), 0);
	autofd int bare = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
	expect(fds[0], STDIO_KIND_DATAGRAM, STDIO_RELAY);
	/* Control arm: connected, and yet it writes to any socket of the host. */
	assert_int_equal(sendto(bare, "out", 3, 0, (struct sockaddr *)&address, size), 3);
	assert_int_equal(recv(other, got, sizeof(got), MSG_DONTWAIT), 3);
	fd_close(&fds[1]);
}

/* --- terminals ------------------------------------------------------------------------------- */

static void test_tty_modes(void **state)
{
	static const struct {
		enum tty_mode mode;
		bool terminal[STDIO_STREAMS]; /* else a pipe */
		bool want_pty, eager;
		bool pty[STDIO_STREAMS];
		int in, out; /* index of the stream, -1 = none */
	} cases[] = {
		{ TTY_NO, { 1, 1, 1 }, 0, 0, { 0, 0, 0 }, -1, -1 },
		{ TTY_AUTO, { 0, 0, 0 }, 0, 0, { 0, 0, 0 }, -1, -1 },
		{ TTY_AUTO, { 1, 1, 1 }, 1, 1, { 1, 1, 1 }, 0, 1 },
		{ TTY_AUTO, { 1, 1, 0 }, 1, 1, { 1, 1, 0 }, 0, 1 },
		{ TTY_AUTO, { 1, 0, 1 }, 1, 0, { 1, 0, 1 }, 0, 2 },
		{ TTY_AUTO, { 1, 0, 0 }, 1, 0, { 1, 0, 0 }, 0, 0 },
		{ TTY_AUTO, { 0, 1, 1 }, 1, 0, { 0, 1, 1 }, 1, 1 },
		{ TTY_AUTO, { 0, 0, 1 }, 1, 0, { 0, 0, 1 }, 2, 2 },
		{ TTY_YES, { 0, 0, 0 }, 1, 1, { 1, 1, 1 }, 0, 1 },
		{ TTY_YES, { 1, 0, 0 }, 1, 1, { 1, 1, 1 }, 0, 1 },
	};
	int master, slave, pipe_fds[2];

	(void)state;
	assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct stdio s;
		int fds[STDIO_STREAMS];

		for (unsigned i = 0; i < STDIO_STREAMS; i++)
			fds[i] = fcntl(cases[c].terminal[i] ? slave : pipe_fds[i == 0 ? 0 : 1],
				F_DUPFD_CLOEXEC, 0);
		assert_int_equal(stdio_prepare(&s, fds, cases[c].mode, NULL), 0);
		assert_int_equal(s.want_pty, cases[c].want_pty);
		assert_int_equal(s.tty_eager, cases[c].eager);
		for (unsigned i = 0; i < STDIO_STREAMS; i++) {
			assert_int_equal(s.stream[i].how == STDIO_PTY, cases[c].pty[i]);
			assert_int_equal(s.child_fd[i], cases[c].pty[i] ? -1 : fds[i]);
		}
		assert_int_equal(s.tty_in, cases[c].in < 0 ? -1 : fds[cases[c].in]);
		assert_int_equal(s.tty_out, cases[c].out < 0 ? -1 : fds[cases[c].out]);
		assert_int_equal(stdio_close(&s, NULL), 0);
		for (unsigned i = 0; i < STDIO_STREAMS; i++)
			fd_close(&fds[i]);
	}
	fd_close(&master);
	fd_close(&slave);
	fd_close(&pipe_fds[0]);
	fd_close(&pipe_fds[1]);
}

/* stderr on another terminal than stdin and stdout: not in this pty. */
static void test_two_terminals(void **state)
{
	struct stdio s;
	int master[2], slave[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(openpty(&master[i], &slave[i], NULL, NULL, NULL), 0);
	assert_int_equal(
		stdio_prepare(&s, (int[]){ slave[0], slave[0], slave[1] }, TTY_AUTO, NULL), 0);
	assert_int_equal(s.stream[1].how, STDIO_PTY);
	assert_int_equal(s.stream[2].how, STDIO_RELAY);
	assert_int_equal(stdio_close(&s, NULL), 0);
	for (int i = 0; i < 2; i++) {
		fd_close(&master[i]);
		fd_close(&slave[i]);
	}
}

static const struct stdio_output twenty = { .budget = 20, .max_bytes = UINT64_MAX };

/* Standard output and error are pipes of ours then, terminal or not; the keyboard stays one. */
static void test_budget_at_a_terminal(void **state)
{
	const struct stdio_output merged = {
		.budget = BUDGET_NONE, .max_bytes = 9, .merge = true
	};
	struct error e = { 0 };
	struct stdio s;
	int master, slave;

	(void)state;
	assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
	const int fds[] = { slave, slave, slave };
	assert_int_equal(stdio_prepare_output(&s, fds, TTY_AUTO, &twenty, &e), 0);
	assert_true(s.want_pty && s.stream[0].how == STDIO_PTY);
	assert_true(s.stream[1].how == STDIO_RELAY && s.stream[2].how == STDIO_RELAY);
	assert_true(s.child_fd[1] >= 0 && s.child_fd[2] >= 0);
	assert_int_not_equal(s.child_fd[1], s.child_fd[2]);
	assert_int_equal(stdio_close(&s, NULL), 0);

	assert_int_equal(stdio_prepare_output(&s, fds, TTY_NO, &merged, &e), 0);
	assert_false(s.want_pty);
	assert_int_equal(s.stream[0].how, STDIO_PASS);
	assert_int_equal(s.child_fd[1], s.child_fd[2]);
	assert_false(stdio_is_held(&s));
	assert_int_equal(stdio_close(&s, NULL), 0);

	assert_true(stdio_prepare_output(&s, fds, TTY_YES, &twenty, &e) < 0);
	assert_int_equal(e.code, ERROR_USAGE);
	assert_non_null(strstr(e.what, "budget"));
	fd_close(&master);
	fd_close(&slave);
}

/* One of the streams to be merged: what standard output is, whatever standard error was. */
static void test_merge(void **state)
{
	const struct stdio_output merge = {
		.budget = BUDGET_NONE, .max_bytes = UINT64_MAX, .merge = true
	};
	struct stdio s;
	int ends[2];
	autofd int null = dev_null();
	autofd int file = make_file("", O_RDWR, NULL);

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(stdio_prepare_output(
				 &s, (int[]){ null, ends[1], file }, TTY_AUTO, &merge, NULL),
		0);
	assert_true(s.stream[1].how == STDIO_PASS && s.stream[2].how == STDIO_PASS);
	assert_true(s.child_fd[1] == ends[1] && s.child_fd[2] == ends[1]);
	assert_int_equal(stdio_close(&s, NULL), 0);
	assert_int_equal(stdio_prepare_output(
				 &s, (int[]){ null, file, ends[1] }, TTY_AUTO, &merge, NULL),
		0);
	assert_true(s.stream[1].how == STDIO_RELAY && s.stream[2].how == STDIO_RELAY);
	assert_int_equal(s.child_fd[1], s.child_fd[2]);
	assert_int_equal(stdio_close(&s, NULL), 0);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}

/* --- end to end ------------------------------------------------------------------------------ */

/* Runs @payload in a child that gets 0, 1, 2 as init makes them. Its status, or 128 + signal. */
static int run_with(const int fds[STDIO_STREAMS], const struct stdio_output *output,
	int (*payload)(void), struct error *e, int *ret_close, bool *ret_over)
{
	struct stdio s;
	bool over = false;
	struct epoll_event event;
	int status = 0;
	pid_t ended = 0;

	assert_int_equal(output ? stdio_prepare_output(&s, fds, TTY_NO, output, e)
				: stdio_prepare(&s, fds, TTY_NO, e),
		0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		for (int i = 0; i < STDIO_STREAMS; i++)
			if (dup2(s.child_fd[i], i) != i)
				_exit(99);
		(void)close_range(3, ~0U, 0);
		(void)signal(SIGPIPE, SIG_DFL);
		sigset_t none;
		(void)sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		_exit(payload());
	}
	stdio_child_started(&s);
	autofd int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(stdio_start(&s, epoll_fd, 10), 0);
	while (ended == 0) {
		if (epoll_wait(epoll_fd, &event, 1, 10) == 1)
			over |= stdio_step(&s, (unsigned)(event.data.u64 - 10));
		ended = waitpid(pid, &status, WNOHANG);
	}
	assert_int_equal(ended, pid);
	assert_int_equal(stdio_drain(&s, now_ms() + 60000, -1), 0);
	int closed = stdio_close(&s, e);
	if (ret_close)
		*ret_close = closed;
	else
		assert_int_equal(closed, 0);
	assert_true(!over || stdio_is_over(&s));
	if (ret_over)
		*ret_over = stdio_is_over(&s);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run(
	const int fds[STDIO_STREAMS], int (*payload)(void), struct error *e, int *ret_close)
{
	return run_with(fds, NULL, payload, e, ret_close, NULL);
}

static int payload_reopen_stdin(void)
{
	int fd = open("/proc/self/fd/0", O_WRONLY);

	if (fd < 0)
		return 1;
	return write(fd, "EVIL", 4) == 4 ? 0 : 2;
}

static void test_reopen_stdin(void **state)
{
	(void)state;
	autofd int null = dev_null();
	autofd int file = make_file("good", O_RDONLY, NULL);
	/* The relayed one: the name leads to a pipe; whatever is written there, the file stays. */
	(void)run((int[]){ file, null, null }, payload_reopen_stdin, NULL, NULL);
	assert_content(file, "good");

	/* Control arm: the same file handed over as it is, opened for reading only. */
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)dup2(file, 0);
		_exit(payload_reopen_stdin());
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_content(file, "EVIL");
}

static int payload_clear_append(void)
{
	(void)fcntl(1, F_SETFL, 0);
	(void)lseek(1, 0, SEEK_SET);
	(void)!ftruncate(1, 0);
	return write(1, "EVIL", 4) == 4 ? 0 : 2;
}

static void test_append_stays(void **state)
{
	(void)state;
	autofd int null = dev_null();
	char path[32];
	autofd int log = make_file("old log\n", O_WRONLY | O_APPEND, path);
	autofd int look = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(run((int[]){ null, log, null }, payload_clear_append, NULL, NULL), 0);
	assert_content(look, "old log\nEVIL");

	/* Control arm. */
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)dup2(log, 1);
		_exit(payload_clear_append());
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_content(look, "EVIL");
}

static int payload_cat(void)
{
	char block[8192];
	ssize_t n;

	while ((n = read(0, block, sizeof(block))) > 0)
		if (fd_write_all(1, block, (size_t)n) < 0)
			return 1;
	return n == 0 ? 0 : 2;
}

static void test_file_to_file(void **state)
{
	const size_t size = 3 * 1024 * 1024 + 17;
	char *text = malloc(size + 1);

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < size; i++)
		text[i] = (char)('a' + i % 23);
	text[size] = '\0';
	autofd int null = dev_null();
	autofd int in = make_file(text, O_RDONLY, NULL);
	autofd int out = make_file("", O_RDWR, NULL);
	assert_int_equal(run((int[]){ in, out, null }, payload_cat, NULL, NULL), 0);
	char *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, out, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(lseek(out, 0, SEEK_END), size);
	assert_memory_equal(map, text, size);
	assert_int_equal(lseek(in, 0, SEEK_CUR), size); /* all of it was read */
	assert_int_equal(munmap(map, size), 0);
	free(text);
}

static int payload_read_line(void)
{
	char c = 0;

	/* Byte by byte, as `read` of a shell does. */
	while (c != '\n')
		if (read(0, &c, 1) != 1 || write(1, &c, 1) != 1)
			return 1;
	return 0;
}

static int payload_nothing(void)
{
	return 0;
}

/* while read -r line; do carrel run ...; done < file */
static void test_unread_input_is_given_back(void **state)
{
	(void)state;
	autofd int null = dev_null();
	autofd int small = make_file("one\ntwo\nthree\n", O_RDONLY, NULL);
	autofd int out = make_file("", O_RDWR, NULL);
	int fds[] = { small, out, null };

	assert_int_equal(run(fds, payload_nothing, NULL, NULL), 0);
	assert_int_equal(lseek(small, 0, SEEK_CUR), 0);
	assert_int_equal(run(fds, payload_read_line, NULL, NULL), 0);
	assert_int_equal(lseek(small, 0, SEEK_CUR), 4);
	assert_int_equal(run(fds, payload_read_line, NULL, NULL), 0);
	assert_int_equal(run(fds, payload_read_line, NULL, NULL), 0);
	assert_int_equal(run(fds, payload_read_line, NULL, NULL), 1);
	assert_content(out, "one\ntwo\nthree\n");

	/* More than pipe and buffer hold. */
	const size_t size = 1024 * 1024;
	char *text = malloc(size + 1);
	assert_non_null(text);
	memset(text, '\n', size);
	text[size] = '\0';
	autofd int big = make_file(text, O_RDONLY, NULL);
	free(text);
	fds[0] = big;
	assert_int_equal(run(fds, payload_read_line, NULL, NULL), 0);
	assert_int_equal(lseek(big, 0, SEEK_CUR), 1);
}

static int payload_both(void)
{
	for (int i = 0; i < 2000; i++)
		if (write(1 + i % 2, i % 2 ? "e" : "o", 1) != 1)
			return 1;
	return 0;
}

static void assert_alternating(int fd)
{
	char got[2001];

	assert_int_equal(pread(fd, got, sizeof(got), 0), 2000);
	for (int i = 0; i < 2000; i++)
		assert_int_equal(got[i], i % 2 ? 'e' : 'o');
}

static void test_order_of_stdout_and_stderr(void **state)
{
	(void)state;
	autofd int null = dev_null();
	autofd int both = make_file("", O_RDWR, NULL); /* > log 2>&1 */
	autofd int same = fcntl(both, F_DUPFD_CLOEXEC, 0);
	assert_int_equal(run((int[]){ null, both, same }, payload_both, NULL, NULL), 0);
	assert_alternating(both);

	char path[32];
	autofd int one = make_file("", O_RDWR | O_APPEND, path); /* >> log 2>> log */
	autofd int two = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(run((int[]){ null, one, two }, payload_both, NULL, NULL), 0);
	assert_alternating(one);
}

/* Bit 0: merged for one description; bit 1: for two that differ in flags. */
static int merged(void)
{
	struct stdio s;
	char path[32];
	int result = 0;
	autofd int null = dev_null();
	autofd int file = make_file("", O_RDWR, path);
	autofd int same = fcntl(file, F_DUPFD_CLOEXEC, 0);
	autofd int other = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
	(void)unlink(path);
	if (stdio_prepare(&s, (int[]){ null, file, same }, TTY_NO, NULL) < 0)
		return -1;
	result |= s.stream[2].with_stdout ? 1 : 0;
	if (stdio_close(&s, NULL) < 0 ||
		stdio_prepare(&s, (int[]){ null, file, other }, TTY_NO, NULL) < 0)
		return -1;
	result |= s.stream[2].with_stdout ? 2 : 0;
	return stdio_close(&s, NULL) < 0 ? -1 : result;
}

static void test_merge_without_kcmp(void **state)
{
	(void)state;
	assert_int_equal(merged(), 1);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

		if (!filter ||
			seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(kcmp), 0) <
				0 ||
			seccomp_load(filter) < 0)
			_exit(77);
		seccomp_release(filter);
		_exit(merged() == 1 ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int payload_shout(void)
{
	char block[4096];

	memset(block, 'x', sizeof(block));
	for (int i = 0; i < 1000; i++)
		if (fd_write_all(1, block, sizeof(block)) < 0)
			return 1;
	return 0;
}

/* The sink refuses more: the payload dies of SIGPIPE, and the reason is told. */
static void test_sink_error_is_told(void **state)
{
	struct rlimit before, limit;
	struct error e = { 0 };
	int closed = 0;

	(void)state;
	autofd int null = dev_null();
	autofd int out = make_file("", O_RDWR, NULL);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ .rlim_cur = 10000, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	int status = run((int[]){ null, out, null }, payload_shout, &e, &closed);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(status, 128 + SIGPIPE);
	assert_int_equal(closed, -EFBIG);
	assert_int_equal(e.errnum, EFBIG);
	assert_string_equal(e.on, "standard output");
	assert_int_equal(lseek(out, 0, SEEK_END), 10000);
}

/* `carrel run x >fifo`, and the fifo's reader ends: SIGPIPE inside as outside, and no fault. */
static void test_reader_gone_is_no_error(void **state)
{
	char dir[] = "/tmp/stdio-test-XXXXXX";
	char path[64];

	(void)state;
	autofd int null = dev_null();
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	autofd int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	autofd int writer = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(reader >= 0 && writer >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	fd_close(&reader);
	assert_int_equal(
		run((int[]){ null, writer, null }, payload_shout, NULL, NULL), 128 + SIGPIPE);
}

static int payload_reopen_stdout(void)
{
	if (setgid(65534) < 0 || setuid(65534) < 0)
		return 2;
	int fd = open("/proc/self/fd/1", O_WRONLY);
	if (fd < 0)
		return errno == EACCES ? 3 : 4;
	return write(fd, "hi", 2) == 2 ? 0 : 5;
}

/* Privileged mode: `echo >/dev/stdout` of a payload with another uid, as with runc. */
static void test_owner_of_pipes(void **state)
{
	(void)state;
	if (getuid() != 0) {
		print_message("skipped: only root can give a pipe away\n");
		skip();
	}
	autofd int null = dev_null();
	for (int give = 0; give < 2; give++) {
		struct stdio s;
		int fds[2], status;

		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		assert_int_equal(
			stdio_prepare(&s, (int[]){ null, fds[1], null }, TTY_NO, NULL), 0);
		if (give)
			stdio_set_owner(&s, 65534, 65534);
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			(void)dup2(s.child_fd[1], 1);
			_exit(payload_reopen_stdout());
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(WEXITSTATUS(status), give ? 0 : 3);
		assert_int_equal(stdio_close(&s, NULL), 0);
		fd_close(&fds[0]);
		fd_close(&fds[1]);
	}
	struct stat st;
	assert_int_equal(fstat(null, &st), 0);
	assert_int_equal(st.st_uid, 0); /* the host's device was left alone */
}

/* --- sanitize -------------------------------------------------------------------------------- */

/* In a child: closes what @mask names, sanitizes, and checks. 0 or a number that says what. */
static int sanitize_child(unsigned mask)
{
	unsigned closed = 99;
	struct stat st;

	for (int i = 0; i < STDIO_STREAMS; i++)
		if (mask & (1U << i))
			(void)close(i);
	if (stdio_sanitize(&closed) != 0 || closed != mask)
		return 1;
	for (int i = 0; i < STDIO_STREAMS; i++) {
		if (fstat(i, &st) < 0)
			return 2;
		if (!(mask & (1U << i)))
			continue;
		int flags = fcntl(i, F_GETFL);
		if (!S_ISCHR(st.st_mode) ||
			(flags & O_ACCMODE) != (i == 0 ? O_RDONLY : O_WRONLY))
			return 3;
		if (fcntl(i, F_GETFD) & FD_CLOEXEC)
			return 4; /* init leaves it where it is */
	}
	int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return next > 2 ? 0 : 5;
}

static void test_sanitize(void **state)
{
	(void)state;
	for (unsigned mask = 0; mask < 8; mask++) {
		int status;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			_exit(sanitize_child(mask));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

/* An O_PATH descriptor on 0 is not closed, although poll(2) says so: it is to be refused later. */
static void test_sanitize_o_path(void **state)
{
	int status;

	(void)state;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		unsigned closed = 99;
		int fd = open("/tmp", O_PATH);

		(void)dup2(fd, 0);
		if (stdio_sanitize(&closed) != 0 || closed != 0)
			_exit(1);
		_exit(fcntl(0, F_GETFL) & O_PATH ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --- budgets ---------------------------------------------------------------------------------- */

static int payload_talk(void)
{
	static const char out[] = "0123456789 what is between 9876543210";
	static const char err[] = "little";

	return write(1, out, sizeof(out) - 1) == sizeof(out) - 1 &&
			write(2, err, sizeof(err) - 1) == sizeof(err) - 1
		? 0
		: 1;
}

static void test_budgets(void **state)
{
	static const char cut[] =
		"0123456789\n... [17 chars omitted \xe2\x80\x94 full output not saved]\n9876543210";
	const struct stdio_output bounded = { .budget = BUDGET_NONE, .max_bytes = 12 };
	bool over = true;
	autofd int null = dev_null();
	autofd int out = make_file("", O_RDWR, NULL);
	autofd int err = make_file("", O_RDWR, NULL);
	autofd int less = make_file("", O_RDWR, NULL);

	(void)state;
	assert_int_equal(
		run_with((int[]){ null, out, err }, &twenty, payload_talk, NULL, NULL, &over),
		0);
	assert_content(out, cut);
	assert_content(err, "little");
	assert_false(over);
	assert_int_equal(run_with((int[]){ null, less, null }, &bounded, payload_talk, NULL,
				 NULL, &over),
		0);
	assert_content(less, "0123456789 w");
	assert_true(over);
}

/* Everything is held back when the reader goes, and the writer still learns it. */
static int payload_flood(void)
{
	static char block[65536];

	for (;;)
		if (write(1, block, sizeof(block)) < 0)
			return 1;
}

static void test_budget_reader_gone(void **state)
{
	int ends[2];
	autofd int null = dev_null();

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	fd_close(&ends[0]);
	assert_int_equal(run_with((int[]){ null, ends[1], null },
				 &(struct stdio_output){ .budget = 0, .max_bytes = UINT64_MAX },
				 payload_flood, NULL, NULL, NULL),
		128 + SIGPIPE);
	fd_close(&ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pipes),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_block_device),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_unix_sockets),
		cmocka_unit_test(test_unix_datagram),
		cmocka_unit_test(test_tty_modes),
		cmocka_unit_test(test_two_terminals),
		cmocka_unit_test(test_reopen_stdin),
		cmocka_unit_test(test_append_stays),
		cmocka_unit_test(test_file_to_file),
		cmocka_unit_test(test_unread_input_is_given_back),
		cmocka_unit_test(test_order_of_stdout_and_stderr),
		cmocka_unit_test(test_merge_without_kcmp),
		cmocka_unit_test(test_sink_error_is_told),
		cmocka_unit_test(test_reader_gone_is_no_error),
		cmocka_unit_test(test_owner_of_pipes),
		cmocka_unit_test(test_budget_at_a_terminal),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_budgets),
		cmocka_unit_test(test_budget_reader_gone),
		cmocka_unit_test(test_sanitize),
		cmocka_unit_test(test_sanitize_o_path),
	};
	sigset_t blocked;

	/* As in the supervisor, but for alarm(2), which ends a test that hangs. */
	if (sigfillset(&blocked) < 0 || sigdelset(&blocked, SIGALRM) < 0 ||
		sigprocmask(SIG_BLOCK, &blocked, NULL) < 0)
		return 1;
	(void)alarm(300);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

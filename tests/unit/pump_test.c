/*
 * pump_test.c - pumps between pipes, files, sockets and devices, driven by a small epoll loop as
 * the supervisor's is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/stdio/pump.h"

#define TEST_ID 7
#define BIG_BYTES (100ULL * 1024 * 1024)

static int64_t now_ms(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct pump_end end(int fd, enum pump_kind kind, bool owned)
{
	return (struct pump_end){ .fd = fd, .kind = kind, .owned = owned };
}

/* A pipe of which one side (0 reading, 1 writing) is "ours". */
static void make_pipe(int ret[2], int ours)
{
	assert_int_equal(pipe2(ret, O_CLOEXEC), 0);
	assert_int_equal(fcntl(ret[ours], F_SETFL, O_NONBLOCK), 0);
}

static int make_file(int flags)
{
	char path[] = "/tmp/pump-test-XXXXXX";
	int made = mkostemp(path, O_CLOEXEC);

	assert_true(made >= 0);
	int fd = open(path, O_RDWR | O_CLOEXEC | flags);
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(close(made), 0);
	return fd;
}

/* Runs the loop until the pump is over or nothing happens for @quiet_ms. Number of wake-ups. */
static unsigned run_loop(struct pump *p, int epoll_fd, int quiet_ms)
{
	unsigned wakeups = 0;
	struct epoll_event event;

	while (!p->done && epoll_wait(epoll_fd, &event, 1, quiet_ms) == 1) {
		assert_int_equal(event.data.u64, TEST_ID);
		(void)pump_step(p);
		wakeups++;
	}
	return wakeups;
}

/* Until the sink is full: something is held and nothing moves. */
static void run_until_stuck(struct pump *p, int epoll_fd)
{
	while (!p->done && (run_loop(p, epoll_fd, 50) > 0 || pump_held(p) == 0))
		;
}

static int start(struct pump *p, struct pump_end source, struct pump_end sink)
{
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	assert_true(epoll_fd >= 0);
	pump_init(p, source, sink);
	assert_int_equal(pump_register(p, epoll_fd, TEST_ID), 0);
	return epoll_fd;
}

/* The byte at @offset of the test stream; no period that divides a page or a buffer. */
static unsigned char pattern(uint64_t offset)
{
	return (unsigned char)(offset * 31 + offset / 251);
}

/* A child that keeps another end open would keep the pipe alive. */
static pid_t fork_with_only(int fd)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (fd > 3)
			(void)close_range(3, (unsigned)fd - 1, 0);
		(void)close_range((unsigned)fd + 1, ~0U, 0);
	}
	return pid;
}

/* Child: writes @size pattern bytes to @fd and ends; 0 = all written. */
static pid_t spawn_writer(int fd, uint64_t size)
{
	pid_t pid = fork_with_only(fd);

	if (pid != 0)
		return pid;
	unsigned char block[50021];
	for (uint64_t at = 0; at < size;) {
		size_t n = size - at < sizeof(block) ? (size_t)(size - at) : sizeof(block);

		for (size_t i = 0; i < n; i++)
			block[i] = pattern(at + i);
		if (fd_write_all(fd, block, n) < 0)
			_exit(1);
		at += n;
	}
	_exit(0);
}

/* Child: reads pattern bytes from @fd to the end; 0 = exactly @size came, in order. */
static pid_t spawn_reader(int fd, uint64_t size)
{
	pid_t pid = fork_with_only(fd);

	if (pid != 0)
		return pid;
	unsigned char block[30011];
	uint64_t at = 0;
	ssize_t n;

	while ((n = read(fd, block, sizeof(block))) > 0)
		for (ssize_t i = 0; i < n; i++, at++)
			if (block[i] != pattern(at))
				_exit(2);
	_exit(n == 0 && at == size ? 0 : 3);
}

static int wait_status(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool file_has_pattern(int fd, uint64_t size)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	if ((uint64_t)st.st_size != size)
		return false;
	unsigned char *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	bool same = true;
	for (uint64_t i = 0; i < size && same; i++)
		same = map[i] == pattern(i);
	assert_int_equal(munmap(map, size), 0);
	return same;
}

static void big_pipe_to_file(int flags)
{
	struct pump p;
	int fds[2];

	make_pipe(fds, 0);
	autofd int file = make_file(flags);
	pid_t writer = spawn_writer(fds[1], BIG_BYTES);
	fd_close(&fds[1]);
	autofd int epoll_fd =
		start(&p, end(fds[0], PUMP_OURS, true), end(file, PUMP_FILE, false));
	(void)run_loop(&p, epoll_fd, 60000);
	assert_true(p.done);
	assert_int_equal(p.error, 0);
	assert_int_equal(p.moved, BIG_BYTES);
	assert_int_equal(wait_status(writer), 0);
	assert_true(file_has_pattern(file, BIG_BYTES));
}

static void test_big_to_file(void **state)
{
	(void)state;
	big_pipe_to_file(0);
}

static void test_big_to_append(void **state)
{
	(void)state;
	big_pipe_to_file(O_APPEND);
}

static void test_big_from_file(void **state)
{
	struct pump p;
	int fds[2];

	(void)state;
	autofd int file = make_file(0);
	assert_int_equal(wait_status(spawn_writer(file, BIG_BYTES)), 0);
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	make_pipe(fds, 1);
	pid_t reader = spawn_reader(fds[0], BIG_BYTES);
	fd_close(&fds[0]);
	autofd int epoll_fd =
		start(&p, end(file, PUMP_FILE, false), end(fds[1], PUMP_OURS, true));
	(void)run_loop(&p, epoll_fd, 60000);
	assert_true(p.done);
	assert_int_equal(p.error, 0);
	assert_int_equal(wait_status(reader), 0);
}

/* Between the caller's own pipes; their descriptions must come back as they were. */
static void test_big_shared(void **state)
{
	struct pump p;
	int in[2], out[2];

	(void)state;
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid_t writer = spawn_writer(in[1], BIG_BYTES / 4);
	pid_t reader = spawn_reader(out[0], BIG_BYTES / 4);
	fd_close(&in[1]);
	fd_close(&out[0]);
	autofd int epoll_fd =
		start(&p, end(in[0], PUMP_SHARED, false), end(out[1], PUMP_SHARED, false));
	(void)run_loop(&p, epoll_fd, 60000);
	assert_true(p.done);
	assert_int_equal(p.error, 0);
	assert_int_equal(fcntl(in[0], F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(fcntl(out[1], F_GETFL) & O_NONBLOCK, 0);
	fd_close(&out[1]);
	fd_close(&in[0]);
	assert_int_equal(wait_status(writer), 0);
	assert_int_equal(wait_status(reader), 0);
}

static void test_big_sockets(void **state)
{
	struct pump p;
	int in[2], out[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out), 0);
	pid_t writer = spawn_writer(in[1], BIG_BYTES / 4);
	pid_t reader = spawn_reader(out[0], BIG_BYTES / 4);
	fd_close(&in[1]);
	fd_close(&out[0]);
	autofd int epoll_fd =
		start(&p, end(in[0], PUMP_SOCKET, true), end(out[1], PUMP_SOCKET, true));
	(void)run_loop(&p, epoll_fd, 60000);
	assert_true(p.done);
	assert_int_equal(p.error, 0);
	assert_int_equal(wait_status(writer), 0);
	assert_int_equal(wait_status(reader), 0);
}

/* The reader of the sink goes away while the source is silent: its writer learns it at once. */
static void test_sink_closes_idle(void **state)
{
	struct pump p;
	int in[2], out[2];

	(void)state;
	make_pipe(in, 0);
	make_pipe(out, 1);
	autofd int epoll_fd =
		start(&p, end(in[0], PUMP_OURS, true), end(out[1], PUMP_OURS, true));
	(void)run_loop(&p, epoll_fd, 20);
	assert_false(p.done);
	assert_int_equal(write(in[1], "x", 1), 1); /* control arm: there still is a reader */
	(void)run_loop(&p, epoll_fd, 20);
	fd_close(&out[0]);
	(void)run_loop(&p, epoll_fd, 20);
	assert_true(p.done);
	assert_int_equal(p.error, EPIPE);
	assert_int_equal(write(in[1], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	fd_close(&in[1]);
}

static void test_sink_closes_full(void **state)
{
	struct pump p;
	int in[2], out[2];

	(void)state;
	make_pipe(in, 0);
	make_pipe(out, 1);
	pid_t writer = spawn_writer(in[1], BIG_BYTES);
	fd_close(&in[1]);
	autofd int epoll_fd =
		start(&p, end(in[0], PUMP_OURS, true), end(out[1], PUMP_OURS, true));
	run_until_stuck(&p, epoll_fd);
	assert_false(p.done); /* full: it waits, and holds no more than its buffer */
	assert_true(pump_held(&p) > 0 && pump_held(&p) <= PUMP_BUFFER_BYTES);
	fd_close(&out[0]);
	(void)run_loop(&p, epoll_fd, 60000);
	assert_true(p.done);
	assert_int_equal(p.error, EPIPE);
	assert_int_equal(wait_status(writer), 1);
}

/* A full sink costs no wake-ups; when it empties, the pump goes on where it stopped. */
static void test_full_then_read(void **state)
{
	struct pump p;
	int in[2], out[2];
	const uint64_t size = 1024 * 1024;

	(void)state;
	make_pipe(in, 0);
	make_pipe(out, 1);
	pid_t writer = spawn_writer(in[1], size);
	fd_close(&in[1]);
	autofd int epoll_fd =
		start(&p, end(in[0], PUMP_OURS, true), end(out[1], PUMP_OURS, true));
	run_until_stuck(&p, epoll_fd);
	pid_t reader = spawn_reader(out[0], size);
	fd_close(&out[0]);
	(void)run_loop(&p, epoll_fd, 60000);
	assert_true(p.done);
	assert_int_equal(wait_status(writer), 0);
	assert_int_equal(wait_status(reader), 0);
}

static void test_source_closes(void **state)
{
	struct pump p;
	int in[2], out[2];
	char got[8];

	(void)state;
	make_pipe(in, 0);
	make_pipe(out, 1);
	assert_int_equal(write(in[1], "abc", 3), 3);
	fd_close(&in[1]);
	autofd int epoll_fd =
		start(&p, end(in[0], PUMP_OURS, true), end(out[1], PUMP_OURS, true));
	(void)run_loop(&p, epoll_fd, 20);
	assert_true(p.done);
	assert_int_equal(p.error, 0);
	assert_int_equal(read(out[0], got, sizeof(got)), 3);
	assert_int_equal(read(out[0], got, sizeof(got)), 0);
	fd_close(&out[0]);
}

static void test_dev_full(void **state)
{
	struct pump p;
	int in[2];

	(void)state;
	make_pipe(in, 0);
	autofd int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_true(full >= 0);
	autofd int epoll_fd =
		start(&p, end(in[0], PUMP_OURS, true), end(full, PUMP_SHARED, false));
	assert_int_equal(write(in[1], "x", 1), 1);
	(void)run_loop(&p, epoll_fd, 100);
	assert_true(p.done);
	assert_int_equal(p.error, ENOSPC);
	assert_int_equal(write(in[1], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	fd_close(&in[1]);
}

/* Past the limit on a file's size: the bytes up to it arrive, the first errno stays. */
static void test_file_limit(void **state)
{
	struct pump p;
	int in[2];
	struct rlimit before, limit;
	struct stat st;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ .rlim_cur = 10000, .rlim_max = before.rlim_max };
	make_pipe(in, 0);
	autofd int file = make_file(0);
	pid_t writer = spawn_writer(in[1], 1024 * 1024);
	fd_close(&in[1]);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	autofd int epoll_fd =
		start(&p, end(in[0], PUMP_OURS, true), end(file, PUMP_FILE, false));
	(void)run_loop(&p, epoll_fd, 60000);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(p.done);
	assert_int_equal(p.error, EFBIG);
	assert_int_equal(pump_step(&p), PUMP_DONE);
	assert_int_equal(p.error, EFBIG);
	assert_int_equal(fstat(file, &st), 0);
	assert_int_equal(st.st_size, 10000);
	assert_int_equal(wait_status(writer), 1);
}

static void test_datagrams(void **state)
{
	struct pump p;
	int in[2], out[2];
	char got[16];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, in), 0);
	make_pipe(out, 1);
	autofd int epoll_fd =
		start(&p, end(in[0], PUMP_DATAGRAM, true), end(out[1], PUMP_OURS, true));
	assert_int_equal(send(in[1], "one", 3, 0), 3);
	assert_int_equal(send(in[1], "", 0, 0), 0);
	assert_int_equal(send(in[1], "two", 3, 0), 3);
	(void)run_loop(&p, epoll_fd, 20);
	assert_false(p.done);
	assert_int_equal(read(out[0], got, sizeof(got)), 6);
	assert_memory_equal(got, "onetwo", 6);
	pump_stop(&p);
	fd_close(&in[1]);
	fd_close(&out[0]);
}

/* Writers are dead, the sink is slow: everything arrives; and no longer than asked for. */
static void test_drain(void **state)
{
	struct pump p;
	int in[2], out[2];
	const uint64_t size = 60000;

	(void)state;
	make_pipe(in, 0);
	make_pipe(out, 1);
	assert_true(fcntl(out[1], F_SETPIPE_SZ, 4096) >= 4096);
	assert_int_equal(wait_status(spawn_writer(in[1], size)), 0);
	autofd int epoll_fd =
		start(&p, end(in[0], PUMP_OURS, true), end(out[1], PUMP_OURS, true));
	int64_t before = now_ms();
	assert_int_equal(pump_drain(&p, before + 50, -1), -ETIMEDOUT);
	assert_true(now_ms() - before >= 50);
	assert_true(now_ms() - before < 60000);
	assert_false(p.done);

	int wake[2];
	make_pipe(wake, 0);
	assert_int_equal(write(wake[1], "x", 1), 1);
	assert_int_equal(pump_drain(&p, now_ms() + 60000, wake[0]), -EINTR);
	fd_close(&wake[0]);
	fd_close(&wake[1]);

	pid_t reader = spawn_reader(out[0], size);
	fd_close(&out[0]);
	/* in[1] is still open here: a drain does not wait for an end of file. */
	assert_int_equal(pump_drain(&p, now_ms() + 60000, -1), 0);
	assert_true(p.done);
	assert_int_equal(p.moved, size);
	assert_int_equal(wait_status(reader), 0);
	fd_close(&in[1]);
}

/* Work beyond one step's share is announced by the loop itself, and does not starve others. */
static void test_step_is_bounded(void **state)
{
	struct pump p;

	(void)state;
	autofd int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	autofd int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	assert_true(zero >= 0 && null >= 0);
	pump_init(&p, end(zero, PUMP_SHARED, false), end(null, PUMP_SHARED, false));
	assert_int_equal(pump_step(&p), PUMP_MOVING);
	assert_true(p.moved > 0 && p.moved <= 4 * 1024 * 1024);
	pump_stop(&p);
	pump_stop(&p);

	/* One step's share and the end of file behind it, with nobody left to raise an edge. */
	int fds[2];
	make_pipe(fds, 0);
	autofd int file = make_file(0);
	assert_int_equal(fcntl(fds[1], F_SETPIPE_SZ, 1024 * 1024), 1024 * 1024);
	char *text = calloc(16, PUMP_BUFFER_BYTES);
	assert_non_null(text);
	assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(write(fds[1], text, 1024 * 1024), 1024 * 1024);
	free(text);
	fd_close(&fds[1]);
	autofd int epoll_fd =
		start(&p, end(fds[0], PUMP_OURS, true), end(file, PUMP_FILE, false));
	assert_true(run_loop(&p, epoll_fd, 60000) > 1);
	assert_true(p.done);
	assert_int_equal(p.moved, 1024 * 1024);
}

/* Ends that others hold too, and whose reads and writes would wait: a step does not. */
static void test_never_waits(void **state)
{
	struct pump p;
	int in[2], out[2];
	char block[65536] = { 0 };

	(void)state;
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pump_init(&p, end(in[0], PUMP_SHARED, false), end(out[1], PUMP_SHARED, false));
	assert_int_equal(pump_step(&p), PUMP_IDLE);
	assert_int_equal(fd_write_all(out[1], block, sizeof(block)), 0); /* full */
	assert_int_equal(write(in[1], "x", 1), 1);
	assert_int_equal(pump_step(&p), PUMP_IDLE);
	assert_int_equal(pump_held(&p), 1);
	pump_stop(&p);
	assert_int_equal(read(out[0], block, sizeof(block)), sizeof(block));

	/* inotify(7) has poll(2), but not RWF_NOWAIT. */
	autofd int quiet = inotify_init1(IN_CLOEXEC);
	assert_true(quiet >= 0);
	pump_init(&p, end(quiet, PUMP_SHARED, false), end(out[1], PUMP_SHARED, false));
	assert_int_equal(pump_step(&p), PUMP_IDLE);
	pump_stop(&p);
	for (int i = 0; i < 2; i++) {
		fd_close(&in[i]);
		fd_close(&out[i]);
	}
}

/* In a container whose filter refuses preadv2 and pwritev2. */
static void test_shared_under_a_filter(void **state)
{
	int status;

	(void)state;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
		const uint32_t eperm = SCMP_ACT_ERRNO(EPERM);
		struct pump p;
		int in[2], out[2];
		char got[8];

		if (!filter || seccomp_rule_add(filter, eperm, SCMP_SYS(preadv2), 0) < 0 ||
			seccomp_rule_add(filter, eperm, SCMP_SYS(pwritev2), 0) < 0 ||
			seccomp_load(filter) < 0 || pipe(in) < 0 || pipe(out) < 0)
			_exit(77);
		(void)alarm(300);
		pump_init(&p, end(in[0], PUMP_SHARED, false), end(out[1], PUMP_SHARED, false));
		if (pump_step(&p) != PUMP_IDLE || write(in[1], "x", 1) != 1)
			_exit(1);
		if (pump_step(&p) != PUMP_IDLE || read(out[0], got, sizeof(got)) != 1)
			_exit(2);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --- filters ---------------------------------------------------------------------------------- */

/*
 * Passes everything, but takes it in a way of its own: some bytes are left for the next time, and some of
 * those passed on already. At the end a word of its own.
 */
struct lazy {
	size_t early, left; /* bytes that were passed on before they were taken; rounds */
	uint64_t taken;
	bool hold;        /* passes nothing */
	unsigned rests;   /* calls of rest */
	const char *word; /* for the end */
};

static size_t lazy_take(
	void *context, const char *data, size_t size, bool last, struct pump_range *ret_pass)
{
	struct lazy *l = context;
	size_t keep = last ? 0 : ++l->left % 4;

	(void)data;
	keep = keep < size ? keep : size;
	l->taken += size - keep;
	if (l->hold)
		return size - keep;
	ret_pass->start = l->early;
	/* every other time what is left is passed on all the same */
	ret_pass->end = l->left % 8 < 4 || l->early > size - keep ? size : size - keep;
	l->early = ret_pass->end - (size - keep);
	return size - keep;
}

static size_t lazy_rest(void *context, char *ret_data, size_t size)
{
	struct lazy *l = context;
	size_t length = l->rests++ == 0 ? strlen(l->word) : 0;

	assert_true(size >= PUMP_BUFFER_BYTES);
	memcpy(ret_data, l->word, length);
	return length;
}

static struct pump_filter filter_of(struct lazy *l)
{
	return (struct pump_filter){ .take = lazy_take, .rest = lazy_rest, .context = l };
}

/* Every byte once and in order, through a buffer that grows on the way. */
static void test_filter(void **state)
{
	struct lazy lazy = { .word = "" };
	struct pump p;
	int in[2], out[2];

	(void)state;
	make_pipe(in, 0);
	make_pipe(out, 1);
	pid_t writer = spawn_writer(in[1], BIG_BYTES);
	pid_t reader = spawn_reader(out[0], BIG_BYTES);
	fd_close(&in[1]);
	fd_close(&out[0]);
	pump_init(&p, end(in[0], PUMP_OURS, true), end(out[1], PUMP_OURS, true));
	pump_set_filter(&p, filter_of(&lazy));
	autofd int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(pump_register(&p, epoll_fd, TEST_ID), 0);
	(void)run_loop(&p, epoll_fd, 60000);
	assert_true(p.done);
	assert_int_equal(p.error, 0);
	assert_int_equal(lazy.taken, BIG_BYTES);
	assert_int_equal(p.moved, BIG_BYTES);
	assert_int_equal(lazy.rests, 1);
	assert_int_equal(wait_status(writer), 0);
	assert_int_equal(wait_status(reader), 0);
}

/* The other end is still open, and perhaps nothing ever came: a drain ends the stream all the same. */
static void test_filter_drain(void **state)
{
	char got[16];

	(void)state;
	for (unsigned round = 0; round < 3; round++) {
		struct lazy lazy = { .word = "last", .hold = round == 1 };
		struct pump p;
		int in[2], out[2];

		make_pipe(in, 0);
		make_pipe(out, 1);
		pump_init(&p, end(in[0], PUMP_OURS, true), end(out[1], PUMP_OURS, true));
		pump_set_filter(&p, filter_of(&lazy));
		if (round < 2)
			assert_int_equal(write(in[1], "first", 5), 5);
		assert_int_equal(pump_drain(&p, now_ms() + 60000, -1), 0);
		assert_true(p.done);
		assert_int_equal(lazy.taken, round < 2 ? 5 : 0);
		const char *want = round == 0 ? "firstlast" : "last";
		assert_int_equal(read(out[0], got, sizeof(got)), strlen(want));
		assert_memory_equal(got, want, strlen(want));
		fd_close(&in[1]);
		fd_close(&out[0]);
	}
}

/* Nothing is written and the source never rests: the reader's end is noticed. */
static void test_filter_holds_and_sink_closes(void **state)
{
	struct lazy lazy = { .word = "", .hold = true };
	struct pump p;
	int in[2], out[2];

	(void)state;
	make_pipe(in, 0);
	make_pipe(out, 1);
	pid_t writer = spawn_writer(in[1], UINT64_MAX);
	fd_close(&in[1]);
	pump_init(&p, end(in[0], PUMP_OURS, true), end(out[1], PUMP_OURS, true));
	pump_set_filter(&p, filter_of(&lazy));
	autofd int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(pump_register(&p, epoll_fd, TEST_ID), 0);
	while (lazy.taken < 8 * 1024 * 1024)
		(void)pump_step(&p);
	assert_false(p.done);
	fd_close(&out[0]);
	(void)run_loop(&p, epoll_fd, 60000);
	assert_true(p.done);
	assert_int_equal(p.error, EPIPE);
	assert_int_equal(wait_status(writer), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_big_to_file),
		cmocka_unit_test(test_big_to_append),
		cmocka_unit_test(test_big_from_file),
		cmocka_unit_test(test_big_shared),
		cmocka_unit_test(test_big_sockets),
		cmocka_unit_test(test_sink_closes_idle),
		cmocka_unit_test(test_sink_closes_full),
		cmocka_unit_test(test_full_then_read),
		cmocka_unit_test(test_source_closes),
		cmocka_unit_test(test_dev_full),
		cmocka_unit_test(test_file_limit),
		cmocka_unit_test(test_datagrams),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_step_is_bounded),
		cmocka_unit_test(test_never_waits),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_filter_drain),
		cmocka_unit_test(test_filter_holds_and_sink_closes),
		cmocka_unit_test(test_shared_under_a_filter),
	};
	sigset_t blocked;

	/* As in the supervisor, but for alarm(2), which ends a test that hangs. */
	if (sigfillset(&blocked) < 0 || sigdelset(&blocked, SIGALRM) < 0 ||
		sigprocmask(SIG_BLOCK, &blocked, NULL) < 0)
		return 1;
	(void)alarm(300);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * confined_test.c - the child that looks at what tools made: what it can, what it cannot, and what becomes of one
 * that is late, dead, or answers nonsense.
 *
 * Runs in: a test program. What is tried in the child is tried outside as well, where it works.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/gitreview/gitreview_shared.h"
#include "host/process/confined.h"
#include "host/tree/remove.h"
#include "host/tree/plainfile.h"

struct place {
	char root[64];
	int inside, other; /* two directories: the child may read the first */
	int kept, result;
	char text[64];
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	char made[] = "/tmp/confined-XXXXXX";

	if (!p || !mkdtemp(made))
		return -1;
	(void)snprintf(p->root, sizeof(p->root), "%s", made);
	if (chdir(p->root) < 0 || mkdir("in", 0700) < 0 || mkdir("out", 0700) < 0)
		return -1;
	for (int i = 0; i < 2; i++) {
		autofd int fd =
			open(i ? "in/file" : "out/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		if (fd < 0 || fd_write_all(fd, "text", 4) < 0)
			return -1;
	}
	p->inside = open("in", O_PATH | O_DIRECTORY | O_CLOEXEC);
	p->other = open("out", O_PATH | O_DIRECTORY | O_CLOEXEC);
	*state = p;
	return p->inside < 0 || p->other < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	struct remove_result gone;
	struct error e = { 0 };

	(void)close(p->inside);
	(void)close(p->other);
	autofd int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = remove_tree(tmp, strrchr(p->root, '/') + 1, &gone, &e);
	free(p);
	return r;
}

static int run(struct place *p, int (*work)(void *, struct answer *), int64_t ms, char *answer,
	size_t size, size_t *ret_used)
{
	const int keep[] = { p->inside, p->other };
	const struct confined what = { .work = work,
		.context = p,
		.keep = keep,
		.keep_count = 2,
		.deadline_ns = clock_now_ns() + ms * 1000000 };

	return confined_run(&what, answer, size, ret_used);
}

/* --- what it can ------------------------------------------------------------------------------- */

static int read_inside(void *context, struct answer *answer)
{
	struct place *p = context;
	char text[16];
	int r = confined_only_below(&p->inside, 1);
	autofd int fd = r < 0 ? r : plainfile_open(p->inside, "file", 0, false);
	ssize_t n = fd < 0 ? fd : fd_read_file(fd, text, sizeof(text) - 1);

	p->result = 1; /* in a copy: nobody hears of it */
	return n < 0 ? (int)n : answer_put(answer, text, (size_t)n);
}

static void it_reads_and_answers(void **state)
{
	struct place *p = *state;
	char answer[8];
	size_t used = 1;

	assert_int_equal(run(p, read_inside, 60000, answer, sizeof(answer), &used), 0);
	assert_int_equal(used, 4);
	assert_memory_equal(answer, "text", 4);
	assert_int_equal(p->result, 0);
	assert_int_equal(run(p, read_inside, 60000, answer, 3, &used), -E2BIG);
	assert_int_equal(used, 0);
}

/* --- what it cannot ---------------------------------------------------------------------------- */

static int try_write(struct place *p)
{
	int fd = openat(p->inside, "file", O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : close(fd);
}

static int try_create(struct place *p)
{
	int fd = openat(p->inside, "new", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : close(fd);
}

static int try_chmod(struct place *p)
{
	return fchmodat(p->inside, "file", 0644, 0) < 0 ? -errno : 0;
}

static int try_rename(struct place *p)
{
	return renameat(p->inside, "file", p->inside, "file") < 0 ? -errno : 0;
}

static int try_socket(struct place *p)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)p;
	return fd < 0 ? -errno : close(fd);
}

static int try_fork(struct place *p)
{
	long pid = syscall(SYS_clone, (unsigned long)SIGCHLD, NULL, NULL, NULL, NULL);

	(void)p;
	if (pid == 0)
		_exit(0);
	return pid < 0 ? -errno : waitpid((pid_t)pid, NULL, 0) == pid ? 0 : -errno;
}

static int try_memory(struct place *p)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)p;
	return at == MAP_FAILED ? -errno : munmap(at, 4096);
}

static int try_kill(struct place *p)
{
	(void)p;
	return kill(getpid(), 0) < 0 ? -errno : 0;
}

static int try_pipe_of_parent(struct place *p)
{
	return write(p->kept, "x", 1) < 0 ? -errno : 0;
}

static int try_standard_error(struct place *p)
{
	struct stat st;

	(void)p;
	return fstat(STDERR_FILENO, &st) < 0 ? -errno : 0;
}

static int (*const attempts[])(struct place *p) = { try_write, try_create, try_chmod,
	try_rename, try_socket, try_fork, try_memory, try_kill, try_pipe_of_parent,
	try_standard_error };

#define ATTEMPTS (sizeof(attempts) / sizeof(*attempts))

static int try_all(void *context, struct answer *answer)
{
	struct place *p = context;

	for (size_t i = 0; i < ATTEMPTS; i++) {
		int r = attempts[i](p);

		if (answer_put(answer, &r, sizeof(r)) < 0)
			return -E2BIG;
	}
	return 0;
}

static void it_does_nothing_else(void **state)
{
	struct place *p = *state;
	int results[ATTEMPTS], pipes[2];
	size_t used = 0;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	p->kept = pipes[1];
	assert_int_equal(run(p, try_all, 60000, (char *)results, sizeof(results), &used), 0);
	assert_int_equal(used, sizeof(results));
	for (size_t i = 0; i < ATTEMPTS; i++) {
		if (results[i] >= 0)
			fail_msg("attempt %zu works in the child", i);
		/* The control arm. */
		if (attempts[i](p) < 0)
			fail_msg("attempt %zu fails outside, too", i);
	}
	(void)close(pipes[0]);
	(void)close(pipes[1]);
}

static int read_other(void *context, struct answer *answer)
{
	struct place *p = context;
	int r = p->result ? confined_only_below(&p->inside, 1) : 0;

	if (r < 0)
		return r;
	autofd int fd = plainfile_open(p->other, "file", 0, false);

	return fd < 0 ? fd : answer_put(answer, "y", 1);
}

static void it_reads_where_it_is_to(void **state)
{
	struct place *p = *state;
	char answer[1];
	size_t used = 0;

	/* The control arm: before it says where. */
	assert_int_equal(run(p, read_other, 60000, answer, 1, &used), 0);
	p->result = 1;
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) <
		1) {
		print_message("skip: no Landlock in this kernel\n");
		skip();
	}
	assert_int_equal(run(p, read_other, 60000, answer, 1, &used), -EACCES);
}

/* As root: what its owner locked is open to root's capabilities, and the child has none. */
static int read_locked(void *context, struct answer *answer)
{
	struct place *p = context;
	autofd int fd = plainfile_open(p->inside, "file", 0, false);

	return fd < 0 ? fd : answer_put(answer, "y", 1);
}

static void it_has_no_capability(void **state)
{
	struct place *p = *state;
	char answer[1];
	size_t used = 0;

	assert_int_equal(fchmodat(p->inside, "file", 0, 0), 0);
	assert_int_equal(run(p, read_locked, 60000, answer, 1, &used), -EACCES);
	assert_int_equal(fchmodat(p->inside, "file", 0600, 0), 0);
	assert_int_equal(run(p, read_locked, 60000, answer, 1, &used), 0);
}

/* was_opened - since the last time. */
static bool was_opened(int watch)
{
	char events[4096];

	return read(watch, events, sizeof(events)) > 0;
}

static void no_device_is_opened(void **state)
{
	struct place *p = *state;
	autofd int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	assert_int_equal(mkfifoat(p->inside, "fifo", 0600), 0);
	assert_int_equal(symlinkat("fifo", p->inside, "link"), 0);
	assert_true(watch >= 0 && inotify_add_watch(watch, "in", IN_OPEN) >= 0);
	assert_int_equal(plainfile_open(p->inside, "fifo", 0, false), -EINVAL);
	assert_int_equal(plainfile_open(p->inside, "link", 0, true), -EINVAL);
	assert_int_equal(plainfile_open(p->inside, "link", 0, false), -ELOOP);
	/* As root: a device. */
	if (mknodat(p->inside, "null", S_IFCHR | 0600, 1 << 8 | 3) == 0)
		assert_int_equal(plainfile_open(p->inside, "null", 0, false), -EINVAL);
	assert_false(was_opened(watch));
	/* The control arms: what opening looks like, and a file. */
	autofd int fifo = openat(p->inside, "fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	assert_true(fifo >= 0 && was_opened(watch));
	autofd int fd = plainfile_open(p->inside, "file", 0, false);

	assert_true(fd >= 0 && was_opened(watch));
}

/* --- late, dead, malformed --------------------------------------------------------------------- */

static int hang(void *context, struct answer *answer)
{
	(void)context;
	while (answer_put(answer, "", 0) == 0)
		(void)clock_now_ns();
	return 0;
}

static int crash(void *context, struct answer *answer)
{
	(void)context;
	if (answer_put(answer, "Q", 1) == 0)
		__builtin_trap();
	return 0;
}

/* Not sanitized for the same reason as enter() of confined.c. */
__attribute__((no_sanitize("address"))) static int leave(void *context, struct answer *answer)
{
	(void)context;
	_exit(answer_put(
		answer, "Q", 1)); /* as one that has done its work; it has not said so */
}

static int lie(void *context, struct answer *answer)
{
	(void)context;
	answer->used = answer->size + 1;
	return 0;
}

static int promise(void *context, struct answer *answer)
{
	(void)context;
	(void)answer;
	return 7;
}

static void what_it_has_not_finished_is_no_answer(void **state)
{
	static const struct {
		int (*work)(void *, struct answer *);
		int64_t ms;
		int result;
	} cases[] = { { hang, 300, -ETIMEDOUT }, { hang, -1, -ETIMEDOUT },
		{ crash, 60000, -ECHILD }, { leave, 60000, -EPROTO }, { lie, 60000, -EPROTO },
		{ promise, 60000, -EPROTO } };
	struct place *p = *state;
	char answer[8];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t used = 1;
		int64_t before = clock_now_ns();

		assert_int_equal(
			run(p, cases[i].work, cases[i].ms, answer, sizeof(answer), &used),
			cases[i].result);
		assert_int_equal(used, 0);
		assert_true(clock_now_ns() - before < 30000000000);
	}
}

/* A record as it has to be, and each thing that it must not be. */
static void answers_are_checked(void **state)
{
	static const char good[] = "Qaa/b\0why\0Lb\0\0Qa...\0\0";
	static const struct {
		const char *bytes;
		size_t size;
	} bad[] = {
#define BAD(text) { text, sizeof(text) - 1 }
		BAD("Q"),
		BAD("Qa"),
		BAD("Qax"),
		BAD("Qax\0why"),
		BAD("Xax\0why\0"),
		BAD("Qcx\0why\0"),
		BAD("Q`x\0why\0"),
		BAD("Qa\0why\0"),
		BAD("Qa/x\0why\0"),
		BAD("Qa/etc/passwd\0why\0"),
		BAD("Qa..\0why\0"),
		BAD("Qa../x\0why\0"),
		BAD("Qax/..\0why\0"),
		BAD("Qax/../y\0why\0"),
		BAD("Qax/./y\0why\0"),
		BAD("Qa.\0why\0"),
		BAD("Qax//y\0why\0"),
		BAD("Qax/\0why\0"),
		BAD("Qax\0a\nb\0"),
		BAD("Qax\0\x1b[m\0"),
		BAD("Qax\0why\0Q"),
		BAD("Qax\0why\0\0"),
#undef BAD
	};
	const char *const roots[] = { "/w", "/other/git" };
	struct arena a;

	(void)state;
	assert_int_equal(arena_init(&a, 64u << 20), 0);
	struct verdicts v = { .arena = &a };

	assert_int_equal(verdict_take(&v, roots, 2, good, sizeof(good) - 1), 0);
	assert_int_equal(v.count, 3);
	assert_string_equal(v.rules[0].path, "/w/a/b");
	assert_string_equal(v.rules[0].why, "why");
	assert_int_equal(v.rules[0].kind, GITDIR_QUARANTINE);
	assert_string_equal(v.rules[1].path, "/other/git");
	assert_int_equal(v.rules[1].kind, GITDIR_LOCKED);
	assert_string_equal(v.rules[2].path, "/w/...");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		v.count = 0;
		if (verdict_take(&v, roots, 2, bad[i].bytes, bad[i].size) != -EPROTO || v.count)
			fail_msg("taken: number %zu", i);
	}
	size_t longest = PATH_MAX + 8;
	char *text = arena_alloc(&a, longest + 8);

	memset(text, 'x', longest);
	memcpy(text, "Qa", 2);
	assert_int_equal(verdict_take(&v, roots, 2, text, longest + 2), -EPROTO);
	/* More than anybody would move. */
	char *many = arena_alloc(&a, 9000 * 5);

	for (size_t i = 0; i < 9000; i++)
		memcpy(many + i * 5, "Qax\0\0", 5);
	v.count = 0;
	assert_int_equal(verdict_take(&v, roots, 2, many, 9000 * 5), -E2BIG);
	assert_int_equal(v.count, 8192);
	arena_free(&a);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_reads_and_answers),
		TEST(it_does_nothing_else),
		TEST(it_reads_where_it_is_to),
		TEST(it_has_no_capability),
		TEST(no_device_is_opened),
		TEST(what_it_has_not_finished_is_no_answer),
		cmocka_unit_test(answers_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * promote_crash_test.c - promote(), killed at each of its system calls in turn: the source is there, or
 * the complete destination, or both; and the next promotion leaves no trace of the one before.
 *
 * Runs in: a test program, as root and as an ordinary user, with the scratch and the destination on one
 * file system, and on two. The child is traced: at its Nth entry into the kernel it is killed.
 */
#include <signal.h>
#include <time.h>

#include "promote_fixture.h"

#include <sys/ptrace.h>
#include <sys/wait.h>

enum { CALLS_MAX = 2000 };

struct crash {
	const char *name;
	bool is_dir, copy, force;
};

static void make_source(struct fixture *f, const struct crash *c)
{
	int s = f->scratch.fd;

	if (!c->is_dir) {
		make_file(s, "a", "artifact", 0640);
		return;
	}
	make_dir(s, "a");
	make_dir(s, "a/b");
	make_file(s, "a/one", "1", 0600);
	make_file(s, "a/b/two", "22", 0400);
	assert_int_equal(symlinkat("b/two", s, "a/link"), 0);
}

static bool has_text(int at, const char *name, const char *text)
{
	char got[64] = "";
	int fd = openat(at, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : fd_read_file(fd, got, sizeof(got) - 1);

	fd_close(&fd);
	return n >= 0 && !strcmp(got, text);
}

/* Whether all of the artifact is there, as it was. */
static bool is_whole(int at, const struct crash *c)
{
	struct stat st;

	if (!c->is_dir)
		return has_text(at, "a", "artifact") &&
			(stat_of(at, "a").st_mode & 07777) == 0640;
	return has_text(at, "a/one", "1") && has_text(at, "a/b/two", "22") &&
		(stat_of(at, "a/b/two").st_mode & 07777) == 0400 &&
		fstatat(at, "a/link", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* The child stops at once, and promotes when it is continued. */
static pid_t start(struct fixture *f, const struct crash *c)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		const struct promote_options o = { .copy = c->copy, .force = c->force };

		if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
			_exit(77);
		(void)raise(SIGSTOP);
		_exit(move_with(f, "a", "a", &o) < 0);
	}
	return pid;
}

/*
 * Lets the child run up to its @call-th system call and kills it there. Returns false where it
 * ended before: then all of it has been seen.
 */
static bool kill_at(pid_t pid, unsigned call)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("skipped: ptrace is refused on this machine\n");
		skip();
	}
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL), 0);
	/* Each call stops twice: where it begins, and where it ends. */
	for (unsigned stops = 0; stops < 2 * call + 1; stops++) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, pid, 0, 0), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status)) {
			assert_int_equal(WEXITSTATUS(status), 0);
			return false;
		}
	}
	kill_child(pid);
	return true;
}

static void empty(const struct tree *t, const char *name)
{
	struct remove_result gone;

	assert_int_equal(remove_tree(t->fd, name, &gone, NULL), 0);
}

/* What a crash at one call leaves, and what the next promotion makes of it. */
static void check(struct fixture *f, const struct crash *c, unsigned call)
{
	bool source = exists(f->scratch.fd, "a") && is_whole(f->scratch.fd, c);
	bool there = exists(f->dest.fd, "a"),
	     old = c->force && has_text(f->dest.fd, "a", "old");

	if (there && !old && !is_whole(f->dest.fd, c))
		fail_msg("%s: killed at call %u: half of it at the destination", c->name, call);
	if (!source && (!there || old))
		fail_msg("%s: killed at call %u: it is lost", c->name, call);
	if (c->force && !there)
		fail_msg("%s: killed at call %u: what was replaced is lost", c->name, call);
	promote_temp_sweep(f->dest.fd);
	assert_int_equal(count_entries(f->dest.fd, "."), there);
	empty(&f->scratch, "a");
	empty(&f->dest, "a");
}

static void crash_everywhere(struct fixture *f, const struct crash *c)
{
	unsigned call = 0;
	bool killed = true;

	for (; killed; call++) {
		assert_true(call < CALLS_MAX);
		make_source(f, c);
		if (c->force)
			make_file(f->dest.fd, "a", "old", 0600);
		killed = kill_at(start(f, c), call);
		check(f, c, call);
	}
	print_message("%s: killed at %u system calls\n", c->name, call - 1);
	assert_true(call > 8);
}

static void test_file(void **state)
{
	crash_everywhere(*state, &(struct crash){ .name = "file" });
}

static void test_file_forced(void **state)
{
	crash_everywhere(*state, &(struct crash){ .name = "file, replacing", .force = true });
}

static void test_file_copied(void **state)
{
	crash_everywhere(*state, &(struct crash){ .name = "file, copied", .copy = true });
}

static void test_tree(void **state)
{
	crash_everywhere(*state, &(struct crash){ .name = "tree", .is_dir = true });
}

static void test_tree_copied(void **state)
{
	crash_everywhere(*state,
		&(struct crash){ .name = "tree, copied", .is_dir = true, .copy = true });
}

#define BOTH(test) \
	{ #test " (one file system)", test, setup_same, teardown, NULL }, \
	{ \
#test " (two file systems)", test, setup_cross, teardown, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_file),
		BOTH(test_file_forced),
		BOTH(test_file_copied),
		BOTH(test_tree),
		BOTH(test_tree_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * newpath_watch_test.c - what appears at protected paths goes while the session lives: by looking, by inotify, and
 * within bounds.
 *
 * Runs in: a test program, as root and as an ordinary user.
 */
/* ctest: cost=25 */
#include "tree_fixture.h"

#include <limits.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/clock.h"
#include "host/quarantine/newpath_dirs.h"
#include "host/quarantine/newpath_judge.h"
#include "host/quarantine/newpath_watch.h"

#define ID "aaaaaaaaaaaaaaaaaaaa"
#define DIRECTORY ".carrel-quarantine-" ID
#define PATIENCE_NS INT64_C(30000000000)
#define NOTIFY_NS INT64_C(2200000000)

enum { EVENT = 7 };

struct fixture {
	struct tree work;
	struct policy policy;
	struct facts facts;
	struct plan plan;
	struct absent_path absents[3];
	char paths[3][PATH_MAX];
	struct newpath_watch watch;
	int epoll;
};

static int setup(void **state)
{
	static struct fixture f;
	static const char *const names[] = { ".envrc", ".git/hooks", "a/b/c" };

	f = (struct fixture){ .epoll = epoll_create1(EPOLL_CLOEXEC) };
	tree_make(&f.work, "/tmp");
	make_dir(f.work.fd, ".git");
	struct stat st = stat_of(f.work.fd, ".");
	f.facts.workspace = f.work.path;
	f.facts.workspace_dev = st.st_dev;
	f.facts.workspace_ino = st.st_ino;
	f.facts.session_name = "carrel-" ID;
	for (size_t i = 0; i < 3; i++) {
		(void)snprintf(f.paths[i], PATH_MAX, "%s/%s", f.work.path, names[i]);
		f.absents[i] = (struct absent_path){ .root = f.work.path,
			.path = f.paths[i],
			.existing_prefix = strlen(f.work.path) + (i == 1 ? 5 : 0) };
	}
	f.plan.policy = &f.policy;
	f.plan.facts = &f.facts;
	f.plan.absents = f.absents;
	f.plan.absent_count = 3;
	newpath_watch_begin(&f.watch, &f.plan, f.epoll, EVENT);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	newpath_watch_stop(&f->watch);
	(void)close(f->epoll);
	tree_drop(&f->work);
	return 0;
}

/* One turn of a supervisor's loop, which waits no longer than @most_ms. */
static void turn(struct fixture *f, int most_ms)
{
	struct epoll_event event;
	int wait = newpath_watch_wait_ms(&f->watch);
	int n = epoll_wait(f->epoll, &event, 1, wait < 0 || wait > most_ms ? most_ms : wait);

	assert_true(n >= 0);
	if (n)
		assert_int_equal(event.data.u64, EVENT);
	if (n)
		newpath_watch_wake(&f->watch);
	newpath_watch_step(&f->watch);
}

static void turn_until_gone(struct fixture *f, const char *path)
{
	int64_t end = clock_now_ns() + PATIENCE_NS;

	while (exists(f->work.fd, path)) {
		turn(f, 1000);
		assert_true(clock_now_ns() < end);
	}
}

static void turn_for(struct fixture *f, int64_t ns)
{
	for (int64_t end = clock_now_ns() + ns; clock_now_ns() < end;)
		turn(f, 100);
}

static void newpath_all(struct fixture *f)
{
	make_file(f->work.fd, ".envrc", "evil", 0755);
	turn_until_gone(f, ".envrc");
	make_dir(f->work.fd, ".git/hooks");
	make_file(f->work.fd, ".git/hooks/pre-commit", "evil", 0755);
	turn_until_gone(f, ".git/hooks");
	make_dir(f->work.fd, "a");
	turn_for(f, 50000000);
	assert_true(exists(f->work.fd, "a"));
	make_dir(f->work.fd, "a/b");
	turn_for(f, 50000000);
	make_dir(f->work.fd, "a/b/c");
	turn_until_gone(f, "a/b/c");
	assert_true(exists(f->work.fd, "a/b"));
	assert_int_equal(unlinkat(f->work.fd, "a/b", AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("elsewhere", f->work.fd, "a/b"), 0);
	turn_until_gone(f, "a/b");
	assert_int_equal(unlinkat(f->work.fd, "a", AT_REMOVEDIR), 0);
}

static void test_looked_for(void **state)
{
	struct fixture *f = *state;

	newpath_all(f);
	assert_int_equal(newpath_watch_count(&f->watch), 4);
}

static void test_watched(void **state)
{
	struct fixture *f = *state;

	turn_for(f, NOTIFY_NS);
	assert_int_equal(newpath_watch_wait_ms(&f->watch), -1); /* nothing is polled any more */
	newpath_all(f);
	newpath_all(f);
	assert_int_equal(newpath_watch_count(&f->watch), 8);
}

/* A directory on the way is exchanged: the new one is watched, the old one is not any more. */
static void test_exchanged(void **state)
{
	struct fixture *f = *state;

	turn_for(f, NOTIFY_NS);
	for (int i = 0; i < 20; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "old%d", i);
		make_dir(f->work.fd, "a");
		make_dir(f->work.fd, "a/b");
		turn_for(f, 5000000);
		assert_int_equal(renameat(f->work.fd, "a", f->work.fd, name), 0);
	}
	make_dir(f->work.fd, "a");
	make_dir(f->work.fd, "a/b");
	turn_for(f, 5000000);
	make_file(f->work.fd, "a/b/c", "evil", 0644);
	turn_until_gone(f, "a/b/c");
}

/* Again and again: what is kept and what is reported does not grow, and the loop goes on turning. */
static void test_again_and_again(void **state)
{
	struct fixture *f = *state;
	struct arena arena;
	const struct report_quarantine *list = NULL;
	size_t count = 0;

	turn_for(f, NOTIFY_NS);
	for (int64_t end = clock_now_ns() + 2000000000; clock_now_ns() < end;) {
		if (!exists(f->work.fd, ".envrc"))
			make_file(f->work.fd, ".envrc", "evil", 0644);
		int64_t before = clock_now_ns();
		turn(f, 20);
		assert_true(clock_now_ns() - before < PATIENCE_NS / 10);
	}
	turn_until_gone(f, ".envrc");
	assert_true(newpath_watch_count(&f->watch) > 20);
	assert_true(newpath_watch_count(&f->watch) < 200);
	assert_in_range(count_entries(f->work.fd, DIRECTORY), 2, 8);
	assert_int_equal(arena_init(&arena, 1 << 20), 0);
	assert_int_equal(newpath_watch_report(&f->watch, &arena, &list, &count), 0);
	assert_int_equal(count, 1);
	assert_string_equal(list[0].path, f->paths[0]);
	assert_int_equal(list[0].times, newpath_watch_count(&f->watch));
	arena_free(&arena);
}

/* What has nothing to do with protected paths moves nothing, however much of it there is. */
static void test_others(void **state)
{
	struct fixture *f = *state;

	turn_for(f, NOTIFY_NS);
	for (int i = 0; i < 20000; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "file%d", i % 50);
		int fd = openat(f->work.fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0 && close(fd) == 0);
		assert_int_equal(unlinkat(f->work.fd, name, 0), 0);
		if (i % 100 == 0)
			turn(f, 0);
	}
	make_file(f->work.fd, ".envrc", "evil", 0755);
	turn_until_gone(f, ".envrc");
	assert_int_equal(newpath_watch_count(&f->watch), 1);
}

/* What had a moment to be written, and is gone before it is over, is not looked for without end. */
static void test_gone_by_itself(void **state)
{
	struct fixture *f = *state;

	turn_for(f, NOTIFY_NS);
	make_dir(f->work.fd, ".git/hooks");
	turn_for(f, 10000000);
	assert_true(exists(f->work.fd, ".git/hooks"));
	assert_int_equal(unlinkat(f->work.fd, ".git/hooks", AT_REMOVEDIR), 0);
	turn_for(f, 300000000);
	assert_int_equal(newpath_watch_wait_ms(&f->watch), -1);
	assert_int_equal(newpath_watch_count(&f->watch), 0);
}

static void test_nothing_to_watch(void **state)
{
	struct fixture *f = *state;
	struct newpath_watch none = { .plan = NULL };

	f->plan.absent_count = 0;
	newpath_watch_begin(&f->watch, &f->plan, f->epoll, EVENT);
	assert_int_equal(newpath_watch_wait_ms(&f->watch), -1);
	assert_int_equal(newpath_watch_wait_ms(&none), -1);
	newpath_watch_step(&none);
	newpath_watch_wake(&none);
	newpath_watch_stop(&none);
}

/* --- what git writes --------------------------------------------------------------------------- */

static struct quarantine_item item_of(const struct fixture *f, const char *path)
{
	return (struct quarantine_item){
		.root_fd = f->work.fd, .root = f->work.path, .path = path
	};
}

/* With no time or no children left S goes on: what stands stays until the next look, or goes unread. */
static void test_budget(void **state)
{
	struct fixture *f = *state;
	struct newpath_judgement j = { .plain = false };
	struct newpath_budget budget = { .until_ns = 0, .left = 1 };
	struct quarantine_item item = item_of(f, ".git/config.worktree");

	make_file(f->work.fd, item.path, "[core]\n", 0644);
	assert_true(newpath_judge(&j, &item, &budget));
	assert_true(budget.cut && !budget.child_started && !j.plain);
	budget = (struct newpath_budget){ .until_ns = INT64_MAX, .left = 1 };
	assert_true(newpath_judge(&j, &item, &budget));
	assert_true(!budget.cut && budget.child_started && budget.left == 0);
	j = (struct newpath_judgement){ .graces = UINT_MAX };
	assert_false(newpath_judge(&j, &item, &budget));
	/* A hook has no time at all. */
	budget = (struct newpath_budget){ .until_ns = 0, .left = 1 };
	item = item_of(f, ".git/hooks");
	make_dir(f->work.fd, item.path);
	make_file(f->work.fd, ".git/hooks/pre-commit", "", 0755);
	assert_false(newpath_judge(&j, &item, &budget));
}

static void test_judged(void **state)
{
	struct fixture *f = *state;
	struct newpath_judgement j = { .plain = false };
	struct newpath_budget budget = { .until_ns = INT64_MAX, .left = 1000 };
	struct quarantine_item item = item_of(f, ".envrc");

	assert_false(newpath_judge_applies(&item));
	item = item_of(f, ".git/config.worktree");
	assert_true(newpath_judge_applies(&item));
	/* It may be half written: a moment, and then no more. */
	make_file(f->work.fd, item.path, "[core]\n fsmonitor = x\n", 0644);
	assert_true(newpath_judge(&j, &item, &budget));
	assert_true(
		budget.child_started && !j.plain && j.again_ns > clock_now_ns() - PATIENCE_NS);
	while (clock_now_ns() < j.again_ns)
		continue;
	assert_false(newpath_judge(&j, &item, &budget));
	for (int i = 0; i < 40; i++)
		if (newpath_judge(&j, &item, &budget))
			j.seen_ns = 1;                   /* long ago */
	assert_false(newpath_judge(&j, &item, &budget)); /* it has had its moments */
	/* A hook goes at once, a link as well. */
	j = (struct newpath_judgement){ .plain = false };
	item = item_of(f, ".git/hooks");
	make_dir(f->work.fd, item.path);
	make_file(f->work.fd, ".git/hooks/pre-commit.sample", "", 0755);
	assert_true(newpath_judge(&j, &item, &budget));
	make_file(f->work.fd, ".git/hooks/pre-commit", "", 0755);
	j.changed = true;
	assert_false(newpath_judge(&j, &item, &budget));
	item = item_of(f, ".git/branches");
	assert_int_equal(symlinkat("..", f->work.fd, item.path), 0);
	assert_false(newpath_judge(&j, &item, &budget));
}

/* Without a descriptor to look with, the watch begins again soon, with every path. */
static void test_no_descriptor(void **state)
{
	struct fixture *f = *state;
	struct rlimit old, none;
	int next = fcntl(f->epoll, F_DUPFD_CLOEXEC, 0);

	make_file(f->work.fd, ".envrc", "evil", 0755);
	assert_true(next >= 0);
	assert_int_equal(close(next), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){ .rlim_cur = (rlim_t)next, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	turn_for(f, INT64_C(500000000));
	bool stands = exists(f->work.fd, ".envrc");
	int wait = newpath_watch_wait_ms(&f->watch);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_true(stands);
	assert_true(wait >= 0);
	turn_until_gone(f, ".envrc");
	make_dir(f->work.fd, ".git/hooks");
	make_file(f->work.fd, ".git/hooks/pre-commit", "evil", 0755);
	turn_until_gone(f, ".git/hooks/pre-commit");
}

int main(void)
{
#define WITH_TREE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_TREE(test_looked_for),
		WITH_TREE(test_watched),
		WITH_TREE(test_exchanged),
		WITH_TREE(test_again_and_again),
		WITH_TREE(test_others),
		WITH_TREE(test_gone_by_itself),
		WITH_TREE(test_nothing_to_watch),
		WITH_TREE(test_budget),
		WITH_TREE(test_judged),
		WITH_TREE(test_no_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

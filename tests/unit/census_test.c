/*
 * census_test.c - census_tree(): what it counts, what it leaves alone, and that it is bounded.
 *
 * Runs in: a test program, as root and as an ordinary user.
 */
#include "tree_fixture.h"

#include <sys/resource.h>

#include "host/tree/census.h"

enum { LONG_MS = 600000 };

static struct census count(int at, const char *name)
{
	struct census found = { 0 };

	assert_int_equal(census_tree(at, name, LONG_MS, &found), 0);
	return found;
}

static void test_empty(void **state)
{
	struct tree *t = *state;

	make_dir(t->fd, "s");
	make_dir(t->fd, "s/a");
	make_dir(t->fd, "s/b");
	struct census found = count(t->fd, "s");
	assert_int_equal(found.files, 0);
	assert_int_equal(found.bytes, 0);
	assert_false(found.truncated);
}

static void test_counts(void **state)
{
	struct tree *t = *state;

	make_dir(t->fd, "victim");
	make_file(t->fd, "victim/file", "12345678", 0600);
	make_dir(t->fd, "s");
	make_dir(t->fd, "s/a");
	make_file(t->fd, "s/a/file", "12345", 0);
	make_file(t->fd, "s/file", "123", 0600);
	assert_int_equal(linkat(t->fd, "s/file", t->fd, "s/second", 0), 0);
	assert_int_equal(symlinkat("../victim", t->fd, "s/dir-link"), 0);
	assert_int_equal(symlinkat("../victim/file", t->fd, "s/file-link"), 0);
	assert_int_equal(mkfifoat(t->fd, "s/fifo", 0600), 0);
	int fd = openat(t->fd, "s/sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
	assert_int_equal(close(fd), 0);
	struct census found = count(t->fd, "s");
	assert_int_equal(found.files, 4);
	assert_true(found.bytes == ((uint64_t)1 << 40) + 5 + 3 + 3);
	autofd int scratch = openat(t->fd, "s", O_PATH | O_CLOEXEC);
	struct census same = count(scratch, ".");
	assert_memory_equal(&same, &found, sizeof(same));
	assert_false(found.truncated);
	assert_int_equal(stat_of(t->fd, "s/a/file").st_mode & 07777, 0);
}

static void test_wide(void **state)
{
	struct tree *t = *state;

	make_wide(t->fd, "s", 10, 500);
	struct census found = count(t->fd, "s");
	assert_int_equal(found.files, 5000);
	assert_int_equal(found.bytes, 25000);
	assert_false(found.truncated);
	/* No time for it: it looks at the clock every now and then. */
	assert_int_equal(census_tree(t->fd, "s", -1, &found), 0);
	assert_in_range(found.files, 1, 4999);
	assert_true(found.truncated);
}

/* Deeper than it goes, or than descriptors last: it says so and keeps none of them. */
static void test_bounds(void **state)
{
	struct tree *t = *state;
	size_t before = count_entries(AT_FDCWD, "/proc/self/fd");

	make_chain(t->fd, "s", CENSUS_MAX_DEPTH + 1, 0755);
	make_file(t->fd, "s/file", "123", 0600);
	struct census found = count(t->fd, "s");
	assert_int_equal(found.files, 1);
	assert_true(found.truncated);

	struct rlimit old, few;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = (rlim_t)t->fd + 12; /* above what the test has inherited */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	found = count(t->fd, "s");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_true(found.truncated);
	assert_int_equal(count_entries(AT_FDCWD, "/proc/self/fd"), before);

	make_chain(t->fd, "whole", CENSUS_MAX_DEPTH, 0755);
	found = count(t->fd, "whole");
	assert_int_equal(found.files, 1);
	assert_false(found.truncated);
}

static void test_locked(void **state)
{
	struct tree *t = *state;

	make_dir(t->fd, "s");
	make_dir(t->fd, "s/locked");
	make_file(t->fd, "s/locked/file", "12345", 0600);
	assert_int_equal(fchmodat(t->fd, "s/locked", 0, 0), 0);
	struct census found = count(t->fd, "s");
	/* Root reads it all the same; a user is told that something is missing. */
	assert_int_equal(found.files, geteuid() == 0 ? 1 : 0);
	assert_int_equal(found.truncated, geteuid() != 0);
	assert_int_equal(stat_of(t->fd, "s/locked").st_mode & 07777, 0);
}

static void test_refused(void **state)
{
	struct tree *t = *state;
	struct census found = { .files = 77 };

	make_dir(t->fd, "s");
	make_file(t->fd, "file", "", 0600);
	assert_int_equal(symlinkat("s", t->fd, "link"), 0);
	assert_int_equal(census_tree(t->fd, "none", LONG_MS, &found), -ENOENT);
	assert_int_equal(census_tree(t->fd, "file", LONG_MS, &found), -ENOTDIR);
	assert_true(census_tree(t->fd, "link", LONG_MS, &found) < 0);
	assert_int_equal(census_tree(t->fd, "..", LONG_MS, &found), -EINVAL);
	assert_int_equal(found.files, 77);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_empty),
		TEST(test_counts),
		cmocka_unit_test_setup_teardown(test_wide, tree_setup_memory, tree_teardown),
		TEST(test_bounds),
		TEST(test_locked),
		TEST(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

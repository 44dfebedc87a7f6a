/*
 * match_test.c - the paths that a pattern stands for, and that a look which failed is no match of nothing.
 *
 * Runs in: the unit tests, in a directory of its own.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/facts/match.h"

struct fixture {
	char root[64];
	struct arena arena;
};

static int open_fixture(void **state)
{
	static struct fixture f;

	f = (struct fixture){ .root = "/tmp/carrel-match-test-XXXXXX" };
	*state = &f;
	if (arena_init(&f.arena, 16 << 20) < 0 || !mkdtemp(f.root) || chdir(f.root) < 0)
		return -1;
	return mkdir("a", 0700) + mkdir("b", 0700) + symlink("gone", "a/x.pem") +
		symlink("gone", "b/y.pem");
}

static int close_fixture(void **state)
{
	struct fixture *f = *state;
	int r = unlink("a/x.pem") + unlink("b/y.pem") + rmdir("a") + rmdir("b") + chdir("/");

	arena_free(&f->arena);
	return r + rmdir(f->root);
}

static int count_matches(struct fixture *f, const char *pattern, size_t *ret)
{
	const char *path = arena_format(&f->arena, "%s/%s", f->root, pattern), **paths = NULL;

	assert_non_null(path);
	*ret = 0;
	return match_paths(&f->arena, path, &paths, ret);
}

static void test_matches(void **state)
{
	static const struct {
		const char *pattern;
		size_t count;
	} cases[] = { { "*/*.pem", 2 }, { "a/*", 1 }, { "a/x.pem", 1 }, { "c/*", 0 },
		{ "*/z", 0 }, { "a/x.pem/*", 0 } };
	size_t count;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(count_matches(*state, cases[i].pattern, &count), 0);
		assert_int_equal(count, cases[i].count);
	}
}

/* A `hide` that matched nothing for want of a descriptor would hide nothing. */
static void test_no_descriptor(void **state)
{
	struct fixture *f = *state;
	struct rlimit old, none;
	const char **paths = NULL;
	size_t count;
	autofd int dir = open(f->root, O_PATH | O_CLOEXEC);
	int next = fcntl(dir, F_DUPFD_CLOEXEC, 0);

	assert_true(next >= 0);
	assert_int_equal(close(next), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){ .rlim_cur = (rlim_t)next, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	int listed = count_matches(f, "*/*.pem", &count);
	int beneath = match_beneath(&f->arena, dir, "a/x.pem", &paths, &count);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(listed, -EMFILE);
	assert_int_equal(beneath, -EMFILE);
	assert_int_equal(match_beneath(&f->arena, dir, "a/x.pem", &paths, &count), 0);
	assert_int_equal(count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_matches, open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(
			test_no_descriptor, open_fixture, close_fixture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * path_test.c - comparing canonical paths.
 *
 * Runs in: the unit tests. Pure.
 */
/* ctest: as=any */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "plan/path.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* In the order that is wanted: a directory, all that is below it, and only then its neighbours. */
static const char *const sorted[] = { "/", "/\x01", "/a", "/a/\x01", "/a/b", "/a/b/c", "/a/c",
	"/a!", "/a-b", "/a.b", "/a.b/c", "/aa", "/b", "/b/\xff", "/b\x7f", "/b\xc3\xa9",
	"/b\xff" };

static void test_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(sorted); i++)
		for (size_t j = 0; j < COUNT(sorted); j++) {
			int order = path_compare(sorted[i], sorted[j]);

			if ((order > 0) - (order < 0) != (i > j) - (i < j))
				fail_msg("%s and %s: %d", sorted[i], sorted[j], order);
		}
}

/* What the order is for: everything below a directory follows it without a gap. */
static void test_order_keeps_trees_together(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(sorted); i++) {
		size_t j = i;

		while (j < COUNT(sorted) && path_below(sorted[i], sorted[j]))
			j++;
		for (; j < COUNT(sorted); j++)
			assert_null(path_below(sorted[i], sorted[j]));
	}
}

static void test_below(void **state)
{
	static const struct {
		const char *dir, *path, *rest;
	} cases[] = {
		{ "/", "/", "" },
		{ "/", "/a", "a" },
		{ "/", "/a/b", "a/b" },
		{ "/a", "/a", "" },
		{ "/a", "/a/b/c", "b/c" },
		{ "/a/b", "/a/b/c", "c" },
		{ "/a", "/", NULL },
		{ "/a", "/ab", NULL },
		{ "/a", "/ab/c", NULL },
		{ "/a/b", "/a", NULL },
		{ "/a/b", "/a/bc", NULL },
		{ "/a/b", "/a/c/b", NULL },
		{ "/a\xff", "/a\xff/b", "b" },
		{ "/a\xff", "/a\xfe/b", NULL },
		{ "/a b\n", "/a b\n/c", "c" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *rest = path_below(cases[i].dir, cases[i].path);

		if (!cases[i].rest && rest)
			fail_msg("%s is not below %s", cases[i].path, cases[i].dir);
		if (cases[i].rest)
			assert_string_equal(rest ? rest : "(null)", cases[i].rest);
	}
}

static void test_parent(void **state)
{
	static const struct {
		const char *path;
		size_t length;
	} cases[] = { { "/", 1 }, { "/a", 1 }, { "/abc", 1 }, { "/a/b", 2 }, { "/a/b/c", 4 },
		{ "/a/\xff", 2 } };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(path_parent_length(cases[i].path), cases[i].length);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_order_keeps_trees_together),
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_parent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * close_test.c - how long the end of a run with a time-out may take.
 *
 * Runs in: the unit tests. Pure.
 */
/* ctest: as=any */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/launch/close.h"

#define S INT64_C(1000000000)
#define MS INT64_C(1000000)

/* A command that ends by itself in the last moment has no more time for its review than one that is ended. */
static void the_review_ends_before_the_run(void **state)
{
	const int64_t now = 100 * S;

	(void)state;
	assert_int_equal(close_review_deadline(now, 0, false), 0);
	assert_int_equal(close_review_deadline(now, now + 3600 * S, false), 0);
	for (int64_t left = 700 * MS; left <= 8 * S; left += 100 * MS) {
		int64_t end = close_review_deadline(now, now + left, false);

		assert_true(end >= now + 500 * MS);
		assert_true(end <= now + left - 200 * MS);
	}
	assert_int_equal(close_review_deadline(now, now - S, false), now + 500 * MS);
	assert_int_equal(close_review_deadline(now, now + 8 * S, true), now + 500 * MS);
	assert_int_equal(close_review_deadline(now, now, true), now + 500 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_review_ends_before_the_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

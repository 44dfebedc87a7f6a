/*
 * tracee_test.c - the observer's table of threads: nothing is lost or found twice, and it does not grow.
 */
/* ctest: as=any */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "host/explain/tracee.h"

static void test_full(void **state)
{
	struct tracees *t = calloc(1, sizeof(*t));

	(void)state;
	assert_non_null(t);
	for (pid_t p = 1; p <= TRACEES_MAX; p++)
		assert_non_null(tracee_add(t, p));
	assert_null(tracee_add(t, TRACEES_MAX + 1));
	assert_null(tracee_find(t, TRACEES_MAX + 1));
	for (pid_t p = 1; p <= TRACEES_MAX; p++)
		assert_int_equal(tracee_find(t, p)->thread, p);
	tracee_remove(t, 77);
	assert_null(tracee_find(t, 77));
	assert_non_null(tracee_add(t, TRACEES_MAX + 1));
	assert_null(tracee_add(t, TRACEES_MAX + 2));
	free(t);
}

/* Numbers that share a chain, removed from its beginning, middle and end, and used again. */
static void test_chains(void **state)
{
	struct tracees *t = calloc(1, sizeof(*t));
	enum { ALIKE = 5 };

	(void)state;
	assert_non_null(t);
	for (int round = 0; round < 100; round++) {
		for (pid_t i = 0; i < ALIKE; i++) {
			struct tracee *one = tracee_add(t, 3 + i * TRACEES_HEADS);

			assert_non_null(one);
			assert_false(one->known || one->own || one->inside);
			one->known = one->own = one->inside = true;
		}
		tracee_remove(t, 3 + (round % ALIKE) * TRACEES_HEADS);
		tracee_remove(t, 12345); /* it is not there */
		for (pid_t i = 0; i < ALIKE; i++)
			assert_int_equal(tracee_find(t, 3 + i * TRACEES_HEADS) == NULL,
				i == round % ALIKE);
		for (pid_t i = 0; i < ALIKE; i++)
			tracee_remove(t, 3 + i * TRACEES_HEADS);
		assert_int_equal(t->used, ALIKE);
	}
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_chains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

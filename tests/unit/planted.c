/*
 * planted.c - what the sanitizers of this build must find: a read beyond an allocation by the code under test, a
 * signed overflow, a leak.
 *
 * Runs in: the unit tests, sanitized alone. Each fault is made in a child, whose messages go nowhere.
 */
/* ctest: as=any */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/glob.h"

/* Whether a child that does @work ends with status 0. It leaves by exit(3), where leaks are looked for. */
static bool ends_well(void (*work)(void))
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		if (null < 0 || dup2(null, 2) < 0)
			_exit(0);
		work();
		exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void nothing(void)
{
}

/* A pattern that is not terminated. */
static void read_beyond(void)
{
	char *pattern = malloc(4);

	if (!pattern)
		_exit(0);
	memcpy(pattern, "/abc", 4);
	volatile bool matches = glob_path_fits(pattern, "/abcd");

	(void)matches;
	free(pattern);
}

static void overflow(void)
{
	volatile int most = INT_MAX;

	most += 1;
	(void)most;
}

static void leak(void)
{
	static volatile uintptr_t hidden;
	void *memory = malloc(64);

	hidden = ~(uintptr_t)memory;
	memory = NULL;
	(void)hidden;
}

static void test_found(void **state)
{
	(void)state;
	assert_true(ends_well(nothing)); /* the control arm */
	assert_false(ends_well(read_beyond));
	assert_false(ends_well(overflow));
	assert_false(ends_well(leak));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_found) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

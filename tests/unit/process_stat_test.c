/*
 * process_stat_test.c - what process_stat.c reads of /proc, and which process it waits for.
 *
 * Runs in: the unit tests.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/process/process_stat.h"

/* As proc(5) has them: 52 fields; the 22nd is the beginning, the 39th the processor. */
#define BEHIND \
	" S 4 5 6 7 -1 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 " \
	"34 35 36 37 17 %s 40 41 42 43 44 45 46 47 48 49 50 51 52\n"

static int64_t processor_behind(const char *name, const char *processor)
{
	char text[512], end[256];

	(void)snprintf(end, sizeof(end), BEHIND, processor);
	(void)snprintf(text, sizeof(text), "4711 (%s)%s", name, end);
	assert_int_equal(process_stat_number(text, 22), 22);
	return process_stat_number(text, 39);
}

static void fields_are_counted_behind_the_name(void **state)
{
	(void)state;
	assert_int_equal(processor_behind("carrel", "5"), 5);
	assert_int_equal(processor_behind("a b) S 1 (c", "127"), 127);
	assert_int_equal(processor_behind(") R 1 2 3", "0"), 0);
	assert_int_equal(processor_behind("carrel", "x"), -1);
	assert_int_equal(processor_behind("carrel", "99999999999999999999"), -1);
	assert_int_equal(process_stat_number("4711 (carrel) S 1 2 3\n", 39), -1);
	assert_int_equal(process_stat_number("4711 (carrel)", 22), -1);
	assert_int_equal(process_stat_number("", 22), -1);
	assert_int_equal(process_stat_number("4711 (carrel) S -4 5\n", 4), -1);
	assert_int_equal(process_stat_number("4711 (carrel) S 4 5\n", 4), 4);
}

static pid_t sleeper(void)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		for (;;)
			(void)pause();
	return child;
}

static void one_is_waited_for_until_it_is_dead(void **state)
{
	pid_t child = sleeper();
	int64_t started = process_started(child);
	int status;

	(void)state;
	assert_true(started > 0);
	assert_int_equal(process_started(child), started);
	assert_false(process_await_end(child, started, 0));
	assert_false(process_await_end(child, started, 10));
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_true(process_await_end(child, started, 60000));
	assert_true(process_await_end(child, started, 0)); /* dead, and not reaped */
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(process_started(child), -ENOENT);
	assert_true(process_await_end(child, started, 60000));
}

/* Whoever clears up after a session must not take a process that it cannot look at for one that has ended. */
static void one_that_cannot_be_looked_at_has_not_ended(void **state)
{
	pid_t child = sleeper();
	int64_t started = process_started(child);
	int status, next = fcntl(0, F_DUPFD_CLOEXEC, 0);
	struct rlimit old, none;

	(void)state;
	assert_true(next >= 0);
	assert_int_equal(close(next), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){ .rlim_cur = (rlim_t)next, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	int64_t unread = process_started(child);
	bool ended = process_await_end(child, started, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(unread, -EMFILE);
	assert_false(ended);
}

static void another_of_that_number_is_not(void **state)
{
	pid_t child = sleeper();
	int64_t started = process_started(child);
	int status;

	(void)state;
	assert_true(process_await_end(child, started - 1, 60000));
	assert_true(process_await_end(child, started + 1, 60000));
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_counted_behind_the_name),
		cmocka_unit_test(one_is_waited_for_until_it_is_dead),
		cmocka_unit_test(one_that_cannot_be_looked_at_has_not_ended),
		cmocka_unit_test(another_of_that_number_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

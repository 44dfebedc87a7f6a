/*
 * tuning_test.c - what tuning.c reads of /proc, and that a process keeps its mask.
 *
 * Runs in: the unit tests.
 */
#include <sched.h>
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/process/tuning.h"
#include "host/process/process_stat.h"

static void running_is_the_fourth_field(void **state)
{
	(void)state;
	assert_int_equal(tuning_running("0.00 0.46 2.11 1/102 15162\n"), 1);
	assert_int_equal(tuning_running("130.25 97.01 45.93 257/4031 99999\n"), 257);
	assert_int_equal(tuning_running("0.00 0.46 2.11"), -1);
	assert_int_equal(tuning_running("0.00 0.46 2.11 x/102 1"), -1);
	assert_int_equal(tuning_running("0.00 0.46 2.11 -1/102 1"), -1);
	assert_int_equal(tuning_running("0.00 0.46 2.11 99999999999999999999/1 1"), -1);
	assert_int_equal(tuning_running(""), -1);
}

/* A child that waits for the processor @on, and for no other. The caller's mask is @own again. */
static pid_t fork_on(size_t on, const cpu_set_t *own)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(on, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		for (;;)
			(void)sched_yield();
	assert_int_equal(sched_setaffinity(0, sizeof(*own), own), 0);
	return child;
}

static void end(pid_t child)
{
	int status;

	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
}

static size_t first_of(const cpu_set_t *own)
{
	size_t first = 0;

	while (!CPU_ISSET(first, own))
		first++;
	return first;
}

static void the_machine_says_where_a_child_is(void **state)
{
	char text[PROCESS_STAT_BYTES];
	cpu_set_t own;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(own), &own), 0);
	size_t first = first_of(&own);
	pid_t child = fork_on(first, &own);
	assert_true(process_stat_read(child, text));
	assert_int_equal(process_stat_number(text, 39), first);
	end(child);
}

static void masks_stay_as_they_were(void **state)
{
	cpu_set_t before, after, childs;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	for (int i = 0; i < 50; i++) {
		pid_t child = fork();

		assert_true(child >= 0);
		if (child == 0)
			for (;;)
				(void)pause();
		tuning_part(child);
		assert_int_equal(sched_getaffinity(child, sizeof(childs), &childs), 0);
		end(child);
		assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
		assert_memory_equal(&before, &after, sizeof(after));
		assert_memory_equal(&before, &childs, sizeof(childs));
	}
}

/* From the first processor to another, where there is one. The child may have run there before it was moved. */
static void a_child_that_waits_is_moved(void **state)
{
	char text[PROCESS_STAT_BYTES];
	cpu_set_t own, after;
	bool moved = false;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(own), &own), 0);
	size_t first = first_of(&own);
	for (int i = 0; i < 1000 && !moved; i++) {
		pid_t child = fork_on(first, &own);

		assert_int_equal(sched_setaffinity(child, sizeof(own), &own), 0);
		tuning_move(child, (int)first);
		assert_true(process_stat_read(child, text));
		moved = process_stat_number(text, 39) != (int64_t)first;
		assert_int_equal(sched_getaffinity(child, sizeof(after), &after), 0);
		assert_memory_equal(&own, &after, sizeof(after));
		tuning_move(child, -1);
		tuning_move(child, 1 << 20);
		end(child);
	}
	assert_int_equal(moved, CPU_COUNT(&own) > 1);
}

/* Who may use fewer processors than there are passes on no more. */
static void a_narrow_mask_stays_narrow(void **state)
{
	cpu_set_t own, one, after;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(own), &own), 0);
	size_t first = first_of(&own);
	pid_t child = fork_on(first, &own);
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	assert_int_equal(sched_setaffinity(child, sizeof(one), &one), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	tuning_move(child, (int)first); /* there is no other for us */
	assert_int_equal(sched_getaffinity(child, sizeof(after), &after), 0);
	assert_memory_equal(&one, &after, sizeof(after));
	tuning_move(child, (int)first + 1); /* the mask is ours, and comes back */
	assert_int_equal(sched_getaffinity(child, sizeof(after), &after), 0);
	assert_memory_equal(&one, &after, sizeof(after));
	assert_int_equal(sched_setaffinity(0, sizeof(own), &own), 0);
	end(child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(running_is_the_fourth_field),
		cmocka_unit_test(the_machine_says_where_a_child_is),
		cmocka_unit_test(masks_stay_as_they_were),
		cmocka_unit_test(a_child_that_waits_is_moved),
		cmocka_unit_test(a_narrow_mask_stays_narrow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

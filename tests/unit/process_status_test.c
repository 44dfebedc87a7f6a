/*
 * process_status_test.c - single lines of /proc/PID/status, however long the others are and whatever the
 * process calls itself.
 *
 * Runs in: the unit tests.
 */
/* ctest: as=any */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/process/process_status.h"

enum { GROUPS_BYTES = 64 * 1024 };

static int file_of(const char *text)
{
	int fd = memfd_create("status", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static int scan(const char *text, struct process_status *wanted, size_t count)
{
	int fd = file_of(text);
	int r = process_status_scan(fd, wanted, count);

	assert_int_equal(close(fd), 0);
	return r;
}

static void a_long_line_comes_before(void **state)
{
	struct process_status wanted[] = { { .key = "PPid:" }, { .key = "NSpid:" },
		{ .key = "Seccomp_filters:" } };
	static const char before[] = "Name:\tx\nPPid:\t12\nGroups:\t",
			  behind[] = "\nNSpid:\t7\t1\nSeccomp_filters:\t2\n";
	char *text = calloc(1, GROUPS_BYTES + 256), *groups = text + sizeof(before) - 1;

	(void)state;
	assert_non_null(text);
	/* At every place in a block that the end of the long line can come to. */
	memcpy(text, before, sizeof(before) - 1);
	for (size_t i = 0; i < GROUPS_BYTES; i++)
		groups[i] = "65534 "[i % 6];
	for (size_t less = 0; less < 600; less++) {
		memcpy(groups + GROUPS_BYTES - less, behind, sizeof(behind));
		assert_int_equal(scan(text, wanted, 3), 0);
		assert_string_equal(wanted[0].value, "12");
		assert_string_equal(wanted[1].value, "7\t1");
		assert_string_equal(wanted[2].value, "2");
	}
	free(text);
}

static void a_line_is_missing(void **state)
{
	struct process_status wanted[] = { { .key = "PPid:" }, { .key = "NSpid:" } };

	(void)state;
	/* What was there from another process is no answer of this one. */
	(void)snprintf(wanted[1].value, sizeof(wanted[1].value), "1");
	assert_int_equal(scan("Name:\tx\nPPid:\t12\n", wanted, 2), -ENODATA);
	assert_string_equal(wanted[0].value, "12");
	assert_string_equal(wanted[1].value, "");
	assert_int_equal(scan("", wanted, 2), -ENODATA);
	/* A line that does not end is none: there would be more of it. */
	assert_int_equal(scan("PPid:\t1\nNSpid:\t12", wanted, 2), -ENODATA);
	assert_int_equal(scan("PPid:\t1\nNSpid:\t\n", wanted, 2), -ENODATA);
}

static void a_value_that_does_not_fit_is_none(void **state)
{
	struct process_status wanted = { .key = "NSpid:" };
	char text[1024] = "NSpid:\t";

	(void)state;
	memset(text + 7, '1', PROCESS_STATUS_VALUE - 1);
	text[7 + PROCESS_STATUS_VALUE - 1] = '\n';
	assert_int_equal(scan(text, &wanted, 1), 0);
	memset(text + 7, '1', PROCESS_STATUS_VALUE);
	text[7 + PROCESS_STATUS_VALUE] = '\n';
	assert_int_equal(scan(text, &wanted, 1), -ENODATA);
	assert_string_equal(wanted.value, "");
}

static void a_key_is_a_whole_word_at_the_beginning(void **state)
{
	struct process_status wanted = { .key = "Seccomp:" };

	(void)state;
	assert_int_equal(scan("Seccomp_filters:\t3\n Seccomp:\t4\nxSeccomp:\t5\nSeccomp:\t2\n",
				 &wanted, 1),
		0);
	assert_string_equal(wanted.value, "2");
}

/* The kernel's own way with names: what a process calls itself is no line. */
static void a_name_forges_no_line(void **state)
{
	struct process_status wanted[] = { { .key = "Name:" }, { .key = "PPid:" },
		{ .key = "NSpid:" } };
	char expected[16];

	(void)state;
	(void)snprintf(expected, sizeof(expected), "%d", (int)getppid());
	assert_int_equal(
		scan("Name:\tx\\nPPid:\t1\\nNSpid:\t1\nPPid:\t77\nNSpid:\t5\t1\n", wanted, 3),
		0);
	assert_string_equal(wanted[1].value, "77");
	assert_string_equal(wanted[2].value, "5\t1");
	assert_int_equal(prctl(PR_SET_NAME, "\nPPid:\t1\n", 0, 0, 0), 0);
	assert_int_equal(process_status_read(getpid(), wanted, 3), 0);
	assert_non_null(strstr(wanted[0].value, "\\nPPid:"));
	assert_string_equal(wanted[1].value, expected);
}

static void a_process_that_is_not_there(void **state)
{
	struct process_status wanted = { .key = "PPid:", .value = "3" };

	(void)state;
	assert_int_equal(process_status_read(INT_MAX, &wanted, 1), -ENOENT);
	assert_string_equal(wanted.value, "");
}

static void numbers(void **state)
{
	(void)state;
	assert_int_equal(process_status_number("0", INT_MAX), 0);
	assert_int_equal(process_status_number("4711\t3", INT_MAX), 4711);
	assert_int_equal(process_status_number("2147483647", INT_MAX), INT_MAX);
	assert_int_equal(process_status_number("2147483648", INT_MAX), -1);
	assert_int_equal(process_status_number("99999999999999999999", LONG_MAX), -1);
	assert_int_equal(process_status_number("", INT_MAX), -1);
	assert_int_equal(process_status_number("-1", INT_MAX), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_line_comes_before),
		cmocka_unit_test(a_line_is_missing),
		cmocka_unit_test(a_value_that_does_not_fit_is_none),
		cmocka_unit_test(a_key_is_a_whole_word_at_the_beginning),
		cmocka_unit_test(a_name_forges_no_line),
		cmocka_unit_test(a_process_that_is_not_there),
		cmocka_unit_test(numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * process_status.h - single lines of /proc/PID/status: proc(5).
 *
 * Runs in: every process outside, S among them. May not: take a process's word for a line. A
 * process chooses its name, which is in the first line, where the kernel shows a newline as "\n".
 * The line of the groups has room for 65,536 of them, and may come before the lines that are looked
 * for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

enum { PROCESS_STATUS_VALUE = 320 }; /* bytes: NSpid has 32 numbers at most */

struct process_status {
	const char *key; /* with its colon: "PPid:" */
	char value
		[PROCESS_STATUS_VALUE]; /* what stands behind it, without blanks before it; "" where no such line is */
};

/*
 * process_status_read - the values of @wanted, @count of them, of the process @pid.
 * Returns 0; -ENODATA where one of the lines is missing, or does not fit: its value is "" then, the others are filled;
 * or -errno where it cannot be read (-ENOENT, -ESRCH: there is no such process), and all are "".
 */
MUST_CHECK int process_status_read(pid_t pid, struct process_status *wanted, size_t count);

/* process_status_scan - the same of what @fd gives until its end. */
MUST_CHECK int process_status_scan(int fd, struct process_status *wanted, size_t count);

/* process_status_number - a value that begins with digits; -1 where it does not, or is greater than @max. */
long process_status_number(const char *value, long max);

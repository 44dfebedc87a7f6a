/*
 * process_status.c - see process_status.h.
 *
 * Runs in: every process outside. No heap; memory of one size, however long the file and its lines are.
 */
#include "host/process/process_status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

enum { BLOCK_BYTES = 512, LINE_BYTES = PROCESS_STATUS_VALUE + 32 };

/* The line that is being put together; what is longer than there is room for is skipped to its end. */
struct line {
	char text[LINE_BYTES];
	size_t length;
	bool too_long;
};

static void take_line(struct line *line, struct process_status *wanted, size_t count)
{
	line->text[line->length] = '\0';
	for (size_t i = 0; i < count && !line->too_long; i++) {
		size_t length = strlen(wanted[i].key);

		/* Only the first line with this key counts: it is the kernel's. */
		if (wanted[i].value[0] || strncmp(line->text, wanted[i].key, length) != 0)
			continue;
		const char *value = line->text + length;

		value += strspn(value, " \t");
		if (strlen(value) < sizeof(wanted[i].value))
			memcpy(wanted[i].value, value, strlen(value) + 1);
	}
	line->length = 0;
	line->too_long = false;
}

static void take_block(struct line *line, const char *block, size_t size,
	struct process_status *wanted, size_t count)
{
	for (size_t i = 0; i < size; i++) {
		if (block[i] == '\n')
			take_line(line, wanted, count);
		else if (line->length < sizeof(line->text) - 1)
			line->text[line->length++] = block[i];
		else
			line->too_long = true;
	}
}

static void clear(struct process_status *wanted, size_t count)
{
	for (size_t i = 0; i < count; i++)
		wanted[i].value[0] = '\0';
}

int process_status_scan(int fd, struct process_status *wanted, size_t count)
{
	struct line line = { .length = 0 };
	char block[BLOCK_BYTES];
	ssize_t n;

	clear(wanted, count);
	/* All of the file is of one moment: the kernel writes it out at the first read. */
	while ((n = read(fd, block, sizeof(block))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int r = -errno;

			clear(wanted, count);
			return r;
		}
		take_block(&line, block, (size_t)n, wanted, count);
	}
	for (size_t i = 0; i < count; i++)
		if (!wanted[i].value[0])
			return -ENODATA;
	return 0;
}

int process_status_read(pid_t pid, struct process_status *wanted, size_t count)
{
	char path[32];

	clear(wanted, count);
	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	autofd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	return fd < 0 ? fd : process_status_scan(fd, wanted, count);
}

long process_status_number(const char *value, long max)
{
	long n = 0;

	if (*value < '0' || *value > '9')
		return -1;
	for (; *value >= '0' && *value <= '9'; value++) {
		if (n > (max - (*value - '0')) / 10)
			return -1;
		n = n * 10 + (*value - '0');
	}
	return n;
}

/*
 * process_stat.c - see process_stat.h.
 *
 * Runs in: the launcher, outside. No heap.
 */
#include "host/process/process_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

enum {
	STATE_FIELD = 3, /* the one behind the name */
	STARTED_FIELD = 22,
};

bool process_stat_read(pid_t pid, char ret_text[PROCESS_STAT_BYTES])
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret_text, PROCESS_STAT_BYTES - 1);

	ret_text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

int64_t process_stat_number(const char *stat, int field)
{
	/* The name may have any byte in it; nothing behind it has a bracket. */
	const char *at = strrchr(stat, ')');
	char *end;

	for (int i = STATE_FIELD; at && i <= field; i++)
		at = strchr(at + 1, ' ');
	if (!at)
		return -1;
	errno = 0;
	long long value = strtoll(++at, &end, 10);
	return end == at || errno || value < 0 ? -1 : value;
}

int64_t process_started(pid_t pid)
{
	char text[PROCESS_STAT_BYTES];

	errno = ESRCH; /* an empty text, as of a process that ends */
	if (!process_stat_read(pid, text))
		return -errno;
	int64_t started = process_stat_number(text, STARTED_FIELD);
	return started < 0 ? -EBADMSG : started;
}

bool process_await_end(pid_t pid, int64_t started, int patience)
{
	/* Opened first, so that the process that is compared is the one that is waited for. */
	autofd int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = { .fd = fd, .events = POLLIN };
	int r;

	if (fd < 0 && errno == ESRCH)
		return true;
	/* What cannot be read may still be the same. */
	int64_t now = process_started(pid);
	if (now == -ENOENT || now == -ESRCH || (now >= 0 && now != started))
		return true;
	do
		r = fd < 0 ? 0 : poll(&ended, 1, patience);
	while (r < 0 && errno == EINTR);
	return r > 0;
}

/*
 * leaked.c - see leaked.h.
 *
 * Runs in: S. May not: signal a process by a number that may be another's by now: each is held by a
 * pidfd before it is looked at.
 */
#include "host/process/leaked.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/sys.h"
#include "host/process/process_status.h"
#include "host/tree/beneath.h"

enum {
	LIST_BYTES = 1024, /* few entries at once: what is listed should still be there */
	DEPTH_MAX = 1 << 16,
	FREEZE_MAX = 64, /* passes */
};

struct relative {
	pid_t parent;
	char state;
	unsigned filters;
};

/* -ENODATA: the kernel does not show all of it, so the process cannot be judged. */
static int look_at(pid_t pid, struct relative *ret)
{
	struct process_status line[] = { { .key = "State:" }, { .key = "PPid:" },
		{ .key = "Seccomp_filters:" } };
	int r = process_status_read(pid, line, sizeof(line) / sizeof(*line));

	if (r < 0)
		return r;
	long parent = process_status_number(line[1].value, INT_MAX);
	long filters = process_status_number(line[2].value, INT_MAX);

	if (parent < 0 || filters < 0)
		return -ENODATA;
	*ret = (struct relative){
		.parent = (pid_t)parent, .state = line[0].value[0], .filters = (unsigned)filters
	};
	return 0;
}

static bool is_alive(const struct relative *r)
{
	return r->state != 'Z' && r->state != 'X';
}

/* Whether @pid lives, descends from @root and has more filters than @filters; what it is like, in @ret. */
static bool descends(pid_t pid, pid_t root, unsigned filters, struct relative *ret)
{
	struct relative up;

	if (pid == root || look_at(pid, ret) < 0 || !is_alive(ret) || ret->filters <= filters)
		return false;
	up = *ret;
	for (int depth = 0; up.parent != root; depth++)
		if (up.parent <= 1 || depth > DEPTH_MAX || look_at(up.parent, &up) < 0)
			return false;
	return true;
}

static pid_t entry_pid(const struct beneath_entry *entry)
{
	pid_t pid = 0;

	for (const char *c = entry->name; *c; c++) {
		if (*c < '0' || *c > '9')
			return 0;
		pid = pid * 10 + (*c - '0');
	}
	return pid;
}

/*
 * Signal one descendant. 1: the signal was sent; SIGSTOP only if it was not stopped yet. -errno: it
 * cannot be held.
 * @ret_held: a pidfd of the last one is left there, in place of the one before; NULL: not wanted.
 */
static int signal_one(pid_t pid, pid_t root, unsigned filters, int signal, int *ret_held)
{
	struct relative r;

	if (!descends(pid, root, filters, &r))
		return 0;
	int fd = (int)sys_result(syscall(SYS_pidfd_open, pid, 0));
	if (fd < 0)
		return fd == -ESRCH ? 0 : fd;
	/* Look again: now the number cannot become another's. */
	bool is_one = descends(pid, root, filters, &r) &&
		(signal != SIGSTOP || (r.state != 'T' && r.state != 't'));
	int sent = is_one ? sys_pidfd_send_signal(fd, signal) : -ESRCH;
	if (sent < 0 || !ret_held) {
		(void)close(fd);
		return sent < 0 ? 0 : 1;
	}
	if (*ret_held >= 0)
		(void)close(*ret_held);
	*ret_held = fd;
	return 1;
}

static int signal_listed(int proc, pid_t root, unsigned filters, int signal, int *ret_held)
{
	_Alignas(struct beneath_entry) char buffer[LIST_BYTES];
	struct beneath_list list = { .fd = proc, .buffer = buffer, .size = sizeof(buffer) };
	struct beneath_entry *entry;
	int count = 0, r;

	while ((r = beneath_next(&list, &entry)) > 0) {
		pid_t pid = entry_pid(entry);

		r = pid > 0 ? signal_one(pid, root, filters, signal, ret_held) : 0;
		if (r < 0)
			return r;
		count += r;
	}
	return r < 0 ? r : count;
}

static int signal_all(pid_t root, unsigned filters, int signal, int *ret_held)
{
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (proc < 0)
		return -errno;
	int r = signal_listed(proc, root, filters, signal, ret_held);
	(void)close(proc);
	return r;
}

int leaked_end(unsigned filters)
{
	pid_t root = getpid();
	int left = 1;

	while (left > 0) {
		struct pollfd held = { .fd = -1, .events = POLLIN };
		int running = 1;

		/* Bounded: a stop takes effect only when the process next leaves the kernel. */
		for (int i = 0; i < FREEZE_MAX && running > 0; i++)
			running = signal_all(root, filters, SIGSTOP, NULL);
		left = signal_all(root, filters, SIGKILL, &held.fd);
		while (held.fd >= 0 && poll(&held, 1, -1) < 0 && errno == EINTR)
			;
		if (held.fd >= 0)
			(void)close(held.fd);
	}
	return left;
}

int leaked_filters(void)
{
	struct relative self;
	int r = look_at(getpid(), &self);

	return r < 0 ? r : (int)self.filters;
}

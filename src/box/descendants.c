/*
 * descendants.c - see descendants.h.
 *
 * Runs in: a monitor. No heap, no stdio. The processes run during a scan, so its result may be
 * out of date. Only ECHILD from wait(2) proves that none is left, and the loop goes on until then.
 */
#include "box/descendants.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box/number.h"
#include "box/sys.h"

enum {
	PID_LIMIT = 1 << 22, /* of the kernel: PID_MAX_LIMIT, proc(5) */
	FOUND_MAX = 32768,
	BUFFER_SIZE = 32768,
	RESCAN_MS = 50, /* the longest wait for the next end */
};

struct task {
	int pid, parent;
};

enum { OURS = 1, SENT = 2 };

/* Touched as far as it is used. */
struct scan {
	struct task found[FOUND_MAX];
	size_t count;
	int highest;              /* pid seen */
	uint8_t state[PID_LIMIT]; /* by pid: OURS: stems from us; SENT: was sent the signal */
	char buffer[BUFFER_SIZE];
};

static void clear(struct scan *s, uint8_t flags)
{
	for (int pid = 0; pid <= s->highest; pid++)
		s->state[pid] = (uint8_t)(s->state[pid] & ~flags);
}

static int read_number(const char *text)
{
	int number = 0;

	for (; *text >= '0' && *text <= '9' && number < PID_LIMIT; text++)
		number = number * 10 + (*text - '0');
	return *text && *text != ' ' ? -1 : number;
}

/* Returns the parent of a process; 0 where the process has ended (a zombie, or no longer listed). */
static int parent_of(int proc, const char *name)
{
	char path[32], text[512];
	size_t length = strnlen(name, 16);

	memcpy(path, name, length);
	memcpy(path + length, "/stat", 6);
	int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		(void)close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* The line is "pid (name) state parent ...". The name may hold any bytes and ends at the
	 * last parenthesis (proc(5)). */
	const char *at = strrchr(text, ')');
	if (!at || n - (at - text) < 5 || at[2] == 'Z' || at[2] == 'X')
		return 0;
	int parent = read_number(at + 4);
	return parent > 0 && parent < PID_LIMIT ? parent : 0;
}

/*
 * Not host/tree's walker: nothing inside is linked with what runs outside. As getdents64(2) writes an entry: ino, off,
 * length, type, name.
 */
static void add_entries(struct scan *s, int proc, size_t size)
{
	for (size_t at = 0; at + 19 < size;) {
		const char *name = s->buffer + at + 19;
		uint16_t length;
		int pid = name[0] >= '1' && name[0] <= '9' ? read_number(name) : -1;

		memcpy(&length, s->buffer + at + 16, sizeof(length));
		at += length;
		if (pid <= 0 || pid >= PID_LIMIT || s->count == FOUND_MAX)
			continue;
		int parent = parent_of(proc, name);
		if (!parent)
			continue;
		s->found[s->count++] = (struct task){ pid, parent };
		if (pid > s->highest)
			s->highest = pid;
	}
}

/* The children that are to live, with all that stems from them. */
struct kept {
	const pid_t *pids;
	size_t count;
};

static bool is_kept(const struct kept *kept, int pid)
{
	for (size_t i = 0; i < kept->count; i++)
		if (kept->pids[i] == pid)
			return true;
	return false;
}

/* Passes over the table are repeated until one adds nothing: that finds children of children. */
static void mark_ours(struct scan *s, int self, const struct kept *kept)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < s->count; i++) {
			const struct task *t = &s->found[i];

			if ((s->state[t->pid] & OURS) ||
				(t->parent != self && !(s->state[t->parent] & OURS)) ||
				(t->parent == self && is_kept(kept, t->pid)))
				continue;
			s->state[t->pid] |= OURS;
			more = true;
		}
	}
}

static int scan_proc(struct scan *s, pid_t root, const struct kept *kept)
{
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long n;

	if (proc < 0)
		return -errno;
	s->count = 0;
	clear(s, OURS);
	do {
		n = sys_result(syscall(SYS_getdents64, proc, s->buffer, sizeof(s->buffer)));
		if (n > 0)
			add_entries(s, proc, (size_t)n);
	} while (n > 0);
	(void)close(proc);
	mark_ours(s, root, kept);
	return (int)n;
}

/* Returns how many processes got @signal for the first time. */
static int send_to_new(struct scan *s, int signal)
{
	int sent = 0;

	for (size_t i = 0; i < s->count; i++) {
		int pid = s->found[i].pid;

		if (s->state[pid] != OURS)
			continue;
		s->state[pid] |= SENT;
		(void)kill(pid, signal); /* ESRCH: it has just ended */
		sent++;
	}
	return sent;
}

static struct scan *open_scan(void)
{
	struct scan *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return s == MAP_FAILED ? NULL : s;
}

int descendants_signal(pid_t root, int signal)
{
	struct scan *s = open_scan();

	if (!s)
		return -errno;
	const struct kept none = { 0 };
	int r = scan_proc(s, root, &none);
	if (r >= 0)
		(void)send_to_new(s, signal);
	(void)munmap(s, sizeof(*s));
	return r;
}

/* All are stopped before any is killed. Otherwise a process that forks faster than they are killed
 * would stay ahead. */
static int stop_and_kill(struct scan *s, const struct kept *kept)
{
	int r;

	clear(s, SENT);
	do
		r = scan_proc(s, getpid(), kept);
	while (r >= 0 && send_to_new(s, SIGSTOP) > 0);
	clear(s, SENT);
	(void)send_to_new(s, SIGKILL);
	return r;
}

int descendants_end_strays(const pid_t *kept, size_t count)
{
	const struct kept children = { kept, count };
	struct scan *s = open_scan();

	if (!s)
		return -errno;
	int r = stop_and_kill(s, &children);
	(void)munmap(s, sizeof(*s));
	return r;
}

/* Reaps the children that have ended. Returns whether one is left. */
static bool has_children(void)
{
	pid_t pid;

	do
		pid = waitpid(-1, NULL, WNOHANG | __WALL);
	while (pid > 0 || (pid < 0 && errno == EINTR));
	return pid == 0;
}

static void wait_for_child(int children)
{
	struct pollfd event = { .fd = children, .events = POLLIN };
	struct signalfd_siginfo info;

	/* Read so that the descriptor waits again; wait(2) says what has ended. */
	if (poll(&event, 1, RESCAN_MS) > 0)
		(void)!read(children, &info, sizeof(info));
}

int descendants_end(int children)
{
	if (!has_children())
		return 0;
	const struct kept none = { 0 };
	struct scan *s = open_scan();
	if (!s)
		return -errno;
	int r = stop_and_kill(s, &none);
	while (r >= 0 && has_children()) {
		wait_for_child(children);
		if (has_children())
			r = stop_and_kill(s, &none);
	}
	(void)munmap(s, sizeof(*s));
	return r;
}

/*
 * freeze.c - see freeze.h.
 *
 * Runs in: the coverer's child.
 */
#include "host/cover/freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/cover/proc_text.h"

enum { TABLE_SIZE = 1 << 16, THREADS_MAX = TABLE_SIZE / 2, PAUSE_NS = 1000000 };
enum { RELEASE_NS = 2000000000 };

enum state {
	ASKED,   /* to stop */
	STOPPED, /* in a ptrace-stop: it runs no instruction */
	INERT, /* waits in vfork(2) for a child that is stopped, and stops when that child runs again */
	GONE,
};

enum { PF_FORKNOEXEC = 0x40 }; /* include/linux/sched.h; proc(5), stat: flags */

int freeze_init(struct freeze *ret, int proc, pid_t init, int64_t deadline_ns)
{
	const size_t table = TABLE_SIZE * sizeof(*ret->table);
	char *memory = mmap(NULL, table + THREADS_MAX * sizeof(*ret->queue),
		PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return -errno;
	*ret = (struct freeze){ .proc = proc,
		.init = init,
		.deadline_ns = deadline_ns,
		.table = (struct frozen *)(void *)memory,
		.queue = (pid_t *)(void *)(memory + table) };
	return 0;
}

/* The entry of @thread in the table, or the free one where it belongs. */
static struct frozen *place_of(struct freeze *f, pid_t thread)
{
	size_t i = ((uint32_t)thread * 2654435761u) >> 16;

	while (f->table[i].thread && f->table[i].thread != thread)
		i = (i + 1) % TABLE_SIZE;
	return &f->table[i];
}

static struct frozen *add_thread(
	struct freeze *f, pid_t thread, pid_t process, enum state state)
{
	struct frozen *t = place_of(f, thread);

	if (f->count == THREADS_MAX)
		return NULL;
	f->count += !t->thread;
	*t = (struct frozen){ .thread = thread, .process = process, .state = (uint8_t)state };
	return t;
}

static void set_state(struct freeze *f, struct frozen *t, enum state state)
{
	f->waiting -= t->state == ASKED;
	t->state = (uint8_t)state;
	f->waiting += state == ASKED;
}

/* --- one thread -------------------------------------------------------------------------------- */

/* Who traces @thread: another process, or this one since it traces the parent (PTRACE_O_TRACEFORK). 0: nobody. */
static pid_t tracer_of(const struct freeze *f, pid_t thread)
{
	char text[PROC_TEXT_MAX];

	if (proc_read(f->proc, thread, "status", text, sizeof(text)) < 0)
		return 0;
	const char *line = strstr(text, "\nTracerPid:");
	return line ? (pid_t)strtol(line + sizeof("\nTracerPid:") - 1, NULL, 10) : 0;
}

/*
 * The kernel refuses to trace @thread: it has ended, it is carrel's own, or no process of its user may trace it. A child of init is
 * carrel's own until it has executed a program: its memory belongs to the host's user namespace (ptrace_may_access()).
 */
static int handle_refusal(struct freeze *f, pid_t thread, pid_t process)
{
	struct proc_stat st;
	pid_t tracer = tracer_of(f, thread);

	if (tracer == getpid()) {
		struct frozen *t = add_thread(f, thread, process, GONE);

		if (!t)
			return -E2BIG;
		set_state(
			f, t, ASKED); /* the kernel stops it: ptrace(2), automatic attachment */
		return 1;
	}
	int r = proc_stat_read(f->proc, thread, &st);
	if (r < 0)
		return r == -ENOENT || r == -ESRCH ? 0 : r;
	if (st.state == 'Z' || st.state == 'X')
		return 0;
	f->culprit = process;
	if (tracer) /* its tracer could let it run while it is searched */
		return -EBUSY;
	if (!(st.flags & PF_FORKNOEXEC))
		return -EPERM;
	struct frozen *t = add_thread(f, thread, process, STOPPED);

	if (!t)
		return -E2BIG;
	t->ours = 1;
	return 0;
}

/* 1: the thread was asked to stop; 0: there is nothing to wait for; or -errno. */
static int stop_thread(struct freeze *f, pid_t thread, pid_t process)
{
	const struct frozen *known = place_of(f, thread);

	/* A process of carrel's own may have become the command since. */
	if (known->thread && !known->ours && known->state != GONE)
		return 0;
	if (ptrace(PTRACE_SEIZE, thread, NULL,
		    (void *)(long)(PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK |
			    PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE)) < 0)
		return errno == ESRCH ? 0 : handle_refusal(f, thread, process);
	struct frozen *t = add_thread(f, thread, process, GONE);
	if (!t)
		return -E2BIG;
	set_state(f, t, ASKED);
	if (ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) < 0 && errno != ESRCH)
		return -errno;
	return 1;
}

/* --- waiting ----------------------------------------------------------------------------------- */

static int note_stop(struct freeze *f, pid_t thread, int status)
{
	struct frozen *t = place_of(f, thread);

	if (!t->thread) {
		struct proc_stat st;

		/* The kernel attached it with its parent, before it was found among the children. */
		if (proc_stat_read(f->proc, thread, &st) < 0)
			st.process = thread;
		t = add_thread(f, thread, st.process, GONE);
		if (!t)
			return -E2BIG;
	}
	if (!WIFSTOPPED(status)) {
		set_state(f, t, GONE);
		return 0;
	}
	set_state(f, t, STOPPED);
	/* A stop without an event is the delivery of a signal, which let_go() then delivers. */
	t->signal = status >> 16 ? 0 : (uint8_t)WSTOPSIG(status);
	return 0;
}

/* In vfork(2), or a clone(2) like it: the kernel wakes it for nothing but the child's execve(2) or end, or a kill. */
static bool waits_for_child(const struct freeze *f, pid_t thread)
{
	char text[PROC_TEXT_MAX];
	struct proc_stat st;

	if (proc_stat_read(f->proc, thread, &st) < 0 || st.state != 'D' ||
		proc_read(f->proc, thread, "syscall", text, sizeof(text)) < 0)
		return false;
	long number = strtol(text, NULL, 10);
#ifdef SYS_vfork
	if (number == SYS_vfork)
		return true;
#endif
	return number == SYS_clone || number == SYS_clone3;
}

static void mark_inert(struct freeze *f)
{
	for (size_t i = 0; i < TABLE_SIZE && f->waiting; i++) {
		struct frozen *t = &f->table[i];

		if (t->thread && t->state == ASKED && waits_for_child(f, t->thread))
			set_state(f, t, INERT);
	}
}

/* A stop tells itself by SIGCHLD, which is blocked here. */
static void await_signal(void)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigtimedwait(&child, NULL, &pause); /* EAGAIN: look at what does not stop */
}

/* What has stopped by now. 1: something; 0: nothing; or -errno. */
static int collect_stops(struct freeze *f)
{
	int status, any = 0;
	pid_t thread;

	while ((thread = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
		int r = note_stop(f, thread, status);

		if (r < 0)
			return r;
		any = 1;
	}
	return any;
}

static pid_t first_waiting(const struct freeze *f)
{
	for (size_t i = 0; i < TABLE_SIZE; i++)
		if (f->table[i].thread && f->table[i].state == ASKED)
			return f->table[i].process;
	return 0;
}

static int await_stops(struct freeze *f)
{
	while (f->waiting) {
		int r = collect_stops(f);

		if (r < 0)
			return r;
		if (r > 0 || !f->waiting)
			continue;
		if (clock_now_ns() >= f->deadline_ns) {
			f->culprit = first_waiting(f);
			return -ETIMEDOUT;
		}
		await_signal();
		r = collect_stops(f);
		if (r < 0)
			return r;
		if (r == 0)
			mark_inert(f);
	}
	return 0;
}

/* --- all of them ------------------------------------------------------------------------------- */

/* Appends the children that are listed in @text to the queue. */
static int queue_children(struct freeze *f, const char *text, size_t *count)
{
	char *end;

	for (pid_t pid = (pid_t)strtol(text, &end, 10); end != text;
		text = end, pid = (pid_t)strtol(text, &end, 10)) {
		if (*count == THREADS_MAX)
			return -E2BIG;
		f->queue[(*count)++] = pid;
	}
	return 0;
}

struct look {
	struct freeze *f;
	pid_t process;
	bool is_init;
	size_t queued;
	int asked; /* threads that were found running */
};

static int look_at_thread(void *context, pid_t thread)
{
	struct look *l = context;
	char name[64], *text = NULL;

	if (!l->is_init) {
		int r = stop_thread(l->f, thread, l->process);

		if (r < 0)
			return r;
		l->asked += r;
	}
	(void)snprintf(name, sizeof(name), "task/%d/children", (int)thread);
	int r = proc_read_all(l->f->proc, l->process, name, &text);
	if (r == -ENOENT || r == -ESRCH)
		return 0; /* it has ended: its children are init's now, and are found there */
	if (r >= 0)
		r = queue_children(l->f, text, &l->queued);
	proc_text_free(text);
	return r;
}

/* Visit every descendant of init once. How many threads were found running, or -errno. */
static int look_at_all(struct freeze *f)
{
	struct look l = { .f = f, .queued = 1 };

	f->queue[0] = f->init;
	for (size_t i = 0; i < l.queued; i++) {
		l.process = f->queue[i];
		l.is_init = i == 0;
		int r = proc_each(f->proc, l.process, "task", look_at_thread, &l);

		if (r < 0 && r != -ENOENT && r != -ESRCH)
			return r;
	}
	return l.asked;
}

int freeze_all(struct freeze *f)
{
	f->culprit = 0;
	for (;;) {
		int asked = look_at_all(f);

		/* A monitor may be about to become the command, or a tracer about to let its process go: try again. */
		if ((asked == -EPERM || asked == -EBUSY) && clock_now_ns() < f->deadline_ns) {
			await_signal();
			asked = 1;
		}
		int r = asked < 0 ? asked : await_stops(f);
		if (r < 0 || asked == 0)
			return r;
	}
}

const struct frozen *freeze_next(const struct freeze *f, size_t *at)
{
	while (*at < TABLE_SIZE) {
		const struct frozen *t = &f->table[(*at)++];

		if (t->thread && !t->ours && t->state != GONE)
			return t;
	}
	return NULL;
}

static void let_go(struct freeze *f, struct frozen *t)
{
	/* ESRCH: it was killed meanwhile. */
	(void)ptrace(PTRACE_DETACH, t->thread, NULL, (void *)(long)t->signal);
	set_state(f, t, GONE);
}

int freeze_release(struct freeze *f)
{
	int64_t until = clock_now_ns() + RELEASE_NS;
	size_t left;

	for (;;) {
		left = 0;
		for (size_t i = 0; i < TABLE_SIZE; i++) {
			struct frozen *t = &f->table[i];

			if (t->thread && !t->ours && t->state == STOPPED)
				let_go(f, t);
			left += t->thread && (t->state == ASKED || t->state == INERT);
		}
		if (!left)
			return 0;
		if (clock_now_ns() >= until)
			return -ETIMEDOUT;
		/* A thread in vfork(2) stops as soon as its child, which runs again, has executed or ended. */
		await_signal();
		int r = collect_stops(f);
		if (r < 0)
			return r;
	}
}

/*
 * observer.c - see observer.h.
 *
 * Runs in: the observer. It answers one stop after the other; only the thread that stops waits for it. It follows carrel's own
 * processes inside, so that it sees what they start from its first instruction, but does not look at their calls.
 */
#include "host/explain/observer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parent.h"
#include "box/sys.h"
#include "host/explain/refusal.h"
#include "host/explain/tracee.h"
#include "host/process/confine_self.h"
#include "plan/embedded.h"

enum { FD_SOCKET, FD_PROC, FD_END };

/* SIGTRAP of a system call: PTRACE_O_TRACESYSGOOD. */
enum { CALL_STOP = SIGTRAP | 0x80, EVENT_STOP = 128 };

#define OPTIONS \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | \
		PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)

struct observer {
	struct refusals refusals;
	struct tracees *tracees;
	struct explain_board *board;
	pid_t init;
};

static int trace(int request, pid_t thread, void *address, uintptr_t data)
{
	/* In glibc the request is an enum, in musl an int. */
	return syscall(SYS_ptrace, request, thread, address, data) < 0 ? -errno : 0;
}

/* --- one thread -------------------------------------------------------------------------------- */

/* ESRCH: it was killed meanwhile; waitpid(2) reports that next. */
static void go_on(const struct tracee *t, int signal)
{
	(void)trace(t->own ? PTRACE_CONT : PTRACE_SYSCALL, t->thread, NULL, (uintptr_t)signal);
}

static void begin_child(struct tracee *t, bool own)
{
	t->known = true;
	t->own = own;
	go_on(t, 0);
}

/* A parent was killed before its event said whose child this is. Then it is a tool's: carrel's own processes are not killed. */
static void begin_all_unknown(struct observer *o)
{
	for (size_t i = 0; i < o->tracees->used; i++) {
		struct tracee *t = &o->tracees->all[i];

		if (t->thread && !t->known && t->inside)
			begin_child(t, false);
	}
}

/* @t has a new child, which stops by itself, before this event or after it. `inside` of an unknown thread: it has stopped. */
static void handle_child(struct observer *o, const struct tracee *t)
{
	unsigned long number = 0;

	if (trace(PTRACE_GETEVENTMSG, t->thread, NULL, (uintptr_t)&number) < 0)
		return;
	struct tracee *child = tracee_find(o->tracees, (pid_t)number);
	bool stopped = child != NULL;

	if (!child)
		child = tracee_add(o->tracees, (pid_t)number);
	if (!child)
		return; /* when it stops, it is released */
	if (stopped && child->known)
		return;
	child->own = t->own;
	child->monitor = t->own ? t->thread : t->monitor;
	child->known = true;
	child->inside = false;
	if (stopped)
		go_on(child, 0);
}

/* It has executed a program, which ended its other threads; the kernel does not report the end of each. */
static void handle_exec(struct observer *o, struct tracee *t)
{
	unsigned long former = 0;

	if (trace(PTRACE_GETEVENTMSG, t->thread, NULL, (uintptr_t)&former) == 0 &&
		(pid_t)former != t->thread)
		tracee_remove(o->tracees, (pid_t)former);
	t->own = false;
	t->inside = false;
	go_on(t, 0);
}

static void handle_call(struct observer *o, struct tracee *t)
{
	struct __ptrace_syscall_info info = { 0 };

	if (trace(PTRACE_GET_SYSCALL_INFO, t->thread, (void *)sizeof(info), (uintptr_t)&info) ==
		0) {
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
			t->inside = true;
			t->number = (int32_t)info.entry.nr;
			for (int i = 0; i < EXPLAIN_ARGUMENTS; i++)
				t->args[i] = info.entry.args[i];
		} else if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
			int64_t result = (int64_t)info.exit.rval;

			if (t->inside && result < 0 && result > -4096)
				refusal_note(&o->refusals, t, (int)-result);
			t->inside = false;
		}
	}
	go_on(t, 0);
}

static bool stops_group(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

static void handle_stop(struct observer *o, struct tracee *t, int status)
{
	int signal = WSTOPSIG(status), event = status >> 16;

	switch (event) {
	case 0:
		if (signal == CALL_STOP)
			handle_call(o, t);
		else
			go_on(t, signal); /* deliver the signal */
		return;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		handle_child(o, t);
		go_on(t, 0);
		return;
	case PTRACE_EVENT_EXEC:
		handle_exec(o, t);
		return;
	case EVENT_STOP:
		/* A thread that a signal stopped stays stopped until SIGCONT. */
		if (stops_group(signal))
			(void)trace(PTRACE_LISTEN, t->thread, NULL, 0);
		else
			go_on(t, 0);
		return;
	default:
		go_on(t, 0);
	}
}

/* --- all of them ------------------------------------------------------------------------------- */

static void handle(struct observer *o, pid_t thread, int status)
{
	struct tracee *t = tracee_find(o->tracees, thread);

	if (!WIFSTOPPED(status)) {
		tracee_remove(o->tracees, thread);
		if (WIFSIGNALED(status))
			begin_all_unknown(o);
		return;
	}
	if (!t) {
		t = tracee_add(o->tracees, thread);
		if (!t) {
			o->board->unwatched++;
			(void)trace(PTRACE_DETACH, thread, NULL, 0);
			return;
		}
		t->inside = true; /* it stands still until its parent's event is here */
		return;
	}
	if (t->known)
		handle_stop(o, t, status);
}

static _Noreturn void observe(struct observer *o)
{
	for (;;) {
		int status;
		pid_t thread = waitpid(-1, &status, __WALL);

		if (thread < 0 && errno == EINTR)
			continue;
		if (thread < 0 ||
			(thread == o->init && (WIFEXITED(status) || WIFSIGNALED(status)))) {
			o->board->finished = 1;
			_exit(0);
		}
		handle(o, thread, status);
	}
}

/* --- the beginning ------------------------------------------------------------------------------ */

/*
 * If the session has a user namespace of its own, the user who made that may trace in it. Otherwise the traced processes have
 * another uid, or capabilities until they give them up: see ptrace(2), access mode checking.
 */
static int keep_capabilities(const struct plan *plan)
{
	const bool own = (plan->clone_flags & CLONE_NEWUSER) && !plan->facts->privileged;

	/* /proc/PID/fd, which names the directory of an *at() call, is open only to the process's owner. If this fails, only
	 * that name is missing from the list. See: proc(5), setfsuid(2). */
	if (plan->facts->privileged)
		(void)syscall(SYS_setfsuid, plan->facts->kernel_uid);
	return confine_self_capabilities(own ? 0 : 1u << CAP_SYS_PTRACE);
}

static int keep_descriptors(int socket)
{
	int proc = fd_open_at(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY, 0);

	if (proc < 0)
		return proc;
	/* Move both out of the way first: one may lie where the other goes. */
	int up = fcntl(socket, F_DUPFD_CLOEXEC, FD_END);
	int proc_up = fcntl(proc, F_DUPFD_CLOEXEC, FD_END);
	if (up < 0 || proc_up < 0 || dup3(up, FD_SOCKET, O_CLOEXEC) < 0 ||
		dup3(proc_up, FD_PROC, O_CLOEXEC) < 0)
		return -errno;
	return sys_close_range(FD_END, ~0U);
}

static int confine(const struct plan *plan)
{
	int r = keep_capabilities(plan);

	if (r >= 0)
		r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
	return r < 0 ? r : confine_self_filter(EMBEDDED_OBSERVER_FILTER);
}

/* S sends the pid of init; the answer is 0 or an errno. */
static int begin(struct observer *o)
{
	int32_t init = 0;

	if (read(FD_SOCKET, &init, sizeof(init)) != (ssize_t)sizeof(init) || init <= 0)
		return -EPROTO;
	o->init = init;
	int r = trace(PTRACE_SEIZE, init, NULL, OPTIONS);
	struct tracee *t = r < 0 ? NULL : tracee_add(o->tracees, init);
	if (t)
		t->known = t->own = true;
	return r;
}

_Noreturn void observer_main(
	const struct plan *plan, struct explain_board *board, pid_t parent, int socket)
{
	struct observer o = { .board = board,
		.refusals = { .plan = plan, .board = board, .proc = FD_PROC } };
	int r = parent_die_with(parent, SIGKILL);

	if (r >= 0)
		r = keep_descriptors(socket);
	(void)prctl(PR_SET_NAME, "carrel-observer", 0, 0, 0);
	o.tracees = mmap(NULL, sizeof(*o.tracees), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (r < 0 || o.tracees == MAP_FAILED || confine(plan) < 0)
		_exit(1);
	r = begin(&o);
	const int32_t answer = -r;
	if (write(FD_SOCKET, &answer, sizeof(answer)) != (ssize_t)sizeof(answer) || r < 0)
		_exit(1);
	observe(&o);
}

/*
 * trace.c - see trace.h.
 *
 * Runs in: the torture driver. Everything that the launcher starts is attached from its first
 * instruction on (PTRACE_O_TRACE*), and dies with the driver (PTRACE_O_EXITKILL).
 */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "site.h"
#include "view.h"

#define SYSCALL_STOP (SIGTRAP | 0x80)
#define OPTIONS \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | \
		PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)

struct tracer {
	const struct trace_setup *setup;
	const struct trace_point *point;
	struct trace_result *result;
	bool counting; /* still on the way to the point, or there is none: calls are counted */
};

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail with a valid clock */
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void trace_result_reset(struct trace_result *result)
{
	char *view = result->view;

	/* Of the calls only the counts need be forgotten: this is done for every point. */
	for (unsigned i = 0; i < TRACE_PROCESSES; i++) {
		struct trace_process *p = &result->processes[i];

		p->pid = 0;
		p->count = p->children = p->met = 0;
		p->kind = KIND_HELPER;
		p->path[0] = '\0';
		p->alive = p->held = p->executed = p->failing = false;
		p->armed = p->due = false;
		p->begun = p->beyond = false;
		p->command = 0;
		p->status = 0;
	}
	result->process_count = result->survivors = result->commands = 0;
	result->reached = result->after_command = result->hung = result->overflow = false;
	result->command_started = result->command_ended = result->view_torn = false;
	result->command_status = result->launcher_status = -1;
	result->view = view;
	view[0] = '\0';
}

static struct trace_process *find(struct tracer *t, pid_t pid)
{
	for (unsigned i = 0; i < t->result->process_count; i++)
		if (t->result->processes[i].pid == pid && t->result->processes[i].alive)
			return &t->result->processes[i];
	return NULL;
}

static struct trace_process *add(struct tracer *t, pid_t pid)
{
	if (t->result->process_count == TRACE_PROCESSES) {
		t->result->overflow = true;
		return NULL;
	}
	struct trace_process *p = &t->result->processes[t->result->process_count++];
	p->pid = pid;
	p->alive = true;
	p->kind = KIND_HELPER;
	return p;
}

/* --- registers ------------------------------------------------------------------------------ */

#if defined(__x86_64__)
static int set_call(pid_t pid, long number)
{
	long r = ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.orig_rax), number);

	return r < 0 ? -errno : 0;
}

static int set_result(pid_t pid, long value)
{
	return ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.rax), value) < 0 ? -errno
											: 0;
}
#elif defined(__aarch64__)
enum { NT_PRSTATUS_SET = 1, NT_ARM_SYSTEM_CALL_SET = 0x404 };

static int set_call(pid_t pid, long number)
{
	int value = (int)number;
	struct iovec io = { &value, sizeof(value) };

	return ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL_SET, &io) < 0 ? -errno : 0;
}

static int set_result(pid_t pid, long value)
{
	struct user_regs_struct regs;
	struct iovec io = { &regs, sizeof(regs) };

	if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS_SET, &io) < 0)
		return -errno;
	regs.regs[0] = (unsigned long long)value;
	return ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS_SET, &io) < 0 ? -errno : 0;
}
#else
#error "the torture driver does not know this machine's registers"
#endif

/* --- stops ---------------------------------------------------------------------------------- */

/* Where a point is sought the calls of its process alone count: each stop costs several microseconds. */
static bool is_counted(const struct tracer *t, const struct trace_process *p)
{
	return t->counting && (!t->point->path[0] || !strcmp(p->path, t->point->path)) &&
		!p->executed && !p->beyond;
}

/* The process of the point, which has begun: it runs until it stands at the point's site. */
static void arm(const struct tracer *t, struct trace_process *p)
{
	if (t->point->site && p->begun && !p->armed && is_counted(t, p))
		p->armed = site_arm(p->pid, t->point->site) >= 0;
}

static void go_on(struct tracer *t, struct trace_process *p, int signal)
{
	arm(t, p);
	bool each_call = (is_counted(t, p) && !t->point->site) || p->due || p->failing;

	/* ESRCH: it was killed meanwhile, and its end is about to be read. */
	(void)ptrace(each_call ? PTRACE_SYSCALL : PTRACE_CONT, p->pid, NULL, (long)signal);
}

static bool is_point(struct tracer *t, const struct trace_process *p, unsigned index)
{
	return t->counting && t->point->path[0] && index == t->point->index &&
		!strcmp(p->path, t->point->path);
}

/* It stands in front of the instruction that makes the point's call. */
static void at_site(struct tracer *t, struct trace_process *p)
{
	if (p->met++ < t->point->before)
		return;
	site_disarm(p->pid);
	p->due = true;
	p->count = t->point->index;
}

/* A command that @p started has ended. */
static bool has_ended_command(const struct tracer *t, const struct trace_process *p)
{
	size_t length = strlen(p->path);

	for (unsigned i = 0; i < t->result->process_count; i++) {
		const struct trace_process *q = &t->result->processes[i];

		if (q->executed && !q->alive && !strncmp(q->path, p->path, length) &&
			q->path[length] == '.')
			return true;
	}
	return false;
}

/* Returns false where the process has been killed and must not be resumed. */
static bool at_entry(struct tracer *t, struct trace_process *p, unsigned number,
	uint64_t argument, uint64_t site)
{
	unsigned index = p->count;

	if (!p->begun || p->executed || p->beyond)
		return true;
	/* channel_await(), which receives into nothing: init asks as often as it has time for, and no failure of it matters. */
	if (number == SYS_recvfrom && argument == 0)
		return true;
	p->due = false;
	if (index < TRACE_CALLS) {
		p->sites[p->count] = site;
		p->calls[p->count++] = (uint16_t)number;
	} else
		t->result->overflow = true;
	if (number == SYS_seccomp && p->kind == KIND_HELPER)
		p->kind = KIND_READER;
	if (number == SYS_unshare && p->kind == KIND_MONITOR)
		p->kind = KIND_INIT;
	if (!is_point(t, p, index))
		return true;
	t->counting = false;
	t->result->reached = true;
	t->result->argument = argument;
	t->result->after_command = has_ended_command(t, p);
	if (!t->point->error) {
		(void)kill(p->pid, SIGKILL);
		return false;
	}
	/* Linux closes in any case, whatever close(2) returns. */
	if (number == SYS_close) {
		p->failing = true;
		return true;
	}
	/*
	 * The call is replaced by one that does nothing. Not by -1, which a filter may take for a
	 * foreign ABI and kill the process.
	 */
	p->failing = set_call(p->pid, SYS_getppid) >= 0;
	return true;
}

static bool at_call(struct tracer *t, struct trace_process *p)
{
	struct __ptrace_syscall_info info = { 0 };

	if (ptrace(PTRACE_GET_SYSCALL_INFO, p->pid, sizeof(info), &info) < 0)
		return true;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
		return at_entry(t, p, (unsigned)info.entry.nr, info.entry.args[1],
			site_of(info.instruction_pointer));
	if (info.op == PTRACE_SYSCALL_INFO_EXIT && p->failing) {
		(void)set_result(p->pid, -t->point->error);
		p->failing = false;
	}
	return true;
}

static enum trace_kind kind_of(
	const struct tracer *t, const struct trace_process *parent, pid_t child)
{
	if (view_is_pid1(child))
		return KIND_INIT;
	if (!t->setup->live)
		return parent->kind == KIND_INIT ? KIND_PAYLOAD : KIND_HELPER;
	switch (parent->kind) {
	case KIND_LAUNCHER:
		return KIND_CLIENT;
	case KIND_CLIENT:
		return KIND_SUPERVISOR;
	case KIND_INIT:
		return KIND_MONITOR;
	case KIND_MONITOR:
		return KIND_PAYLOAD;
	case KIND_HELPER:
	case KIND_READER:
	case KIND_PAYLOAD:
	case KIND_SUPERVISOR:
	case KIND_COUNT:
		break;
	}
	return KIND_HELPER;
}

static void at_birth(struct tracer *t, struct trace_process *parent)
{
	unsigned long pid = 0;

	if (ptrace(PTRACE_GETEVENTMSG, parent->pid, NULL, &pid) < 0)
		return;
	struct trace_process *child = find(t, (pid_t)pid);
	if (!child)
		child = add(t, (pid_t)pid);
	if (!child)
		return;
	(void)snprintf(
		child->path, sizeof(child->path), "%.12s.%u", parent->path, ++parent->children);
	child->beyond = parent->executed || parent->beyond;
	child->kind = kind_of(t, parent, child->pid);
	child->begun = child->kind != KIND_CLIENT;
	if (child->held) {
		child->held = false;
		go_on(t, child, 0);
	}
}

static void at_exec(struct tracer *t, struct trace_process *p)
{
	size_t used = strlen(t->result->view);

	p->begun = p->kind != KIND_LAUNCHER || !t->setup->live;
	if (p->kind == KIND_LAUNCHER || p->kind == KIND_CLIENT || p->executed || p->beyond)
		return;
	p->executed = true;
	p->kind = KIND_PAYLOAD;
	p->command = ++t->result->commands;
	t->result->command_started = true;
	view_take(p->pid, t->result->view + used, TRACE_VIEW - used);
	t->result->view_torn = !view_is_stopped(p->pid);
}

static void at_stop(struct tracer *t, pid_t pid, int status)
{
	struct trace_process *p = find(t, pid);
	int signal = WSTOPSIG(status), event = status >> 16, deliver = 0;

	if (!p) {
		/* Born, but its parent has not said so yet: it waits for its name. */
		p = add(t, pid);
		if (p)
			p->held = true;
		return;
	}
	if (!p->path[0])
		return;
	if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
		event == PTRACE_EVENT_CLONE)
		at_birth(t, p);
	else if (event == PTRACE_EVENT_EXEC)
		at_exec(t, p);
	else if (signal == SYSCALL_STOP && !at_call(t, p))
		return;
	else if (!event && signal == SIGTRAP && p->armed && site_is_at(pid, t->point->site))
		at_site(t, p);
	else if (!event && signal != SYSCALL_STOP)
		deliver = signal;
	go_on(t, p, deliver);
}

static void at_end(struct tracer *t, pid_t pid, int status)
{
	struct trace_process *p = find(t, pid);

	if (!p)
		return;
	p->alive = false;
	p->status = status;
	if (p->kind == KIND_LAUNCHER)
		t->result->launcher_status = status;
	if (p->executed) {
		t->result->command_ended = true;
		t->result->command_status = status;
	}
}

/* --- one run -------------------------------------------------------------------------------- */

static _Noreturn void become(const struct trace_setup *setup)
{
	const struct rlimit no_core = { 0, 0 };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t none;

	for (int i = 0; i < 3; i++)
		if (dup2(setup->stdio[i], i) < 0)
			_exit(120);
	/* As a shell without job control starts what it puts in the background; the command must not
	 * inherit it. */
	(void)sigaction(SIGINT, &ignore, NULL);
	(void)sigaction(SIGQUIT, &ignore, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* A start that is made to fail may crash, and that is one way to run nothing. */
	(void)setrlimit(RLIMIT_CORE, &no_core);
	if (chdir(setup->cwd) < 0 || raise(SIGSTOP) != 0)
		_exit(121);
	(void)execve(setup->argv[0], (char *const *)setup->argv, (char *const *)setup->envp);
	_exit(122);
}

static int start(struct tracer *t)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		become(t->setup);
	if (pid < 0)
		return -errno;
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		return -ECHILD;
	if (ptrace(PTRACE_SEIZE, pid, NULL, (long)OPTIONS) < 0) {
		int r = -errno;

		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
		return r;
	}
	struct trace_process *p = add(t, pid);
	if (!p)
		return -ENOMEM;
	p->kind = KIND_LAUNCHER;
	(void)snprintf(p->path, sizeof(p->path), "0");
	(void)kill(pid, SIGCONT);
	return 0;
}

static unsigned alive(const struct tracer *t)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t->result->process_count; i++)
		n += t->result->processes[i].alive;
	return n;
}

static void kill_rest(struct tracer *t)
{
	for (unsigned i = 0; i < t->result->process_count; i++)
		if (t->result->processes[i].alive)
			(void)kill(t->result->processes[i].pid, SIGKILL);
}

static void note_survivors(struct tracer *t)
{
	t->result->survivors = alive(t);
	for (unsigned i = 0; i < t->result->process_count; i++)
		if (t->result->processes[i].alive)
			(void)snprintf(t->result->survivor, TRACE_PATH, "%s",
				t->result->processes[i].path);
}

/* Too late: in the launcher's time the run hangs, after its end the others have outlived it. */
static void time_is_up(struct tracer *t, bool launcher_ended)
{
	if (launcher_ended)
		note_survivors(t);
	else
		t->result->hung = true;
	kill_rest(t);
}

static void await_event(int children, int64_t deadline_ms)
{
	struct pollfd event = { .fd = children, .events = POLLIN };
	struct signalfd_siginfo room;
	int64_t left = deadline_ms - now_ms();

	if (poll(&event, 1, left > 0 ? (int)left : 0) > 0) {
		ssize_t n = read(children, &room, sizeof(room));

		(void)n; /* it only woke us up */
	}
}

static void follow(struct tracer *t, int children)
{
	int64_t deadline = now_ms() + t->setup->time_limit_ms;
	bool launcher_ended = false, killed = false;

	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, __WALL | WNOHANG);

		if (pid < 0)
			return;
		if (pid == 0) {
			if (!killed && now_ms() >= deadline) {
				time_is_up(t, launcher_ended);
				killed = true;
			}
			await_event(children, killed ? now_ms() + 100 : deadline);
			continue;
		}
		if (WIFSTOPPED(status)) {
			at_stop(t, pid, status);
			continue;
		}
		at_end(t, pid, status);
		if (pid == t->result->processes[0].pid && !killed) {
			launcher_ended = true;
			deadline = now_ms() + t->setup->grace_ms;
		}
	}
}

int trace_run(const struct trace_setup *setup, const struct trace_point *point, int children,
	struct trace_result *ret)
{
	struct tracer t = { .setup = setup, .point = point, .result = ret, .counting = true };

	trace_result_reset(ret);
	int r = start(&t);
	if (r < 0)
		return r;
	follow(&t, children);
	return 0;
}

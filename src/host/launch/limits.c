/*
 * limits.c - see limits.h.
 *
 * Runs in: the launcher and the supervisor, outside.
 */
#include "host/launch/limits.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/cgroup/cgroup_place.h"

/*
 * EXECUTION_WAIT_MS: the supervisor serves nobody meanwhile. A process that was killed may take longer to end, and a
 * tool that traces it can stop it on its way out for as long as it likes (ptrace(2), PTRACE_EVENT_EXIT).
 *
 * AGAIN_NS: how soon it tries again to remove the group of such an execution.
 *
 * MEMORY_SPARE_BYTES: the memory that all executions of a live session may use together, beyond
 * the limit of a single one. A file in /dev/shm outlives the process that wrote it: if such files
 * could fill the limit, not even `rm` could start.
 */
enum { EXECUTION_WAIT_MS = 50, AGAIN_NS = 200000000, MEMORY_SPARE_BYTES = 4 << 20 };

bool limits_requested(const struct policy *policy)
{
	struct cgroup_limits ignored;

	return cgroup_limits_of(policy, &ignored);
}

void limits_init(struct limits *ret)
{
	*ret = (struct limits){ .session = CGROUP_SESSION_NONE,
		.executions = CGROUP_SESSION_NONE,
		.execution = CGROUP_NONE };
	cgroup_read(&ret->execution, &ret->figures);
}

/*
 * Of the three limits only pids can be held without a cgroup: the session has its own user
 * namespace, and the kernel counts the tasks of each uid in each user namespace (getrlimit(2),
 * RLIMIT_NPROC). It exempts only the host's root. Init proves that it is not exempt
 * (confine_tasks()), or the session ends before the command starts.
 */
static int begin_session(struct limits *l, const struct plan *plan, int session_dir,
	unsigned need, struct error *e)
{
	const char *name = plan->facts->session_name;
	struct error first = { 0 };

	l->session = CGROUP_SESSION_NONE;
	/* An execution may have a limit that its session does not have. */
	unsigned want = l->live ? CGROUP_ALL : 0;
	int r = cgroup_session_begin(&l->session, name, session_dir, need, want, &first);
	if (r >= 0)
		return 0;
	/* Without a user namespace the kernel would count the caller's other processes with the
	 * session's. */
	if (!(need & CGROUP_PIDS) || !plan->clone_flags) {
		if (e && e->code == ERROR_NONE)
			*e = first;
		return r;
	}
	l->tasks_by_rlimit = true;
	need &= ~(unsigned)CGROUP_PIDS;
	return need ? cgroup_session_begin(&l->session, name, session_dir, need, want, e) : 0;
}

/* A session without limits still gets a group where it can have one, for executions that have
 * limits. */
static void begin_unlimited(struct limits *l, const struct plan *plan, int session_dir)
{
	struct error ignored = { 0 };
	/* An execution with a limit is refused, and the refusal says that there is no group. */
	(void)!cgroup_session_begin(
		&l->session, plan->facts->session_name, session_dir, 0, CGROUP_ALL, &ignored);
}

int limits_check(const struct plan *plan, struct error *e)
{
	struct cgroup_limits wanted;
	unsigned need = cgroup_limits_of(plan->policy, &wanted) ? cgroup_needs(&wanted) : 0;

	/* pids need no group where begin_session() accepts the rlimit. */
	return cgroup_check(plan->clone_flags ? need & ~(unsigned)CGROUP_PIDS : need, e);
}

/* Init has a group beside those of the executions. Where their memory is full, the kernel kills
 * the largest process, and the group of its execution dies with it (memory.oom.group, cgroup-v2). */
static int make_live_groups(struct limits *l, struct error *e)
{
	struct cgroup_limits of_session = l->wanted, of_executions = { 0 };
	int r = cgroup_make(&l->session, "init", NULL, &l->execution, e);

	of_session.memory_bytes = 0;
	if (r >= 0)
		r = cgroup_limit(&l->session.group, &of_session, e);
	if (r < 0 || !l->wanted.memory_bytes)
		return r;
	if (__builtin_add_overflow(l->wanted.memory_bytes, (uint64_t)MEMORY_SPARE_BYTES,
		    &of_executions.memory_bytes))
		of_executions.memory_bytes = UINT64_MAX;
	l->executions.controllers = l->session.controllers;
	memcpy(l->executions.path, l->session.path, sizeof(l->executions.path));
	return cgroup_make(&l->session, "executions", &of_executions, &l->executions.group, e);
}

static int make_groups(struct limits *l, bool live, struct error *e)
{
	int r;

	if (live)
		return make_live_groups(l, e);
	if (l->wanted.tasks && l->wanted.tasks < UINT64_MAX)
		l->wanted.tasks++; /* init is counted with the others */
	/* The limit is set in two groups: kernels differ in which of the full groups they note the
	 * event for. The lower one comes first: a group with a limit still takes memory itself. */
	r = cgroup_make(&l->session, "exec-1", &l->wanted, &l->execution, e);
	return r < 0 ? r : cgroup_limit(&l->session.group, &l->wanted, e);
}

int limits_begin(struct limits *ret, const struct plan *plan, int session_dir, bool live,
	struct error *e)
{
	ret->live = live;
	ret->requested = cgroup_limits_of(plan->policy, &ret->wanted);
	if (!ret->requested) {
		if (live)
			begin_unlimited(ret, plan, session_dir);
		return 0;
	}
	int r = begin_session(ret, plan, session_dir, cgroup_needs(&ret->wanted), e);
	if (r < 0 || ret->session.group.dir < 0)
		return r;
	if (ret->tasks_by_rlimit)
		ret->wanted.tasks = 0;
	return make_groups(ret, live, e);
}

/* Where the executions' groups lie. */
static struct cgroup_session *above_executions(struct limits *l)
{
	return l->executions.group.dir >= 0 ? &l->executions : &l->session;
}

bool limits_execution_needs(const struct limits *limits, const struct cgroup_limits *requested)
{
	return limits->session.group.dir >= 0 &&
		(cgroup_needs(requested) || cgroup_needs(&limits->wanted));
}

int limits_execution(struct limits *limits, const char *name,
	const struct cgroup_limits *requested, struct cgroup *ret, struct error *e)
{
	struct cgroup_limits own = *requested;

	*ret = CGROUP_NONE;
	if (limits->session.group.dir < 0) {
		if (!cgroup_needs(&own))
			return 0;
		int r = error_set(e, ERROR_UNAVAILABLE, "session", ERROR_OWN(ENOTSUP), NULL,
			"the session has no cgroup: memory, pids and cpus of one execution "
			"cannot be limited");
		error_hint(e,
			"a limit of the session itself says what is missing: "
			"carrel session start --memory SIZE");
		return r;
	}
	if (!limits_execution_needs(limits, requested))
		return 0;
	own.memory_bytes = own.memory_bytes ? own.memory_bytes : limits->wanted.memory_bytes;
	own.tasks = own.tasks ? own.tasks : limits->wanted.tasks;
	own.cpu_milli = own.cpu_milli ? own.cpu_milli : limits->wanted.cpu_milli;
	if (own.tasks && own.tasks < UINT64_MAX)
		own.tasks++; /* the monitor is counted with the others */
	return cgroup_make(above_executions(limits), name, &own, ret, e);
}

/* A group in which pids are not limited says "max". */
static bool counts_tasks(const struct cgroup *group)
{
	char text[32];
	ssize_t n = group->dir < 0
		? -1
		: cgroup_read_file(group->dir, "pids.max", text, sizeof(text));

	return n > 0 && text[0] != 'm';
}

bool limits_execution_read(
	const struct limits *limits, const struct cgroup *group, struct limits_usage *ret)
{
	cgroup_read(group, &ret->figures);
	ret->pids_by = counts_tasks(group) ? LIMITS_PIDS_CGROUP
		: limits->tasks_by_rlimit  ? LIMITS_PIDS_RLIMIT
					   : LIMITS_PIDS_NONE;
	return group->dir >= 0 || limits->tasks_by_rlimit;
}

/* Remove @group if its last process ends within @wait_ms. -ETIMEDOUT: it does not. */
static int remove_execution(struct limits *limits, struct cgroup *group, int wait_ms)
{
	int r = cgroup_wait_empty(group, wait_ms);

	return r < 0 ? r : cgroup_remove(above_executions(limits)->group.dir, group);
}

void limits_execution_end(struct limits *limits, struct cgroup *group)
{
	if (group->dir < 0)
		return;
	int r = cgroup_kill(group);
	if (r >= 0)
		r = remove_execution(limits, group, EXECUTION_WAIT_MS);
	if (r == -ETIMEDOUT && limits->ending_count < LIMITS_ENDING_MAX) {
		limits->ending[limits->ending_count++] = *group;
		if (!limits->again_ns)
			limits->again_ns = clock_now_ns() + AGAIN_NS;
		*group = CGROUP_NONE;
	}
	/* What is in no list, or failed otherwise: the end of the session tries again, and reports a failure. */
	fd_close(&group->dir);
}

void limits_try_again(struct limits *limits, int64_t now_ns)
{
	unsigned left = 0;

	if (!limits->again_ns || now_ns < limits->again_ns)
		return;
	for (unsigned i = 0; i < limits->ending_count; i++) {
		struct cgroup *group = &limits->ending[i];

		if (remove_execution(limits, group, 0) == -ETIMEDOUT)
			limits->ending[left++] = *group;
		else
			fd_close(&group->dir);
	}
	limits->ending_count = left;
	limits->again_ns = left ? now_ns + AGAIN_NS : 0;
}

void limits_fill_launch(const struct limits *limits, struct launch *l)
{
	/* In a live session the monitor of an execution is in its group. */
	l->dies_as_one = (limits->session.controllers & CGROUP_MEMORY) != 0;
	l->tasks_by_rlimit = limits->tasks_by_rlimit;
}

int limits_enter(struct limits *limits, pid_t init, struct error *e)
{
	int r = cgroup_enter(&limits->execution, init);

	/* Init has ended already; its record on the channel says why. */
	return r >= 0 || r == -ESRCH
		? 0
		: error_set(e, ERROR_UNAVAILABLE, "launch", -r, limits->session.path,
			  "the session cannot be moved into its cgroup");
}

static bool has_failed(const struct outcome *o)
{
	return o->ended && (!WIFEXITED(o->wait_status) || WEXITSTATUS(o->wait_status) != 0);
}

/* The kernel killed the group, init with it. */
static void settle_lost(struct outcome *o, bool ours, struct error *e)
{
	e->code = ERROR_NONE;
	if (o->started == STARTED_YES) {
		o->ended = true;
		o->wait_status = SIGKILL;
		o->wall_known = true;
		return;
	}
	(void)error_set(e, ERROR_LIMIT, "launch", ERROR_OWN(ENOMEM), NULL,
		"%s %s the command started",
		ours ? "the memory limit was reached" : "the machine ran out of memory",
		o->started == STARTED_NO ? "before" : "as");

	if (ours)
		error_hint(e,
			"the session itself needs some hundred KiB, a shell a few MiB: give "
			"more with --memory");
}

void limits_settle(struct limits *limits, struct outcome *o, struct error *e)
{
	struct cgroup_figures session;

	if (!limits->requested)
		return;
	cgroup_read(&limits->session.group, &session);
	limits->figures = session;
	if (limits->live)
		return;
	cgroup_read(&limits->execution, &limits->figures);
	const struct cgroup_figures *f = &limits->figures;
	/* If none of our groups was full, the kernel killed for somebody else's limit, or for the
	 * machine's memory. */
	bool ours = f->oom_events > 0 || session.oom_events > 0;
	if (f->oom_kills > 0 && !o->ended && e->code == ERROR_PROTOCOL)
		settle_lost(o, ours, e);
	limits->memory_ended = f->oom_kills > 0 && ours && (has_failed(o) || !o->ended);
	limits->tasks_ended = has_failed(o) && !limits->memory_ended &&
		(f->tasks_refused > 0 || session.tasks_refused > 0 || o->tasks_full);
}

int limits_signal(int wait_status, bool cpu_time, bool file_size)
{
	int signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status)
					      : WEXITSTATUS(wait_status) - 128;

	return (signal == SIGXCPU && cpu_time) || (signal == SIGXFSZ && file_size) ? signal : 0;
}

int limits_end(struct limits *limits, struct error *e)
{
	for (unsigned i = 0; i < limits->ending_count; i++)
		fd_close(&limits->ending[i].dir);
	limits->ending_count = 0;
	/*
	 * The session's group can be removed only when these two are gone: its own removal reports
	 * their failure.
	 */
	(void)!cgroup_remove(limits->session.group.dir, &limits->executions.group);
	(void)!cgroup_remove(limits->session.group.dir, &limits->execution);
	return cgroup_session_end(&limits->session, e);
}

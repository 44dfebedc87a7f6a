/*
 * limits.h - what one execution may use, and what it used: the groups and rlimits of a `run`.
 *
 * Runs in: the launcher and the supervisor, outside. Without a limit these functions do nothing.
 */
#pragma once

#include "base/error.h"
#include "host/cgroup/cgroup.h"
#include "host/launch/launch.h"
#include "host/launch/supervise.h"
#include "plan/plan.h"

/* As many groups of ended executions are tried again while the session lives; others when it ends. */
enum { LIMITS_ENDING_MAX = 32 };

struct limits {
	bool requested;              /* memory, pids or cpus is in the policy */
	struct cgroup_limits wanted; /* of the session */
	bool tasks_by_rlimit;        /* RLIMIT_NPROC holds pids, because no cgroup can */
	struct cgroup_session session;
	/*
	 * Live, with memory limited: a group below the session's that holds that limit, and the
	 * executions' groups. Init is not in it: where files in memory fill it, the kernel would
	 * kill init in the end. Else none.
	 */
	struct cgroup_session executions;
	struct cgroup
		execution; /* init and the command are in it; live: init and what it starts */
	bool live;         /* many executions */
	/* Of ended executions, with a process that was killed and has not ended yet. */
	struct cgroup ending[LIMITS_ENDING_MAX];
	unsigned ending_count;
	int64_t again_ns; /* when limits_try_again() is due; 0: nothing is left to try */
	struct cgroup_figures figures;
	bool memory_ended, tasks_ended; /* which limit ended the command */
};

/* What an execution of a live session used: the body of its ENDED, docs/control-protocol.md. */
struct limits_usage {
	struct cgroup_figures figures; /* tasks_peak counts the monitor too */
	int64_t pids_by;               /* enum limits_pids_by */
};

enum limits_pids_by { LIMITS_PIDS_NONE, LIMITS_PIDS_CGROUP, LIMITS_PIDS_RLIMIT };

/* limits_requested - whether any limit is in the policy. */
bool limits_requested(const struct policy *policy);

/*
 * limits_check - whether limits_begin() will be able to hold what the plan asks for, as far as can
 * be said without making anything. 0 or -errno with @e (ERROR_UNAVAILABLE), as limits_begin().
 */
MUST_CHECK int limits_check(const struct plan *plan, struct error *e);

/* limits_init - no limit is asked for, and there is no group. */
void limits_init(struct limits *ret);

/*
 * limits_begin - make the groups, before launch_init(). @session_dir: the session's record, made
 * and locked: it holds the note by which a sweep finds the groups. @live: a session of many
 * executions, which all share its limits, and of which one may die without the others.
 * Returns 0, or -errno with @e (ERROR_UNAVAILABLE): a limit was asked for and cannot be held. There
 * is no weaker form of that.
 */
MUST_CHECK int limits_begin(struct limits *ret, const struct plan *plan, int session_dir,
	bool live, struct error *e);

/*
 * limits_execution - make a group for an execution of a live session, with the limits that it asks
 * for, or else those of the session. @ret: CGROUP_NONE where neither asks for anything. 0 or -errno
 * with @e (ERROR_UNAVAILABLE).
 */
MUST_CHECK int limits_execution(struct limits *limits, const char *name,
	const struct cgroup_limits *requested, struct cgroup *ret, struct error *e);

/* limits_execution_needs - whether limits_execution() would make a group. */
bool limits_execution_needs(const struct limits *limits, const struct cgroup_limits *requested);

/*
 * limits_execution_read - read what an execution used, whose group is @group (or CGROUP_NONE), and
 * whether its cgroup or RLIMIT_NPROC holds its pids. False where none of the three limits is in
 * force for it.
 */
bool limits_execution_read(
	const struct limits *limits, const struct cgroup *group, struct limits_usage *ret);

/*
 * limits_execution_end - kill what is left in the group of an execution, wait for it
 * (EXECUTION_WAIT_MS at most), and remove the group. Where something does not end so soon, limits_try_again() and the
 * end of the session try again; the latter reports a failure.
 */
void limits_execution_end(struct limits *limits, struct cgroup *group);

/*
 * limits_try_again - if again_ns has come at @now_ns (CLOCK_MONOTONIC), remove the groups of ended executions that are
 * empty by now, without waiting.
 */
void limits_try_again(struct limits *limits, int64_t now_ns);

/* limits_fill_launch - set in @l what init must know about the limits; before launch_init(). */
void limits_fill_launch(const struct limits *limits, struct launch *l);

/*
 * limits_enter - move init into its group, before launch_session(): it has no child then. 0 or
 * -errno with @e.
 */
MUST_CHECK int limits_enter(struct limits *limits, pid_t init, struct error *e);

/*
 * limits_settle - when everything is dead: read the figures. Where the kernel killed the command
 * together with init, which would have reported it, say in @o and @e what became of the command.
 */
void limits_settle(struct limits *limits, struct outcome *o, struct error *e);

/*
 * limits_signal - whether the command was ended by one of the two limits that the kernel holds by a
 * signal: SIGXCPU or SIGXFSZ, or 0. @cpu_time, @file_size: which of them it had. Where a shell or
 * make was the command and the signal ended a child of it, only its status says so, 128 + signal,
 * which counts as well.
 */
int limits_signal(int wait_status, bool cpu_time, bool file_size);

/* limits_end - remove the groups. 0 or -errno with @e (ERROR_TEARDOWN). */
MUST_CHECK int limits_end(struct limits *limits, struct error *e);

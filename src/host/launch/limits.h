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

struct limits {
	bool requested;              /* memory, pids or cpus is in the policy */
	struct cgroup_limits wanted; /* of the session */
	bool tasks_by_rlimit;        /* RLIMIT_NPROC holds pids, because no cgroup can */
	struct cgroup_session session;
	/* Live, with memory limited: below the session's group, holds that limit, and the executions' groups;
	 * not init, whom the kernel would kill at last where files in memory fill it. Else none. */
	struct cgroup_session executions;
	struct cgroup
		execution; /* init and the command are in it; live: init and what it starts */
	bool live;         /* many executions */
	struct cgroup_figures figures;
	bool memory_ended, tasks_ended; /* which limit ended the command */
};

/* What an execution of a live session used: the body of its ENDED, docs/control-protocol.md. */
struct limits_usage {
	struct cgroup_figures figures; /* tasks_peak with the monitor */
	int64_t pids_by;               /* enum limits_pids_by */
};

enum limits_pids_by { LIMITS_PIDS_NONE, LIMITS_PIDS_CGROUP, LIMITS_PIDS_RLIMIT };

/* limits_requested - whether any of them is in the policy. */
bool limits_requested(const struct policy *policy);

/*
 * limits_check - whether limits_begin() will be able to hold what the plan asks for, as far as can be said
 * without making anything. 0 or -errno with @e (ERROR_UNAVAILABLE), as there.
 */
MUST_CHECK int limits_check(const struct plan *plan, struct error *e);

/* limits_init - nothing is asked for. */
void limits_init(struct limits *ret);

/*
 * limits_begin - make the groups, before launch_init(). @session_dir: made and locked. @live: a session
 * of many executions, which all share its limits, and of which one may die without the others.
 * Returns 0, or -errno with @e (ERROR_UNAVAILABLE): a limit that was asked for and cannot be held. There is no
 * weaker form of that.
 */
MUST_CHECK int limits_begin(struct limits *ret, const struct plan *plan, int session_dir,
	bool live, struct error *e);

/*
 * limits_execution - a group for an execution of a live session, with what it asks for, or else what the
 * session has. @ret: CGROUP_NONE where neither asks for anything. 0 or -errno with @e (ERROR_UNAVAILABLE).
 */
MUST_CHECK int limits_execution(struct limits *limits, const char *name,
	const struct cgroup_limits *requested, struct cgroup *ret, struct error *e);

/* limits_execution_needs - whether limits_execution() would make a group. */
bool limits_execution_needs(const struct limits *limits, const struct cgroup_limits *requested);

/*
 * limits_execution_read - what an execution used whose group is @group (or CGROUP_NONE), and who holds
 * its pids. False where none of the three limits is in force for it.
 */
bool limits_execution_read(
	const struct limits *limits, const struct cgroup *group, struct limits_usage *ret);

/*
 * limits_execution_end - remove the group of an execution, whose processes are dead or dying. What cannot
 * die at once stays for the end of the session, which tries again and tells: this does not wait for it.
 */
void limits_execution_end(struct limits *limits, struct cgroup *group);

/* limits_fill_launch - set what init must know about them in @l; before launch_init(). */
void limits_fill_launch(const struct limits *limits, struct launch *l);

/* limits_enter - put init in, before launch_session(): it has no child then. 0 or -errno with @e. */
MUST_CHECK int limits_enter(struct limits *limits, pid_t init, struct error *e);

/*
 * limits_settle - everything is dead: read the figures, and say in @o and @e what became of a command
 * that the kernel killed together with init, who would have said it.
 */
void limits_settle(struct limits *limits, struct outcome *o, struct error *e);

/*
 * limits_signal - of the two limits that the kernel holds by a signal: SIGXCPU or SIGXFSZ where that ended the
 * command, 0 otherwise. @cpu_time, @file_size: which of them it had. Where a shell or make was the command and
 * the signal ended what it ran, its status says so, 128 + signal; no other word of that process gets out.
 */
int limits_signal(int wait_status, bool cpu_time, bool file_size);

/* limits_end - remove the groups. 0 or -errno with @e (ERROR_TEARDOWN). */
MUST_CHECK int limits_end(struct limits *limits, struct error *e);

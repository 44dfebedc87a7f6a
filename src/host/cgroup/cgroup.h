/*
 * cgroup.h - groups of processes that the kernel counts, limits and kills as one: cgroup v2.
 *
 * Runs in: the launcher and the supervisor, outside. Everything after cgroup_session_begin() works
 * under the supervisor's filter, through directories that are held open. May not: be called where
 * nobody asked for a group: a `run` without limits makes no system call for any of this.
 *
 * The layout, for `run` and for live sessions alike:
 *
 *     PLACE/                 a group that was delegated to us; the launcher itself is not limited
 *       carrel-<id>/         the session: the session's limits; no process of its own
 *         exec-1/            a `run`: init and the command, killed as one
 *         init/              a live session: init and what it starts
 *         executions/        where its memory is limited: that limit
 *           exec-N/
 *         exec-N/            else, where an execution has limits of its own
 *       carrel.callers/      where PLACE had processes: these, since a group that hands out
 *                            memory may have none itself (cgroups(7), "no internal processes")
 *
 * Order of use:
 *
 *     cgroup_session_begin    before anything runs
 *     cgroup_make, cgroup_enter   for each execution, before its command can start
 *     cgroup_kill, cgroup_wait_empty, cgroup_read, cgroup_remove   at its end
 *     cgroup_session_end      at the end of the session
 *
 * See: cgroups(7), Documentation/admin-guide/cgroup-v2.rst. docs/limits.md says what is counted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "plan/policy.h"

enum cgroup_controller { CGROUP_MEMORY = 1, CGROUP_PIDS = 2, CGROUP_CPU = 4 }; /* bits */

#define CGROUP_ALL ((unsigned)(CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU))
#define CGROUP_PATH_MAX 768 /* bytes of a group's path, NUL included */
#define CGROUP_NAME_MAX 64
#define CGROUP_CALLERS "carrel.callers"
#define CGROUP_NOTE "cgroup" /* in the session's record: the path of the session's group */

/* What a group may use; 0: no limit of its own. */
struct cgroup_limits {
	uint64_t memory_bytes;
	uint64_t tasks;     /* processes and threads, init included where it is in the group */
	uint64_t cpu_milli; /* thousandths of one processor */
};

/* A group that was made here. The owner gives it up with cgroup_remove(). */
struct cgroup {
	int dir; /* its directory; -1: there is none, and every call below does nothing */
	char name[CGROUP_NAME_MAX];
};

struct cgroup_session {
	struct cgroup group;        /* carrel-<id>, locked (flock) while the session lives */
	int place;                  /* the directory it lies in; -1 while there is none */
	unsigned controllers;       /* in force in the groups below it */
	char path[CGROUP_PATH_MAX]; /* of the group, for the note in the record */
};

#define CGROUP_NONE ((struct cgroup){ .dir = -1 })
#define CGROUP_SESSION_NONE ((struct cgroup_session){ .group = { .dir = -1 }, .place = -1 })

/* What a group used; -1 where this kernel does not say, or the controller is not there. */
struct cgroup_figures {
	int64_t memory_peak_bytes;
	int64_t oom_events; /* times the group's own memory limit could not be kept */
	int64_t oom_kills; /* processes of it that the kernel killed for want of memory, whoever's */
	int64_t cpu_us;       /* processor time, user and system */
	int64_t throttled_us; /* time its tasks were held back by cpu.max */
	int64_t throttled_periods;
	int64_t tasks_peak;
	int64_t tasks_refused; /* forks that its own limit refused */
};

/* cgroup_limits_of - what a policy asks for. True where that is anything. */
bool cgroup_limits_of(const struct policy *policy, struct cgroup_limits *ret);

/* cgroup_needs - the controllers that hold @limits (bits). */
unsigned cgroup_needs(const struct cgroup_limits *limits);

/*
 * cgroup_session_begin - find a place that was delegated to the caller and make the session's group.
 * @name: carrel-<id>; the session has a record (host/session/record.h), which is locked.
 * @note: that record, which gets a file that says where the group is, before it is made, so that a
 * sweep finds it; -1: none.
 * @need: controllers without which this is a failure; @want: further ones that are turned on where
 *        that does not disturb anybody. With @need 0 a machine without cgroups gives success and
 *        @ret->group.dir -1.
 * Returns 0 or -errno with @e: ERROR_UNAVAILABLE with the command that would give it. Nothing is left then.
 */
MUST_CHECK int cgroup_session_begin(struct cgroup_session *ret, const char *name, int note,
	unsigned need, unsigned want, struct error *e);

/*
 * cgroup_check - whether cgroup_session_begin() with @need will find a place, as far as can be said
 * without changing anything. 0 or -errno with @e, as cgroup_session_begin().
 */
MUST_CHECK int cgroup_check(unsigned need, struct error *e);

/*
 * cgroup_limit - set the limits of a session's or an execution's group; those that are 0 stay.
 * With memory: no swap. 0 or -errno with @e (ERROR_UNAVAILABLE).
 */
MUST_CHECK int cgroup_limit(
	const struct cgroup *g, const struct cgroup_limits *limits, struct error *e);

/*
 * cgroup_make - a group below the session's, with limits of its own: "init", "executions", or "exec-1", ...,
 * which dies as one.
 * @limits: NULL or all 0: none but the session's. A controller that they need and that is not in force
 * is turned on where that can be. Returns 0 or -errno with @e (ERROR_UNAVAILABLE, ERROR_LIMIT).
 */
MUST_CHECK int cgroup_make(struct cgroup_session *s, const char *name,
	const struct cgroup_limits *limits, struct cgroup *ret, struct error *e);

/*
 * cgroup_enter - move a process, with all its threads, into the group. @pid: as this process sees it, and
 * not reaped. Children that it has already stay where they are. 0, -ESRCH where it has ended, or -errno.
 */
MUST_CHECK int cgroup_enter(const struct cgroup *g, pid_t pid);

/* cgroup_kill - SIGKILL to everything in the group and below. 0 or -errno. */
MUST_CHECK int cgroup_kill(const struct cgroup *g);

/*
 * cgroup_wait_empty - wait until no process is left in the group and below, @timeout_ms at most. 0,
 * -ETIMEDOUT, or -errno. For an event loop: cgroup_watch().
 */
MUST_CHECK int cgroup_wait_empty(const struct cgroup *g, int timeout_ms);

/*
 * cgroup_watch - a descriptor (the caller's) that gives EPOLLPRI each time the group becomes empty or
 * stops being so; cgroup_is_empty() on it then says which. Or -errno.
 */
MUST_CHECK int cgroup_watch(const struct cgroup *g);

/* cgroup_is_empty - @watch: from cgroup_watch(). 1, 0, or -errno. */
MUST_CHECK int cgroup_is_empty(int watch);

/* cgroup_read - what the group has used so far; also after its last process is dead. */
void cgroup_read(const struct cgroup *g, struct cgroup_figures *ret);

/*
 * cgroup_remove - kill what is left in the group, wait, remove it and all below it, and close it.
 * @parent: the session's group's directory, or its place. 0 or -errno; closed in any case.
 */
MUST_CHECK int cgroup_remove(int parent, struct cgroup *g);

/* cgroup_session_end - the same for the session's group. With @e: ERROR_TEARDOWN. */
MUST_CHECK int cgroup_session_end(struct cgroup_session *s, struct error *e);

/*
 * cgroup_sweep_noted - remove the group that the dead session @name noted in its record @note,
 * which the caller has locked. Costs one failing open where there is no note. 0 or -errno with @e.
 */
MUST_CHECK int cgroup_sweep_noted(int note, const char *name, struct error *e);

/*
 * cgroup_sweep - remove the groups of the caller's dead sessions wherever a session started from here would
 * be, whatever became of their directories. @each: called with the name of each, or NULL.
 * Returns how many there were, or -errno with @e.
 */
MUST_CHECK int cgroup_sweep(bool dry_run, void (*each)(void *context, const char *name),
	void *context, struct error *e);

/*
 * freeze.h - stops all processes of a session while the coverer's child mends its mounts.
 *
 * Runs in: the coverer's child, outside. It uses ptrace(2) and not SIGSTOP: nobody inside sees a stop, a process that its user
 * had stopped stays stopped, and if this process dies the kernel kills those that it traced (PTRACE_O_EXITKILL).
 * Init and the monitors of executions are carrel's own and keep running; where a monitor cannot be told from a tool (as root) it is
 * stopped as well.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct frozen {
	pid_t thread,
		process; /* as seen from outside; thread 0: this entry of the table is free */
	uint8_t state;   /* enum in freeze.c */
	uint8_t signal;  /* the kernel was delivering it at the stop; 0: none */
	uint8_t ours;    /* carrel's own process: not searched */
};

struct freeze {
	int proc;   /* the host's /proc */
	pid_t init; /* of the session */
	int64_t deadline_ns;
	struct frozen *table; /* by hash of the thread id */
	pid_t *queue;         /* processes whose children are not listed yet */
	size_t count, waiting;
	pid_t culprit; /* after a failure: the process that did not stop; 0: none */
};

/*
 * freeze_init - 0 or -ENOMEM. Nothing frees @ret: it goes with the process.
 * @proc: borrowed. @deadline_ns: CLOCK_MONOTONIC, for every call but freeze_release().
 */
MUST_CHECK int freeze_init(struct freeze *ret, int proc, pid_t init, int64_t deadline_ns);

/*
 * freeze_all - stop every thread that descends from init: it returns 0 after a search of all of them that found none running.
 * A second call stops those that came since. -ETIMEDOUT; -E2BIG: too many threads; -EBUSY: another process traces one of them;
 * -EPERM: one cannot be stopped; or -errno. After a failure the calling process ends, which ends the session.
 * See: ptrace(2), PTRACE_SEIZE; proc(5), /proc/PID/task/TID/children.
 */
MUST_CHECK int freeze_all(struct freeze *f);

/* freeze_next - the stopped threads, one a call; *@at is 0 at first. NULL: there are no more. */
const struct frozen *freeze_next(const struct freeze *f, size_t *at);

/* freeze_release - let all of them run. 0, or -ETIMEDOUT: one could not be detached, and dies with this process. */
MUST_CHECK int freeze_release(struct freeze *f);

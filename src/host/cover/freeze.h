/*
 * freeze.h - all processes of a session stand still while their mounts are looked after.
 *
 * Runs in: the coverer's child, outside. ptrace(2) and not SIGSTOP: nobody inside sees a stop, what a user had
 * stopped stays stopped, and where this process dies the kernel kills what it held (PTRACE_O_EXITKILL).
 * Init and the monitors of executions are carrel's own and go on; where they cannot be told apart (as root) the
 * monitors stand still as well.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct frozen {
	pid_t thread, process; /* as seen from outside; thread 0: a free place of the table */
	uint8_t state;         /* enum in freeze.c */
	uint8_t signal;        /* that was being delivered; 0: none */
	uint8_t ours;          /* carrel's own: not looked at */
};

struct freeze {
	int proc;   /* the host's /proc */
	pid_t init; /* of the session */
	int64_t deadline_ns;
	struct frozen *table; /* by hash of the thread id */
	pid_t *queue;         /* processes whose children are still to be listed */
	size_t count, waiting;
	pid_t culprit; /* after a failure: the process that did not stand still; 0: none */
};

/*
 * freeze_init - @ret is to be thrown away with the process. 0 or -ENOMEM.
 * @proc: borrowed. @deadline_ns: CLOCK_MONOTONIC, of all that follows but freeze_release().
 */
MUST_CHECK int freeze_init(struct freeze *ret, int proc, pid_t init, int64_t deadline_ns);

/*
 * freeze_all - stop every thread that descends from init; on return a whole look at them has found none that runs.
 * Can be called again, for what has come since. -ETIMEDOUT, -E2BIG: too many; -EBUSY: one is traced by another;
 * -EPERM: one that cannot be stopped; or -errno. Then the process should end, and the session with it.
 * See: ptrace(2), PTRACE_SEIZE; proc(5), /proc/PID/task/TID/children.
 */
MUST_CHECK int freeze_all(struct freeze *f);

/* freeze_next - the frozen threads, one after the other; *@at is 0 at the beginning. NULL: that was the last. */
const struct frozen *freeze_next(const struct freeze *f, size_t *at);

/* freeze_release - all go on. 0, or -ETIMEDOUT: one could not be let go, and dies with this process. */
MUST_CHECK int freeze_release(struct freeze *f);

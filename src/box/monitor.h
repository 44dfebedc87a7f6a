/*
 * monitor.h - one execution: starts its command, passes signals on, reports how it ended, clears up.
 *
 * Runs in: init, for the one command of a `run`; in a live session a process of its own for each
 * execution that runs, a child of init, under all walls since before it was forked. It talks to the
 * supervisor on a channel of its own, so that init has no part in an execution. When it has cleared up
 * it waits for the next one.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "box/box.h"
#include "box/payload.h"

struct monitor {
	const struct box *box;
	int tty;      /* the terminal's slave, or -1 */
	bool is_init; /* pid 1: its end is the session's */
	bool stays;   /* a service: the command's descendants belong to it */
	bool once;    /* it ends with its execution */
	pid_t payload;
	bool ended; /* the payload is reaped, `last` says how; a service's descendants go on */
	struct channel_record last;
	void *stack;                 /* for the payload, and behind it room for a body */
	struct request_view request; /* what `command` was read from, where it is one */
	struct command command;
	struct payload start;
};

/* monitor_prepare - the memory it needs. 0 or -errno. Before the walls stand. */
__attribute__((warn_unused_result)) int monitor_prepare(
	struct monitor *ret, const struct box *box, bool is_init);

/* monitor_open_pty - make the execution's terminal; the caller leads a session. 0 or -errno. */
__attribute__((warn_unused_result)) int monitor_open_pty(struct monitor *m, int *ret_master);

/* monitor_loop - records on BOX_CHANNEL, children on BOX_CHILDREN, until the execution is over. */
_Noreturn void monitor_loop(struct monitor *m);

/*
 * monitor_fork - a monitor as a child of init. @channel: its end; @m: from monitor_prepare().
 * Returns its pid or -errno.
 */
__attribute__((warn_unused_result)) pid_t monitor_fork(struct monitor *m, int channel);

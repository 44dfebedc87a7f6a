/*
 * supervise.h - from a running init to the end of the session's last process.
 *
 * Runs in: S, the supervisor; one thread, all signals blocked, everything through epoll.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "box/channel.h"
#include "host/cover/cover.h"
#include "host/launch/launch.h"
#include "host/process/signals.h"
#include "host/quarantine/newpath_watch.h"
#include "host/stdio/stdio.h"
#include "plan/plan.h"

/* What is known when the session's processes are all dead. */
struct outcome {
	enum channel_started started;
	bool alone; /* nothing but init was left: the caller still has to kill it */
	bool ended; /* the command ended and wait_status says how */
	int wait_status;
	int op, errnum; /* not started: operation or step, and why */
	bool timed_out;
	bool tasks_full; /* no process more could be started when the command ended */
	bool breached; /* a mount was taken away from outside, and could not be put back: the session ends */
	bool unwatched; /* the machine's /proc hides init: mounts cannot be watched */
	bool ready;     /* every operation of the plan was applied */
	bool confined;  /* the supervisor's own filter is in force */
	/*
	 * With a time-out, CLOCK_MONOTONIC: when the run must be over, whatever the tools left; 0:
	 * none.
	 */
	int64_t deadline_ns;
	uint64_t wall_us; /* also where init ended without a record; then not wall_known */
	bool wall_known;
	uint32_t no_route, no_listener; /* channel.h */
	uint64_t user_us, system_us, max_rss_kib;
	bool usage_known;
	struct cover cover;         /* what was covered again */
	struct newpath_watch watch; /* what was taken away while the session lived */
};

/*
 * supervise - run the session until all of its processes are dead.
 * @l: from launch_init(); ended and closed, unless @ret->alone: then only init is left, which does
 * nothing but end, and the caller kills it when it has used that time. @s: from stdio_prepare();
 * drained, not closed.
 * @at_start: called once, right after the command has been told to start, when S has nothing else
 * to do.
 * Returns 0 with @ret filled, or -errno with @e where the supervisor itself failed (then too
 * everything is dead, and @ret says what is known).
 */
MUST_CHECK int supervise(const struct plan *plan, struct launch *l, struct stdio *s,
	struct signals *signals, void (*at_start)(void *context), void *context,
	struct outcome *ret, struct error *e);

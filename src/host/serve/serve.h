/*
 * serve.h - the supervisor of a live session, from a running init to the end of the last process.
 *
 * Runs in: S, one thread, all signals blocked, everything through epoll; it never waits for a
 * client or for a monitor. Clients ask for everything in records (host/serve/control.h), one client
 * as good as any other; S drops a client that does not read its answers or breaks the protocol, and
 * ends the executions that it started, but not services.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "host/launch/launch.h"
#include "host/launch/limits.h"
#include "host/process/signals.h"
#include "host/cover/cover.h"
#include "host/quarantine/newpath_watch.h"
#include "plan/plan.h"

#define SERVE_WAITING_MAX 16

struct serve_settings {
	int listener;          /* the control socket; the caller's */
	int die_with;          /* a pidfd whose end ends the session, or -1; the caller's */
	int session_dir;       /* its tool-results/ takes the logs of services; the caller's */
	struct limits *limits; /* after limits_begin(); the caller's */
	int64_t lifetime_ms;   /* from now on */
	int64_t idle_ms;       /* without an execution and without a client */
	void (*ready)(void *context); /* every wall stands, clients are served from here on */
	void *context;
};

/* How it went; for the report and for the clients that asked for the end. */
struct serve_outcome {
	bool ready;     /* every operation of the plan was applied */
	bool confined;  /* the supervisor's own filter is in force */
	bool breached;  /* a mount was taken away from outside */
	bool unwatched; /* the machine's /proc hides init */
	int op, errnum; /* not ready: operation or step, and why */
	uint64_t executions;
	struct cover cover;         /* what was covered again */
	struct newpath_watch watch; /* what was taken away while the session lived */
	/* Connections that asked for the end and wait for the answer, which serve_farewell() sends. */
	int waiting[SERVE_WAITING_MAX];
	uint64_t waiting_tags[SERVE_WAITING_MAX];
	unsigned waiting_count;
};

/*
 * serve - serve clients until the session ends: a client or a signal asked for that, its time is
 * over, it was idle for too long, the process of `die_with` or init ended, or a mount was taken
 * away. Every process of the session is dead on return.
 * Returns 0, or -errno with @e where it did not end as it should.
 */
MUST_CHECK int serve(const struct plan *plan, struct launch *l, struct signals *signals,
	const struct serve_settings *settings, struct serve_outcome *ret, struct error *e);

/*
 * serve_farewell - when the session's directory is gone: answer the clients that asked for the end,
 * and close their connections.
 * @text: what there is to say, for people, or empty. @e: what went wrong, or NULL.
 */
void serve_farewell(struct serve_outcome *o, const char *text, const struct error *e);

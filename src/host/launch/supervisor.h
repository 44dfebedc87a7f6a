/*
 * supervisor.h - the state of the supervisor of `carrel run`; shared by supervise*.c and by nothing else.
 *
 * Runs in: S.
 */
#pragma once

#include "host/launch/job.h"
#include "host/launch/supervise.h"
#include "host/stdio/tty.h"

enum event {
	EVENT_CHANNEL,
	EVENT_SIGNAL,
	EVENT_TIMER,
	EVENT_MOUNTS,
	EVENT_COVERED, /* EVENT_MOUNTS + 1: cover_watch() */
	EVENT_NEWPATH,
	EVENT_EGRESS,
	EVENT_STDIO = 8,
	EVENT_TTY = 16
};

enum {
	KILL_PATIENCE_MS = 2000, /* after the kill, for init to say how the command ended */
	COVERER_MS = 20,         /* a command that runs longer has a coverer */
};

enum phase {
	PHASE_SETUP, /* init applies the plan */
	PHASE_RUNNING,
	PHASE_ENDING,  /* asked to end; the grace is running */
	PHASE_KILLING, /* everything was sent SIGKILL */
	PHASE_OVER,
};

struct supervisor {
	const struct plan *plan;
	struct launch *launch;
	struct stdio *stdio;
	struct signals *signals;
	struct tty tty;
	bool has_tty;
	int epoll, timer;
	enum phase phase;
	bool set_up;        /* init has applied the plan, and carrel-egress is waited for */
	int master;         /* set_up: the terminal's, or -1 */
	bool end_requested; /* by a signal, a limit or a fault */
	int64_t started_ns;
	struct outcome *out;
	void (*at_start)(void *context);
	void *context;
	struct error *e;
};

/* supervisor_fault - fill in the error: @what cannot be done, because of @r, -errno. Returns -errno. */
int supervisor_fault(struct supervisor *v, int r, const char *what);

/*
 * supervisor_watch - add @fd to the loop. supervisor_set_timer - EVENT_TIMER in @ms; 0: never. 0 or
 * -errno.
 */
MUST_CHECK int supervisor_watch(struct supervisor *v, int fd, enum event event);
MUST_CHECK int supervisor_set_timer(struct supervisor *v, uint64_t ms);

/* supervisor_stopped - init says that the command was stopped by @signal. 0 or -errno. */
MUST_CHECK int supervisor_stopped(struct supervisor *v, int signal);

/* supervisor_egress - carrel-egress has said something, or has gone. 0 or -errno. */
MUST_CHECK int supervisor_egress(struct supervisor *v);

/* supervisor_record - init has said something, or has gone. 0 or -errno. */
MUST_CHECK int supervisor_record(struct supervisor *v);

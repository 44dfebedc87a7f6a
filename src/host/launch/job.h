/*
 * job.h - job control: what the caller's signals and terminal do to a command, what its stops do to the caller, and
 * what is still on its way when it has ended.
 *
 * Runs in: S of a run, under its filter; the client of an execution. May not: know how the command is reached.
 */
#pragma once

#include <stdbool.h>

#include "host/process/signals.h"
#include "host/stdio/stdio.h"
#include "host/stdio/tty.h"

/* How the command is reached. Each returns 0 or -errno; 0 also for a command that has just ended. */
struct job_calls {
	int (*send)(void *context, int signal);
	int (*go_on)(void *context, bool in_front); /* SIGCONT; in its terminal's foreground */
	int (*end)(
		void *context, int signal); /* asks it to, at once where it was asked before */
	int (*close)(void *context);        /* its terminal was read to the end */
};

struct job {
	struct tty *tty;     /* NULL: none */
	struct stdio *stdio; /* NULL: not begun */
	const struct signals *signals;
	bool running; /* it has begun, and nobody has asked it to end */
	const struct job_calls *calls;
	void *context;
};

/* job_signal - the caller sent this process @signal. 0 or -errno. */
MUST_CHECK int job_signal(const struct job *j, int signal);

/*
 * job_stopped - the command was stopped by @signal: stop this process too, where a terminal would
 * do that. 0 or -errno.
 */
MUST_CHECK int job_stopped(const struct job *j, int signal);

/*
 * job_drain - every process is dead: give the caller what is still on its way, for some seconds at
 * most, or until a signal asks to stop. @end_requested: the command was asked to end: nobody waits
 * for a slow reader then.
 */
void job_drain(const struct job *j, bool end_requested);

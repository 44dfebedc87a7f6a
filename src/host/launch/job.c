/*
 * job.c - see job.h.
 *
 * Runs in: S of a run, under its filter; the client of an execution.
 */
#include "host/launch/job.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>

#include "base/clock.h"

enum { DRAIN_MS = 10000 };

static int stop_with_command(const struct job *j, int signal, bool whole_job)
{
	if (j->tty)
		tty_suspend(j->tty);
	/*
	 * Carrel's process group is orphaned: if carrel stopped, nobody could continue it. The
	 * kernel sends SIGHUP to the stopped processes of such a group (_exit(2)), and carrel sends
	 * it to the command.
	 */
	if (!signals_stop_self(signal, whole_job) && signal != SIGTSTP)
		return j->calls->end(j->context, SIGHUP);
	int front = j->tty ? tty_resume(j->tty) : 0;
	return j->calls->go_on(j->context, front > 0);
}

int job_stopped(const struct job *j, int signal)
{
	/* Without a terminal, a process inside stopped the command, and may continue it. */
	if (!j->running || !j->tty)
		return 0;
	if (signal == SIGTTIN || signal == SIGTTOU) {
		int r = tty_take_keyboard(j->tty);

		if (r != 0)
			return r < 0 ? r : j->calls->go_on(j->context, true);
	}
	return stop_with_command(j, signal == SIGSTOP ? SIGTSTP : signal, true);
}

int job_signal(const struct job *j, int signal)
{
	switch (signal) {
	case SIGTERM:
	case SIGINT:
	case SIGHUP:
	case SIGQUIT:
		return j->calls->end(j->context, signal);
	case SIGWINCH:
		if (!j->tty)
			break;
		tty_resize(j->tty);
		return 0;
	case SIGTSTP:
		/* A sender that signals our whole group has stopped the other processes already.
		 * Without a terminal carrel stops the command and then itself; a SIGCONT to carrel
		 * continues both. */
		if (!j->tty && j->running && j->calls->send(j->context, SIGTSTP) < 0)
			return 0;
		return stop_with_command(j, SIGTSTP, false);
	case SIGCONT:
		if (j->tty)
			return j->calls->go_on(j->context, tty_resume(j->tty) > 0);
		break;
	default:
		break;
	}
	return j->calls->send(j->context, signal);
}

void job_drain(const struct job *j, bool end_requested)
{
	int64_t deadline_ms = clock_now_ns() / 1000000 + DRAIN_MS;
	/* Carrel delivers the tail that it held back as slowly as it is read, as any program does,
	 * unless it was told to end. */
	int64_t stdio_ms =
		j->stdio && stdio_is_held(j->stdio) && !end_requested ? INT64_MAX : deadline_ms;
	bool stop = false;
	int r;

	do
		r = j->tty ? tty_drain(j->tty, deadline_ms, j->signals->fd) : 0;
	while (r == -EINTR && !(stop = signals_ask_to_end(j->signals)));
	(void)!j->calls->close(j->context); /* the end of the connection says the same */
	/* The reader does not read, or a signal came: the rest is lost, as with any pipe. */
	do
		r = j->stdio ? stdio_drain(j->stdio, stdio_ms, j->signals->fd) : 0;
	while (r == -EINTR && !stop && !(stop = signals_ask_to_end(j->signals)));
	if (j->tty)
		tty_stop(j->tty);
}

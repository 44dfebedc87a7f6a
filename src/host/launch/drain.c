/*
 * drain.c - see drain.h.
 *
 * Runs in: S, under its filter.
 */
#include "host/launch/drain.h"

#include <errno.h>

#include "base/clock.h"

enum { DRAIN_MS = 10000 };

void drain(struct tty *tty, struct stdio *s, struct launch *l, const struct signals *signals,
	bool asked)
{
	int64_t deadline_ms = clock_now_ns() / 1000000 + DRAIN_MS;
	/* A tail that was held back is ours to deliver, as slowly as it is read: as any program does.
	 * But not where we are to end. */
	int64_t stdio_ms = stdio_is_held(s) && !asked ? INT64_MAX : deadline_ms;
	bool stop = false;
	int r;

	do
		r = tty ? tty_drain(tty, deadline_ms, signals->fd) : 0;
	while (r == -EINTR && !(stop = signals_ask_to_end(signals)));
	if (l)
		launch_kill(l);
	/* A reader that does not read, or a signal: the rest is lost, as with any pipe. */
	do
		r = stdio_drain(s, stdio_ms, signals->fd);
	while (r == -EINTR && !stop && !(stop = signals_ask_to_end(signals)));
	if (tty)
		tty_stop(tty);
}

/*
 * until.h - a limit in time for work whose size tools choose.
 *
 * Runs in: the supervisor, when nothing reads its timers and signals any more, and the client.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "host/process/signals.h"

struct until {
	int64_t deadline_ns;           /* CLOCK_MONOTONIC; 0: none */
	const struct signals *signals; /* NULL: they are not asked for */
	int over;                      /* what was answered: it stays so */
};

/* until_is_over - -ETIME: its time is over; -EINTR: a signal asks us to end; 0: neither. @until: NULL for no end. */
MUST_CHECK int until_is_over(struct until *until);

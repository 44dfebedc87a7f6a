/*
 * until.c - see until.h.
 *
 * Runs in: the supervisor and the client.
 */
#include "host/promote/until.h"

#include <errno.h>

#include "base/clock.h"

int until_is_over(struct until *until)
{
	if (!until)
		return 0;
	if (until->over == 0 && until->deadline_ns && clock_now_ns() >= until->deadline_ns)
		until->over = -ETIME;
	if (until->over == 0 && until->signals && signals_ask_to_end(until->signals))
		until->over = -EINTR;
	return until->over;
}

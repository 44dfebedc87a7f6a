/*
 * drain.h - what lies in pipes and in the terminal when a session's processes are dead.
 *
 * Runs in: S, under its filter.
 */
#pragma once

#include "host/launch/launch.h"
#include "host/process/signals.h"
#include "host/stdio/stdio.h"
#include "host/stdio/tty.h"

/*
 * drain - give the caller what is still on its way, for some seconds at most, or until a signal asks to
 * stop. @tty: NULL without a terminal. @l: ended in between, where it is not to be kept (NULL).
 * @asked: the session was asked to end: nobody waits for a slow reader then.
 */
void drain(struct tty *tty, struct stdio *s, struct launch *l, const struct signals *signals,
	bool asked);

/*
 * observer.h - the process that traces a session: explain.h.
 *
 * Runs in: the observer, a child of S outside of the session, under policy/observer.policy, from its first line to its end.
 */
#pragma once

#include <sys/types.h>

#include "host/explain/board.h"
#include "plan/plan.h"

/*
 * observer_main - confine itself; read init's pid from @socket, trace it, and send a byte: 0, or the errno. It ends with
 * @parent, with init, or when it is killed; what it traces goes on then.
 */
_Noreturn void observer_main(
	const struct plan *plan, struct explain_board *board, pid_t parent, int socket);

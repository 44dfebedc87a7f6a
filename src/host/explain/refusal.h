/*
 * refusal.h - a system call that failed, as an entry of the board.
 *
 * Runs in: the observer, while the thread stands still after the call. Tools have made what it reads: memory, links in
 * /proc, names. Another of their threads can change that memory meanwhile, and only spoils its own entry.
 */
#pragma once

#include "host/explain/board.h"
#include "host/explain/tracee.h"
#include "plan/plan.h"

struct refusals {
	const struct plan *plan;
	struct explain_board *board;
	int proc; /* the host's /proc */
};

/*
 * refusal_note - @t's call has failed with @errnum. Note it if a wall can have been the reason; carrel-policy
 * finds out later whether one was.
 */
void refusal_note(const struct refusals *r, const struct tracee *t, int errnum);

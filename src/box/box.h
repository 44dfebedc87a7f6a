/*
 * box.h - the inside: what the host side starts, and nothing else of the box.
 *
 * Runs in: init, pid 1 of the session. No heap, no stdio, no environment: system calls and
 * mem/str functions only (checked by the lint).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "plan/plan.h"

struct box {
	const struct plan *plan; /* sealed */
	int channel;             /* init's end */
	int user_ns;             /* privileged: the session's user namespace; else -1 */
	int idmap_ns[PLAN_IDMAP_MAX];
	bool want_pty;
	mode_t umask;            /* the caller's, for the payload */
	char *caller_args;       /* the caller's argv and environment block, wiped in init */
	size_t caller_args_size;
};

/*
 * box_init - pid 1, from clone to the end of the session. Applies the plan, says READY, starts
 * the command when told, reports how it ended. Never returns; any failure is reported as FAILED
 * with the operation number where the channel still works, and ends the session.
 */
_Noreturn void box_init(const struct box *box);

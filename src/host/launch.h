/*
 * launch.h - from a sealed plan to a running init.
 *
 * Runs in: the launcher, outside.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "plan/plan.h"

struct launch {
	int pidfd;   /* init; -1 while there is none */
	pid_t pid;   /* init's, only for messages and /proc */
	int channel; /* our end, non-blocking; -1 while there is none */
};


/*
 * launch_init - clone init and write its maps; it begins to apply the plan at once.
 * @want_pty: init opens a terminal and sends its master with READY.
 * @args, @args_size: the caller's argv and environment block in this process' memory.
 * Returns 0, or -errno with @e: ERROR_NAMESPACES with the cause and the remedy, ERROR_LIMIT.
 * On failure nothing runs.
 */
MUST_CHECK int launch_init(struct launch *ret, const struct plan *plan, bool want_pty, char *args,
	size_t args_size, struct error *e);

/* launch_kill - end init, and with it everything inside; waits until all is dead. */
void launch_kill(struct launch *l);

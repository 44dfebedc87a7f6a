/*
 * launch.h - from nothing to a running init, in two halves: the namespaces, and the plan.
 *
 * Runs in: the launcher, outside. Init makes the namespaces (box/begin.h) at the same time as the
 * launcher works out the plan.
 */
#pragma once

#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "box/box.h"
#include "host/identity.h"
#include "plan/plan.h"

struct launch {
	int pidfd;                     /* init; -1 while there is none */
	int channel;                   /* our end; -1 while there is none */
	pid_t init;                    /* for /proc: only while pidfd is open */
	pid_t holders[PLAN_IDMAP_MAX]; /* of user namespaces: killed, still to be reaped */
	size_t holder_count;
	char *holder_stack;  /* NULL: none */
	unsigned long flags; /* CLONE_NEW* that init was started with */
	struct box *box;     /* in the shared arena, for init */
	struct arena *arena;
};

/*
 * launch_begin - start init, which makes the namespaces of an ordinary session.
 * @arena: from prepare_begin(); nothing is in it yet.
 * Returns 0, or -errno with @e (ERROR_NAMESPACES, ERROR_LIMIT); nothing runs then.
 */
MUST_CHECK int launch_begin(struct launch *ret, struct arena *arena,
	const struct identity *identity, struct error *e);

/*
 * launch_init - give init the plan: it begins to apply it.
 * @want_pty: init opens a terminal and sends its master with READY.
 * @args, @args_size: the caller's argv and environment block in this process' memory.
 * The arena is sealed. Returns 0, or -errno with @e (ERROR_NAMESPACES, ERROR_LIMIT); on failure nothing
 * runs. What init could not do it says on the channel.
 */
MUST_CHECK int launch_init(struct launch *l, const struct plan *plan, bool want_pty, char *args,
	size_t args_size, struct error *e);

/*
 * launch_session - tell init that the session directory stands; it waits before the first operation
 * that needs it. Returns 0, also where init has ended (why is on the channel), or -errno with @e.
 */
MUST_CHECK int launch_session(struct launch *l, struct error *e);

/* launch_kill - end whatever has been started, everything inside with it; waits until all is dead. */
void launch_kill(struct launch *l);

/*
 * launch.h - from nothing to a running init, in two halves: the namespaces, and the plan.
 *
 * Runs in: the launcher, outside. Init makes the namespaces (box/begin.h) at the same time as the
 * launcher works out the plan.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "box/box.h"
#include "box/view.h"
#include "host/egress/egress.h"
#include "host/facts/identity.h"
#include "plan/plan.h"

struct launch {
	int pidfd;                     /* init; -1 while there is none */
	int channel;                   /* our end; -1 while there is none */
	pid_t init;                    /* for /proc: only while pidfd is open */
	pid_t holders[PLAN_IDMAP_MAX]; /* of user namespaces: killed, still to be reaped */
	size_t holder_count;
	char *holder_stack;  /* NULL: none */
	unsigned long flags; /* CLONE_NEW* that init was started with */
	bool bare;           /* no namespace at all: processes inside are ended one by one */
	unsigned filters;    /* bare: the launcher's own filters; processes inside have more */
	struct box *box;     /* in the shared arena, for init */
	bool dies_as_one, tasks_by_rlimit; /* for launch_init(): as in struct box */
	mode_t umask; /* the caller's; carrel's own takes no bits from the owner */
	bool live;    /* set by the caller: many executions, started by monitors */
	int mounts
		[VIEW_COUNT]; /* the mount namespace of each view, from its init; -1: not known */
	int views[VIEW_COUNT]; /* live: a channel for each tighter view; -1: none */
	int scratch; /* the root of a scratch in memory, from init; the caller closes it; -1: none */
	struct arena *arena;
	struct explain
		*explain;     /* the caller's: sees all that init starts; NULL: nobody does */
	struct egress egress; /* EGRESS_NONE, unless launch_egress() started carrel-egress */
};

/*
 * launch_begin - start init, which makes the namespaces of an ordinary session.
 * @ret: only its member `live` is read. @arena: from prepare_begin(); nothing is in it yet.
 * From now on the umask of this process takes no bits from the owner of what it makes.
 * Returns 0, or -errno with @e (ERROR_NAMESPACES, ERROR_LIMIT); nothing runs then. With
 * ERROR_NAMESPACES launch_init() can still begin a session that asks for none.
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
 * launch_session - make the plan's user namespaces and the channels of its views, and tell init
 * that they and the session directory exist; init waits for that before the first operation that
 * needs one of them. Returns 0, also where init has ended (its record on the channel says why), or
 * -errno with @e.
 */
MUST_CHECK int launch_session(struct launch *l, struct error *e);

/*
 * launch_egress - start carrel-egress where the policy says `net allow` or publishes ports; @facts:
 * as far as they are known. @l: its member `egress` is filled in. 0 or -errno with @e.
 */
MUST_CHECK int launch_egress(struct launch *l, const struct policy *policy,
	const struct facts *facts, struct error *e);

/*
 * launch_reap - reap the holders of the user namespaces, which launch_session() killed. Call it when init waits for nothing
 * any more: a holder that was forked on init's processor ends only when init leaves that. launch_kill() does it in any case.
 */
void launch_reap(struct launch *l);

/* launch_close_views - give up the mount namespaces: held open, they would keep the mounts. */
void launch_close_views(struct launch *l);

/* launch_kill - end whatever has been started, everything inside with it; waits until all is dead. */
void launch_kill(struct launch *l);

/*
 * session.h - the session directory: made, locked, removed; and what dead sessions left behind.
 *
 * Runs in: the launcher, outside. May not: trust a name. A session directory is one that lies in a
 * scratch base, is called carrel-<id>, belongs to the caller and is not locked by a living one.
 *
 * The lock is flock(2) on the directory itself: it goes with the last process that holds it, so a
 * killed launcher leaves an unlocked directory and nothing else to be wrong.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "plan/plan.h"

struct session {
	int base;   /* the scratch base */
	int dir;    /* the session directory, locked; -1 while there is none */
	int memory; /* the root of a scratch that is memory (scratch-size); -1: it is on disk */
	const char *base_path;
	const char *name;
};

/*
 * session_create - make and lock carrel-<id>/ (0700) and the entries of the plan in it.
 * On failure nothing is left. Returns 0 or -errno with @e (ERROR_SCRATCH).
 */
MUST_CHECK int session_create(struct session *ret, const struct plan *plan, struct error *e);

/*
 * session_keep - leave the directory; @keep_ms: for how long, 0 = until somebody removes it.
 * Returns 0 or -errno with @e.
 */
MUST_CHECK int session_keep(struct session *s, uint64_t keep_ms, struct error *e);

/* session_is_name - whether @name has the form carrel-<id>. */
bool session_is_name(const char *name);

/*
 * session_scratch - the scratch, wherever it is: a descriptor (O_PATH), the caller's, or -errno.
 * That of a bounded one works also when every process of the session is dead.
 */
MUST_CHECK int session_scratch(const struct session *s);

/* session_close - give up the descriptors, and with them the lock; memory is free from then on. */
void session_close(struct session *s);

struct session_sweep {
	unsigned removed; /* directories of dead sessions */
	unsigned live;    /* locked, or not wholly dead: not touched */
	unsigned kept;    /* kept on request, time not over */
	unsigned failed;  /* could not be removed */
};

enum {
	SWEEP_DRY_RUN = 1, /* only count */
	SWEEP_QUIET = 2,   /* what is moved to quarantine is not told on stderr */
};

/*
 * session_sweep - review and remove what dead sessions of the caller left in @base_path.
 * @flags: SWEEP_*. @each: called with the name of each that is (or would be) removed, or NULL.
 * Failures are counted, the first is described in @e. Returns 0 or -errno where the base
 * cannot be read.
 */
MUST_CHECK int session_sweep(const char *base_path, unsigned flags,
	void (*each)(void *context, const char *name), void *context, struct session_sweep *ret,
	struct error *e);

/* session_sweep_one - the same for the one entry @name of the base. */
MUST_CHECK int session_sweep_one(const char *base_path, const char *name, unsigned flags,
	void (*each)(void *context, const char *name), void *context, struct session_sweep *ret,
	struct error *e);

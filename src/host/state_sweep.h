/*
 * state_sweep.h - what killed supervisors left in the state directory, and in the scratch bases that it
 * names: a part of `carrel gc`.
 *
 * Runs in: the launcher, outside.
 */
#pragma once

#include "host/session.h"
#include "host/state.h"

/* What is done, and who is told. */
struct state_sweep {
	bool dry_run;
	const char *swept; /* a scratch base that was swept already */
	void (*each)(void *context, const char *name); /* a session directory went */
	void (*each_entry)(
		void *context, const char *name); /* an entry of the state directory went */
	void *context;
};

/*
 * state_sweep - remove entries whose socket refuses and whose session directory is gone or locked by
 * nobody, and those directories. One whose session is about to listen is locked, and stays.
 * Returns 0, or -errno with @e (what could not be removed is named there, and the rest is done).
 */
MUST_CHECK int state_sweep(
	const struct state *state, const struct state_sweep *how, struct error *e);

/*
 * state_sweep.h - control sockets that killed supervisors left: a part of `carrel gc`.
 *
 * Runs in: the launcher, outside.
 */
#pragma once

#include "host/session/state.h"

/*
 * state_sweep - remove entries whose socket refuses and whose record is gone, or locked by nobody. One whose
 * session is about to listen is locked, and stays.
 * @each: called with the id of each that is (with @dry_run: would be) removed.
 * Returns 0, or -errno with @e where the directory cannot be read.
 */
MUST_CHECK int state_sweep(const struct state *state, bool dry_run,
	void (*each)(void *context, const char *id), void *context, struct error *e);

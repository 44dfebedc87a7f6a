/*
 * manifest.h - what a killed launcher can no longer do: the protected paths that were absent, written
 * down in the session directory, where no tool can reach it, for the sweep that finds it dead.
 *
 * Runs in: the launcher, outside; the reader in a later `carrel run` or `carrel gc`.
 */
#pragma once

#include "base/error.h"
#include "plan/plan.h"

/*
 * manifest_write - note plan->absents in the session directory @dir. Nothing is written where there
 * are none. 0 or -errno with @e (ERROR_SCRATCH).
 */
MUST_CHECK int manifest_write(int dir, const struct plan *plan, struct error *e);

/* manifest_discard - the session is closed in the ordinary way: nothing is to be settled later. */
void manifest_discard(int dir);

/*
 * manifest_settle - quarantine what stands at the paths that the dead session @name noted.
 * @base: the scratch base; @dir: the session directory, locked by the caller.
 * A root that is gone has nothing left to protect. Returns 0 or -errno with @e.
 */
MUST_CHECK int manifest_settle(int base, int dir, const char *name, struct error *e);

/*
 * manifest.h - what a killed launcher can no longer do: the protected paths that were absent, and what the
 * review of git directories has to know, written down in the session directory, where no tool can reach it,
 * for the sweep that finds it dead.
 *
 * Runs in: the launcher, outside; the reader in a later `carrel run` or `carrel gc`.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "plan/plan.h"

/*
 * manifest_write - note what plan->absents and the facts say in the session directory @dir, before the
 * command starts. Nothing is written where nothing would have to be looked at. @init: pid 1 of the
 * session. 0 or -errno with @e (ERROR_SCRATCH).
 */
MUST_CHECK int manifest_write(int dir, const struct plan *plan, pid_t init, struct error *e);

/* manifest_discard - the session is closed in the ordinary way: nothing is to be settled later. */
void manifest_discard(int dir);

/*
 * manifest_settle - do what the end of the dead session @name would have done at the paths that it noted:
 * review, quarantine, and, unless @quiet, a line on stderr for what was moved.
 * @base, @base_path: the scratch base; @dir: the session directory, locked by the caller.
 * Waits until everything inside is dead, but not long. A root that is gone has nothing left to protect.
 * Returns 0; -EBUSY, without @e and with nothing done, where something still lives; -EBADMSG where the note
 * is none; or -errno; with @e.
 */
MUST_CHECK int manifest_settle(int base, const char *base_path, int dir, const char *name,
	bool quiet, struct error *e);

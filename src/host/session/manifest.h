/*
 * manifest.h - a note for the sweep that finds a session's launcher killed: the protected paths
 * that were absent, and what the review of git directories has to know. It lies in the session's
 * record (host/session/record.h), which no tool can reach.
 *
 * Runs in: the launcher, outside; the reader in a sweep.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "plan/plan.h"

/*
 * manifest_write - note what plan->absents and the facts say in the session's @record, before the
 * command starts. Nothing is written if nothing would have to be looked at. @init: pid 1 of the
 * session. 0 or -errno with @e (ERROR_STATE).
 */
MUST_CHECK int manifest_write(int record, const struct plan *plan, pid_t init, struct error *e);

/* manifest_discard - the session is closed in the ordinary way: nothing is to be settled later. */
void manifest_discard(int record);

/*
 * manifest_settle - do what the end of the dead session @id would have done at the paths that it noted in
 * @record, which the caller has claimed: review, quarantine, and a line on stderr for what was moved.
 * Waits until everything inside is dead, but not long. A root that is gone has nothing left to protect.
 * Returns 0; -EBUSY, without @e and with nothing done, where something still lives; -EBADMSG where
 * the note is damaged; or -errno; with @e.
 */
MUST_CHECK int manifest_settle(int record, const char *id, struct error *e);

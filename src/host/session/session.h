/*
 * session.h - the session directory and its record: made, locked, kept, removed.
 *
 * Runs in: the launcher, outside. May not: trust what lies in a scratch base.
 *
 * The session directory (carrel-<id>, in the scratch base) holds what tools see: scratch/, tool-results/, an
 * overlay's layers. What is known of it is in its record (host/session/record.h), whose lock says that the session
 * lives: a killed launcher leaves both behind, and nothing else to be wrong. host/session/session_sweep.h removes them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/session_name.h"
#include "host/session/state_place.h"
#include "plan/plan.h"

struct session {
	int records; /* the directory of records; borrowed */
	int record;  /* this session's, locked; -1 while there is none */
	int base;    /* the scratch base */
	int dir;     /* the session directory; -1 while there is none */
	int memory; /* the root of a scratch that is memory (scratch-size); -1: it is on disk */
	bool alone; /* the caller's: no client of its own looks for its record, which may serve the next session */
	const char *base_path;
	const char *name;
};

#define SESSION_NONE \
	((struct session){ .records = -1, .record = -1, .base = -1, .dir = -1, .memory = -1 })

/*
 * session_open_records - the directory of the caller's records, made where it is missing.
 * @path: of the state directory that it is in. Returns the descriptor, or -errno with @e.
 */
MUST_CHECK int session_open_records(
	const char *const *environment, char path[STATE_PATH_MAX], struct error *e);

/*
 * session_create - make the record, locked, then carrel-<id>/ (0700) and the entries of the plan in it.
 * @records: of session_open_records(); has to stay open. On failure nothing is left. Returns 0 or -errno with
 * @e (ERROR_SCRATCH, ERROR_STATE).
 */
MUST_CHECK int session_create(
	struct session *ret, int records, const struct plan *plan, struct error *e);

/*
 * session_keep - leave the directory; @keep_ms: for how long, 0 = until somebody removes it.
 * Returns 0 or -errno with @e.
 */
MUST_CHECK int session_keep(struct session *s, uint64_t keep_ms, struct error *e);

/*
 * session_scratch - the scratch, wherever it is: a descriptor (O_PATH), the caller's, or -errno.
 * That of a bounded one works also when every process of the session is dead.
 */
MUST_CHECK int session_scratch(const struct session *s);

/* session_forget - remove the record; the session directory must be gone already. 0 or -errno. */
MUST_CHECK int session_forget(struct session *s);

/* session_close - give up the descriptors, and with them the lock; memory is free from then on. */
void session_close(struct session *s);

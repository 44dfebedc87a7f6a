/*
 * session_sweep.h - what dead sessions left: settled, and removed.
 *
 * Runs in: `carrel gc`, and the sweep in the background (host/session/sweeper.h), outside. May not: act on anything but
 * the caller's records (host/session/record.h): a directory in a scratch base that has none is nobody's.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct session_sweep {
	unsigned removed; /* sessions that are no more */
	unsigned live;    /* locked, or not wholly dead: not touched */
	unsigned kept;    /* kept on request, time not over */
	unsigned failed;  /* could not be removed */
};

enum { SWEEP_DRY_RUN = 1 }; /* only count */

/* What to do, and whom to tell. */
struct session_sweep_how {
	unsigned flags;   /* SWEEP_* */
	const char *base; /* only what lies in this scratch base; NULL: all */
	void (*each)(void *context,
		const char *name); /* that session is (would be) removed; or NULL */
	void *context;
};

/*
 * session_sweep - settle and remove the sessions of the directory @records whose record nobody locks.
 * Failures are counted, the first is described in @e. Returns 0 or -errno where the records cannot be read.
 */
MUST_CHECK int session_sweep(int records, const struct session_sweep_how *how,
	struct session_sweep *ret, struct error *e);

/*
 * session_sweep_needed - whether a sweep would find something. @own: the id of the session that
 * asks. It changes nothing, and costs three system calls for each live session.
 */
bool session_sweep_needed(int records, const char *own);

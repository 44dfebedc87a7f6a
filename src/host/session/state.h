/*
 * state.h - where live sessions are found: the directory of control sockets.
 *
 * Runs in: the supervisor of a live session, and its clients. May not: trust what lies there before
 * owner and mode are looked at.
 *
 * $XDG_RUNTIME_DIR/carrel, or where that variable is unset /run/user/UID/carrel, or where that is
 * missing run/ in the state directory (host/session/state_place.h): a directory of the caller's with mode 0700, and
 * no place where another user could be first. For each live session it holds a socket, called by the id, and a
 * symbolic link ID.record to the session's record. None of it is the truth: a socket that refuses is stale,
 * and the lock on the record tells whether the session lives.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "host/session/record.h"
#include "host/session/state_place.h"

/* A file in the record of a session whose refusals are seen (host/explain/explain.h). */
#define STATE_EXPLAINED "explained"

struct state {
	int dir; /* -1: there is none */
	char path[STATE_PATH_MAX];
};

/* One session that has a socket there. */
struct state_session {
	char id[SESSION_ID_LENGTH + 1];
	char record[STATE_PATH_MAX]; /* its record; empty where the link is missing */
};

/*
 * state_open - open the directory of sockets; @make: make it where it is missing.
 * @environment: the caller's. Returns 0 (also where there is none and @make is false: dir -1), or -errno
 * with @e (ERROR_STATE: another owner, a mode that lets others in, no directory).
 */
MUST_CHECK int state_open(
	struct state *ret, const char *const *environment, bool make, struct error *e);

/* state_close - give up the descriptor. */
void state_close(struct state *s);

/*
 * state_listen - a listening control socket for session @id, and the link to its record, @record_path.
 * Returns the descriptor or -errno with @e; nothing is left then.
 */
MUST_CHECK int state_listen(
	const struct state *s, const char *id, const char *record_path, struct error *e);

/* state_forget - remove the socket and the link of @id. */
void state_forget(const struct state *s, const char *id);

/*
 * state_next - the sessions of the directory of sockets, one after the other.
 * @ret: filled in; start with id empty; the order is that of the ids.
 * Returns 1, 0 when there is none behind @ret, or -errno.
 */
MUST_CHECK int state_next(const struct state *s, struct state_session *ret);

/*
 * state_find - the one session whose id begins with @prefix ("carrel-" in front is passed over).
 * Returns 0, or -errno with @e (ERROR_SESSION: none, or more than one).
 */
MUST_CHECK int state_find(
	const struct state *s, const char *prefix, struct state_session *ret, struct error *e);

/* state_fail_unknown - no live session has the id @id: the error that says so. Returns -errno. */
int state_fail_unknown(const char *id, struct error *e);

/* state_connect - a connection to session @id. The descriptor, -ECONNREFUSED: stale, or -errno. */
MUST_CHECK int state_connect(const struct state *s, const char *id);

/*
 * state_place.h - the state directory: where the host side keeps what it must know of a session later.
 *
 * Runs in: the launcher, the supervisor and its clients, outside. May not: use a directory that is
 * somebody else's, or that lets others in.
 *
 * It is the first of these that can be made or used:
 *   $XDG_STATE_HOME/carrel, and nothing else where that variable is set;
 *   ~/.local/state/carrel, of $HOME where that belongs to the caller, else of the account's home;
 *   $XDG_RUNTIME_DIR/carrel, else /run/user/UID/carrel;
 *   /tmp/carrel-UID, for a container that has no home.
 * It outlives a restart of the machine where the scratch does, so the home comes first. In every session it is
 * covered (plan/tree_own.c), and no policy makes it writable (plan/tree_check.c): whoever can write in there
 * can make the host side move and remove what is the caller's. The other places of the list are
 * believed by a sweep from another environment: so tools can neither write nor make them
 * (host/launch/prepare.c). A place that lies in the workspace is not used, since a session from
 * another environment could have made it.
 *
 * In it: sessions/ID/, a record for each session (host/session/record.h); quarantine/ID, one for each thing that was
 * moved away (host/quarantine/quarantine_record.h); run/, control sockets where there is no
 * runtime directory (host/session/state.h); notices, what a sweep in the background has to say (host/session/sweeper.h).
 *
 * See: XDG Base Directory Specification.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

enum { STATE_PATH_MAX = 512, STATE_PLACES = 5, STATE_IN_ACCOUNT = 2 };

struct state_place {
	int dir; /* -1: there is none */
	char path[STATE_PATH_MAX];
};

/*
 * state_place_open - the state directory that a new session uses; @make: make it where it is missing.
 * @environment: the caller's. Returns 0 (also where there is none and @make is false: dir -1), or -errno
 * with @e (ERROR_STATE: another owner, a mode that lets others in, no place for one).
 */
MUST_CHECK int state_place_open(
	struct state_place *ret, const char *const *environment, bool make, struct error *e);

/* state_place_path - the path of place @n of the list, whatever is there. 0, or -errno where this caller has none. */
MUST_CHECK int state_place_path(
	const char *const *environment, unsigned n, char ret[STATE_PATH_MAX]);

/*
 * state_place_in_home - place STATE_IN_ACCOUNT for those who know the account's home (@home, NULL: no other than $HOME):
 * /etc/passwd is not read again. As state_place_path().
 */
MUST_CHECK int state_place_in_home(const char *home, char ret[STATE_PATH_MAX]);

/*
 * state_place_nth - for those who look for all that there are: the one at place @n of the list, counted from 0
 * to STATE_PLACES - 1. Returns 0, or -errno where there is none that is to be trusted; the caller goes on.
 */
MUST_CHECK int state_place_nth(
	struct state_place *ret, const char *const *environment, unsigned n);

/* state_runtime_path - where $XDG_RUNTIME_DIR or the system has a place for sockets. 0 or -ENOENT. */
MUST_CHECK int state_runtime_path(const char *const *environment, char ret[STATE_PATH_MAX]);

/* state_place_sub - open the directory @name in @s; @make: make it. The descriptor or -errno. */
MUST_CHECK int state_place_sub(const struct state_place *s, const char *name, bool make);

/* state_place_error - the same words wherever such a directory is of no use. Returns -errno. */
int state_place_error(const char *path, int errnum, const char *what, struct error *e);

/* state_place_close - give up the descriptor. */
void state_place_close(struct state_place *s);

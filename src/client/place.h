/*
 * place.h - the places of one live session, opened by the client.
 *
 * Runs in: the client, with the caller's rights. May not: trust a path in them, once tools run.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "host/promote/promote_guard.h"

/* What the session's network is. */
enum place_net {
	PLACE_NET_NONE,
	PLACE_NET_HOST,
	PLACE_NET_SOME, /* what its policy names */
};

struct place {
	int session; /* the session directory, which no tool reaches */
	int scratch; /* the scratch */
	const char *id;
	const char *dir; /* of the session */
	const char *scratch_path, *results_path;
	struct promote_guard guard;
	enum place_net net;
	struct arena arena; /* owns all texts, and what the verbs need */
};

/*
 * place_open - find the session: @requested, an id or the beginning of one, or else $CARREL_SESSION.
 * @environment: the caller's. Returns 0, or -errno with @e (ERROR_SESSION, ERROR_STATE, ...).
 */
MUST_CHECK int place_open(struct place *ret, const char *requested,
	const char *const *environment, struct error *e);

/* place_close - close and free everything. */
void place_close(struct place *p);

/*
 * place_below - @word as a path relative to the scratch. @word is relative to it already, or below its path, or, as tools
 * see it, below /tmp or /var/tmp. NULL: it is elsewhere, names the scratch itself, or has a ".." component.
 */
const char *place_below(struct place *p, const char *word);

/*
 * place_is_mount_point - whether @below (relative to the scratch) is, or holds, a mount point of the
 * session's own: nobody may move or remove it while the session lives.
 */
bool place_is_mount_point(const struct place *p, const char *below);

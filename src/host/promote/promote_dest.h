/*
 * promote_dest.h - the destination of a promotion, opened.
 *
 * Runs in: the supervisor and the client (host side).
 * May not: follow a link below a root of the guard, make anything but the directories it is asked for.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "host/promote/promote_guard.h"

enum promote_dest_kind {
	PROMOTE_DEST_EITHER, /* a directory, or a new name in one: like mv(1) */
	PROMOTE_DEST_DIR,    /* a directory that exists */
	PROMOTE_DEST_MAKE,   /* a directory; what is missing of it is made */
};

struct promote_dest {
	int fd;           /* the directory, open for reading; -1: nothing is open */
	const char *path; /* its canonical path, in the arena */
	const char *name; /* the new name in it; NULL: that of each source */
	bool shared;      /* tools write there themselves: see promote_guard.h */
};

/*
 * promote_dest_open - open @requested, an absolute path, which must lie below a root of @g. Links on the
 * way to the root are the user's own and are followed; below it none is.
 * @ret->fd is the caller's. Strays of earlier promotions in the directory are removed.
 * Returns 0, or -errno with @e (ERROR_PROMOTE).
 */
MUST_CHECK int promote_dest_open(struct promote_dest *ret, struct arena *a,
	const struct promote_guard *g, const char *requested, enum promote_dest_kind kind,
	struct error *e);

/*
 * promote_into - one artifact to an open destination: the guard is asked, then promote().
 * @source: relative to @scratch_fd. @o: `apart` is decided here, where @live says that tools run.
 * @ret_path: its absolute path at the destination, in @a; on failure, too. NULL: it did not get
 * that far.
 */
struct promote_options;
struct promote_result;
MUST_CHECK int promote_into(const struct promote_dest *d, struct arena *a,
	const struct promote_guard *g, int scratch_fd, const char *source,
	const struct promote_options *o, bool live, struct promote_result *ret,
	const char **ret_path, struct error *e);

/*
 * resolve.h - a path as it was written -> where it really is.
 *
 * Runs in: the launcher, outside, with the caller's rights. May not: change anything.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/plan.h"

struct resolved {
	const char *path; /* canonical, in the arena */
	size_t existing;  /* bytes of `path` that exist; all of them where `exists` */
	bool exists;
	struct stat st; /* where `exists`; of the link itself where it was not followed */
};

enum resolve_flag {
	RESOLVE_KEEP_LAST = 1 << 0, /* do not follow a link at the end */
	RESOLVE_PREFIX = 1 << 1,    /* of what does not exist, find out how much does */
};

/* Serves many paths: the links that were passed, and memory for walking. Zeroed but for the arenas. */
struct resolver {
	struct arena *arena; /* of the results */
	struct arena *local; /* of what is needed while paths are looked up; NULL: the same */
	struct link_fact *links;
	size_t link_count;
	struct resolve_walk *walk; /* taken from `local` when first needed */
	struct known_dirs *dirs;   /* the same */
	const char *looked_at;     /* the last path of resolve_is_absent(), and what it found */
	struct resolved seen;
	int seen_result;
};

/*
 * resolve_path - follow every symbolic link (with RESOLVE_KEEP_LAST: all but one at the end).
 * @requested: absolute; it may become part of the result. @flags: RESOLVE_*.
 * A path that does not exist (from some component on) is no failure: `exists` is false and the rest
 * is taken as written. Returns 0, -ELOOP, -ENAMETOOLONG, -EACCES, -ENOMEM (arena) or another -errno.
 * See: path_resolution(7), openat2(2).
 */
MUST_CHECK int resolve_path(
	struct resolver *r, const char *requested, unsigned flags, struct resolved *ret);

/*
 * resolve_is_absent - whether nothing is there, not even a link, by the cheapest means that says so;
 * false where it cannot be looked at. @path: absolute.
 */
bool resolve_is_absent(struct resolver *r, const char *path);

/* resolve_done - close what was kept open; the results stay. */
void resolve_done(struct resolver *r);

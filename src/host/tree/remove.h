/*
 * remove.h - remove a directory tree that somebody hostile has written.
 *
 * Runs in: the supervisor (host side), at the end of a session and in gc; as root or as a user.
 * May not: follow a link, cross a mount, leave the tree, use a path, recurse, allocate by size of
 * the tree. Nothing outside the tree is touched, whoever renames what while it runs.
 *
 * How it walks: every step is one name relative to a descriptor (unlinkat(2), openat2(2)), never
 * "..". At a fixed depth, or when descriptors run out, a directory is renamed up into the top of
 * the tree under a fresh name and met there again, so that 5,000 levels need no more descriptors
 * than 16. A tree that turns out to be large is shared with a few forked workers
 * (remove_pool.h); the leader goes over it once more when they are done, and only what it sees
 * itself counts as the result.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum remove_flags {
	REMOVE_COUNT_BYTES = 1, /* fill `bytes`: one fstatat(2) more for every regular file */
};

struct remove_options {
	unsigned flags; /* enum remove_flags */
	unsigned
		workers; /* processes in all; 0: as the tree and the machine suggest, 1: no fork */
	int64_t deadline_ns; /* CLOCK_MONOTONIC: what is not removed by then stays; 0: none */
};

struct remove_result {
	uint64_t removed;  /* entries, the top included */
	uint64_t files;    /* regular files among them (DT_UNKNOWN counts as one) */
	uint64_t bytes;    /* their apparent sizes with REMOVE_COUNT_BYTES; 0 without */
	uint64_t remained; /* entries that are left, directories on the way to them included */
	int errnum;        /* why the first of them is left, 0 where nothing is */
	unsigned workers;  /* processes that took part, the caller included */
	bool first_cut;    /* `first` is longer than the room for it */
	char first[1024]; /* where the first of them is now, relative to parent_fd; any bytes */
};

/*
 * remove_tree - remove @name below @parent_fd, with all that is in it.
 * @parent_fd: the directory that holds it (O_PATH is enough); stays the caller's. It is only
 *             written to by removing @name from it.
 * @name:      one component. A file, link, FIFO, ... is unlinked; a link is never followed.
 * @ret:       filled in on success and on failure.
 * Returns 0 when nothing is left (also when there was nothing), otherwise -errno of what was in
 * the way first, with @e filled in; all that could be removed has been removed then: -EPERM for
 * an immutable file, -EBUSY for a mount point, -ENOTEMPTY when others kept on creating entries
 * (each directory is gone over 16 times), -EACCES for what belongs to somebody else, -EINVAL for
 * a name that is no component, -EMFILE where not even two descriptors are free, -ETIME at the deadline.
 *
 * Workers hold a copy of the tree's descriptor only, send no SIGCHLD and are waited for before
 * this returns. See: unlinkat(2), openat2(2), renameat2(2).
 */
MUST_CHECK int remove_tree(
	int parent_fd, const char *name, struct remove_result *ret, struct error *e);

/* remove_tree_with - the same with @options (NULL: none). */
MUST_CHECK int remove_tree_with(int parent_fd, const char *name,
	const struct remove_options *options, struct remove_result *ret, struct error *e);

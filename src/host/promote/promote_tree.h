/*
 * promote_tree.h - walk over an artifact: check that all of it is fit to be promoted, or copy it.
 *
 * Runs in: as promote.h; for promote.c only.
 * May not: follow a link, cross a mount, recurse, take what a name was before for what it is now.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "host/promote/until.h"

struct promote_tree {
	uint64_t files, bytes;
	bool copy_only; /* something must not be renamed, or cannot be looked at without a change */
	bool any_copied; /* of a copy: not all files could be reflinked */
};

/*
 * promote_tree_inspect - look at @name in @from_fd and at all that is in it.
 * @shown: what to call it in messages. Directories that cannot be read set copy_only; they are looked
 * at when they are copied. Returns 0, or -errno with @e: what promote() refuses.
 */
MUST_CHECK int promote_tree_inspect(int from_fd, const char *name, const char *shown,
	struct until *until, struct promote_tree *ret, struct error *e);

/*
 * promote_tree_save - copy all that is in the directory @from_fd into the empty directory @to_fd, for a scratch
 * that is to be kept when nothing writes to it any more. It is not judged: links stay as they are, setuid and setgid
 * bits are dropped, and what is neither file, directory nor link is left out. @max_bytes: of data, all in all: a file
 * with many names becomes many files. A file that cannot be copied does not keep others from being
 * copied. 0, or -errno with @e: why the first of those that are missing is.
 */
MUST_CHECK int promote_tree_save(int from_fd, int to_fd, uint64_t max_bytes, const char *shown,
	struct promote_tree *ret, struct error *e);

/*
 * promote_tree_copy - copy @name in @from_fd into @to_fd: an empty file open for writing, or an empty
 * directory. Mode (less setid and sticky) and times as they were; checked as by the inspection.
 * A single file is on the disk afterwards; of a tree nothing is synced.
 * Locked files and directories of the source are unlocked on the way, by descriptor. 0 or -errno with @e.
 */
MUST_CHECK int promote_tree_copy(int from_fd, const char *name, int to_fd, const char *shown,
	struct until *until, struct promote_tree *ret, struct error *e);

/*
 * promote.h - one artifact out of a scratch, to where it stays.
 *
 * Runs in: the supervisor at the end of a session, or the client while tools still run.
 * May not: follow a symbolic link on either side, use a path twice, leave half a result.
 *
 * A crash at any moment leaves the source, or the complete destination, or both. On one file system the
 * artifact is renamed. Otherwise it is copied under a name of carrel's own beside the destination,
 * brought to the disk, renamed into place, and only then removed from the scratch; a copy that was cut
 * off by a crash is removed by the next promotion to the same directory.
 *
 * These are never renamed, since somebody else could go on writing to them, or they would belong to
 * the wrong user: a file that has another name, and a file of another owner. They are copied, and
 * so is a tree that holds one.
 *
 * Tools may do what they like meanwhile. Everything goes by descriptors; what was opened or renamed is
 * looked at again afterwards. A file that a tool still has open for writing stays open when it is
 * renamed: where the tool could not write to the destination anyway, the caller asks for `apart`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "host/promote/until.h"

enum { PROMOTE_DEPTH_MAX = 128, PROMOTE_ENTRIES_MAX = 1000000 };

struct promote_options {
	bool copy;  /* leave the source where it is */
	bool force; /* replace a file or a link that is at the destination (never a directory) */
	bool dry_run;        /* check what can be checked, change nothing */
	struct until *until; /* NULL: as long as it takes */
	bool apart; /* never rename: tools that still run have no right at the destination */
};

enum promote_how { PROMOTE_NOT, PROMOTE_RENAMED, PROMOTE_REFLINKED, PROMOTE_COPIED };

/* Where to. The directory has been opened without following a link, and checked by the guard. */
struct promote_place {
	int fd;           /* the directory, open for reading; the caller's */
	const char *path; /* of the directory, for messages */
	const char *name; /* the new name in it: one component */
};

struct promote_result {
	enum promote_how how; /* of a tree: reflinked where all files were */
	uint64_t files;       /* regular files */
	uint64_t bytes;       /* the sum of their apparent sizes */
	bool source_left; /* complete at its destination, but the scratch's could not be removed */
};

/*
 * promote - move @source, a path relative to the scratch @scratch_fd (O_PATH is enough), to @to.
 * A regular file or a directory with all that is in it. Permission bits and times stay; setuid and setgid
 * bits are refused on files and dropped from directories that are copied.
 * A symbolic link is refused, but inside a tree one that cannot lead out of that tree is moved or
 * copied as the link it is: relative, with no more leading ".." than it is deep and none after
 * them.
 * @ret: filled in on success; with dry_run it says what would be done, `how` as far as known.
 * Returns 0, or -errno with @e (ERROR_PROMOTE): then the source is there, unless it was complete at the
 * destination and could not be brought to the disk. -EEXIST without @o->force, -EISDIR a directory in the
 * way, -ELOOP a link, -EINVAL what is no artifact (device, FIFO, socket, setuid bit), -EBUSY it was
 * replaced or written to meanwhile, -E2BIG too many entries or too deep, -ENOENT,
 * -ETIME or -EINTR where o->until was over: what was copied so far is removed again.
 * See: renameat2(2), openat2(2), fsync(2), syncfs(2).
 */
MUST_CHECK int promote(int scratch_fd, const char *source, const struct promote_place *to,
	const struct promote_options *o, struct promote_result *ret, struct error *e);

/* promote_how_name - "renamed", "reflinked", "copied", or NULL for PROMOTE_NOT. */
const char *promote_how_name(enum promote_how how);

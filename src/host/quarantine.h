/*
 * quarantine.h - what appeared at protected paths during a session is taken away from there.
 *
 * Runs in: the supervisor (host side), when all processes of the session are dead and before the
 * session directory is removed.
 * May not: follow a link, leave the writable root or the scratch base, make anything where
 * nothing appeared, destroy what it cannot keep.
 *
 * A protected path that was absent at the start (`.git/hooks`, `.envrc`) has no mount that could
 * guard it: a placeholder on the host is not allowed. What is there at the end was put there by
 * the tools, and the host would later run or obey it. It is moved to
 * `<session>.quarantine/` (0700) in the scratch base, where nothing looks for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/* One path that was absent at the start. */
struct quarantine_item {
	int root_fd;      /* the writable root, O_PATH is enough; the caller's */
	const char *root; /* its path, for reports */
	const char *path; /* below it, canonical as far as it existed, e.g. ".git/hooks" */
	/*
	 * Bytes of `path` that existed at the start (4 where `.git` did, 0 where nothing did). A
	 * link or a file in the way *behind* this is itself something that appeared: with
	 * `.git` -> elsewhere the host's git would obey elsewhere. So is a link *inside* it: the
	 * path is canonical, there was none; somebody renamed the directory away, which no mount
	 * holds. A file that is in the way there stays: nothing can be below it.
	 */
	size_t existing_prefix_len;
};

/* What was found at one item, moved or not. */
struct quarantine_move {
	const struct quarantine_item *item;
	const char
		*from; /* what appeared, relative to the root: `path` or a leading part of it */
	const char *to; /* relative to the scratch base; NULL where nothing was kept */
	bool aside; /* it could not be brought there, and was renamed in place: `to` is relative to the root */
	int errnum;  /* 0: gone from where it was; otherwise it (or a part) still stands */
	bool copied; /* the base is another file system: copied and then removed */
	bool armed; /* some files in it kept their execute bits (too deep, too many, refused) */
	uint64_t dropped; /* devices, FIFOs, sockets: not copied, only removed */
};

struct quarantine_result {
	struct arena *arena; /* the caller's; set before the call. Owns what is below */
	/* Set before the call: the session directory, whose scratch is removed where no room is left for what
	 * is to be moved: tools fill disks. -1: the scratch is to stay. */
	int session_fd;
	struct quarantine_move *moves;
	size_t count;
	size_t failed;         /* moves with errnum: the path still stands */
	const char *directory; /* "<session>.quarantine", NULL where none was needed */
};

/*
 * quarantine_check - look at every item and move away what appeared.
 * @session_base_fd: the scratch base; @session_name: the session directory's name in it.
 * @ret: `arena` and `session_fd` set by the caller, all else filled in, also on failure.
 * Costs one system call for each item that is still absent. Files that are moved lose their
 * execute and set-id bits; one that has names elsewhere as well is replaced by a copy instead,
 * because its mode belongs to the other names too. What cannot be brought to the base is renamed to
 * `.carrel-quarantined-<16 hexadecimal digits>` in its root.
 * Returns 0 when no protected path stands any more, otherwise -errno of the first that does, with
 * @e filled in; all others have been dealt with. -ENOMEM: the arena is full.
 * See: openat2(2), renameat2(2).
 */
MUST_CHECK int quarantine_check(const struct quarantine_item *items, size_t count,
	int session_base_fd, const char *session_name, struct quarantine_result *ret,
	struct error *e);

/*
 * quarantine_name - a readable, unambiguous name for @path (@length bytes): '/' is %2F, and so are
 * '%', '~', control characters and bytes above 0x7e. What would be longer than 200 bytes ends in
 * '~' and a hash of the whole. @ret_name: 256 bytes.
 */
void quarantine_name(const char *path, size_t length, char *ret_name);

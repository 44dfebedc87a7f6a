/*
 * quarantine.h - move away what appeared at protected paths during a session.
 *
 * Runs in: the supervisor (host side), while the session lives and again when all its processes are dead; and the
 * sweep after a killed launcher.
 * May not: follow a link, leave the writable root, read or copy what it moves, make anything where nothing appeared.
 *
 * No mount can guard a protected path that was absent at the start (`.git/hooks`, `.envrc`), since carrel makes no
 * placeholder on the host. Tools put there what appears there, and the host would later run or obey it. carrel renames
 * it and does nothing else: no tree is too deep or too large for a rename, and no disk too full. It goes to
 * `.carrel-quarantine-<id>/` (0700) at the top of the writable root, or of the mount below it that the thing lies on,
 * under a name that nothing obeys (`.envrc.quarantined`), and git ignores it. If carrel cannot make that directory (a
 * full disk), it renames the thing where it is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "host/facts/name_set.h"
#include "host/quarantine/quarantine_record.h"

#define QUARANTINE_PREFIX ".carrel-quarantine-"

enum {
	QUARANTINE_PLACES = 8,
	QUARANTINE_NAME = 64,
	QUARANTINE_TO = 4096,
};

/* One path that was absent at the start. */
struct quarantine_item {
	int root_fd;      /* the writable root, O_PATH is enough; the caller's */
	const char *root; /* its path, for reports */
	const char *path; /* below it, canonical as far as it existed, e.g. ".git/hooks" */
	/*
	 * Bytes of `path` that existed at the start (4 where `.git` did, 0 where nothing did). A
	 * link or a file in the way *behind* this has itself appeared: with `.git` -> elsewhere
	 * the host's git would obey elsewhere. A link *inside* it has appeared, too: the path is
	 * canonical, so there was none; somebody renamed a directory that no mount holds. A file
	 * that is in the way inside it stays: nothing can be below it.
	 */
	size_t existing_prefix_len;
};

/* A quarantine directory in use: one for each writable root, and for each mount below one. */
struct quarantine_place {
	int root_fd;    /* of the items it is for */
	uint64_t mount; /* statx(2) */
	int top;        /* the directory that it lies in, O_PATH */
	int fd;         /* itself */
	char name[QUARANTINE_NAME];
};

/* What one session moves; zeroed and then quarantine_begin(). */
struct quarantine {
	char name[QUARANTINE_NAME]; /* of the directories */
	struct quarantine_log log;
	struct quarantine_place places[QUARANTINE_PLACES];
	unsigned place_count;
	bool live; /* tools may still run: remove nothing, and do no work that they can make large */
	char to[QUARANTINE_TO]; /* where the last one is now, relative to its root; empty: it had to be removed */
	char id[QUARANTINE_ID + 1]; /* of its record; empty: it could not be noted */
};

/*
 * quarantine_begin - for the session with this id (20 letters and digits: more is cut). No effect on the machine.
 * @log: where to note what is moved; copied, but the caller owns what it names.
 * quarantine_end - close the descriptors. The directories stay.
 */
void quarantine_begin(
	struct quarantine *q, const char *session_id, const struct quarantine_log *log);
void quarantine_end(struct quarantine *q);

/*
 * quarantine_take - take away what stands at @item's path, or in its way.
 * @may_stay: NULL, or asked first, with the length of the path up to what stands; true: leave it alone.
 * @ret_length: that length, set where the answer is not 0.
 * Returns 1: moved (q->to says where); 0: there was nothing to move; -errno: it still stands, or could not be
 * examined. Costs one system call if nothing is there.
 * See: openat2(2), renameat2(2).
 */
MUST_CHECK int quarantine_take(struct quarantine *q, const struct quarantine_item *item,
	bool (*may_stay)(void *context, const struct quarantine_item *item, size_t length),
	void *context, size_t *ret_length);

/* The names at the top of a root; valid during one look. */
struct quarantine_listing {
	int root_fd; /* whose; -1: none */
	struct name_set names;
};

/*
 * quarantine_is_absent - whether a listing of the root proves that nothing is there, nor in the way.
 * @left: the number of items from this one on: few are not worth a listing. @arena: owns it.
 */
MUST_CHECK bool quarantine_is_absent(struct quarantine_listing *l, struct arena *arena,
	const struct quarantine_item *item, size_t left);

/* What was found at one item, moved or not. */
struct quarantine_move {
	const struct quarantine_item *item;
	const char
		*from; /* what appeared, relative to the root: `path` or a leading part of it */
	const char *to; /* relative to the root; NULL: removed, see quarantine_check() */
	const char *id; /* of its record; NULL: there is none */
	int errnum;     /* 0: it is gone from there; otherwise it still stands */
};

struct quarantine_result {
	struct arena *arena; /* the caller's; set before the call. Owns what is below */
	struct quarantine_move *moves;
	size_t count;
	size_t failed; /* moves with errnum: the path still stands */
};

/*
 * quarantine_check - examine every item when all processes of the session are dead, and move away what appeared.
 * @session_id, @log: as above. @ret: `arena` set by the caller, all else filled in, also on failure.
 * Costs one system call for each item that is still absent, or none if a listing of the root proves it. If a full
 * disk has no room even for another name in a directory, what appeared is removed.
 * Returns 0 when no protected path stands any more, otherwise -errno of the first that does, with
 * @e filled in; all others have been dealt with. -ENOMEM: the arena is full.
 */
MUST_CHECK int quarantine_check(const struct quarantine_item *items, size_t count,
	const char *session_id, const struct quarantine_log *log, struct quarantine_result *ret,
	struct error *e);

/*
 * quarantine_name - a readable, unambiguous name for @path (@length bytes) that nothing obeys: '/' is %2F, and so
 * are '%', '~', control characters and bytes above 0x7e; what would be longer than 200 bytes ends in
 * '~' and a hash of the whole; and then ".quarantined". @ret_name: 256 bytes.
 */
void quarantine_name(const char *path, size_t length, char *ret_name);

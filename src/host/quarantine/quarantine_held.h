/*
 * quarantine_held.h - one thing in quarantine, found by its record: put back, or removed.
 *
 * Runs in: `carrel quarantine` and `carrel gc`, outside, with the caller's rights. May not: follow a link, overwrite
 * anything, trust a name found in a quarantine directory: a tool could have made it, and may be changing it now.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"
#include "host/quarantine/quarantine_record.h"

struct quarantine_held {
	const struct quarantine_record *record;
	int root;         /* the writable place, O_PATH */
	int dir;          /* the directory that the thing lies in */
	const char *name; /* of the thing in it; in the record */
	struct stat st;
	bool changed; /* since it was moved, as far as carrel can tell: it does not look into a directory */
};

/*
 * quarantine_held_open - find what @record names. After 0 the caller calls quarantine_held_close().
 * Returns 0; -ENOENT: it is not there any more, or another thing is, or the writable place is gone; or -errno.
 */
MUST_CHECK int quarantine_held_open(
	const struct quarantine_record *record, struct quarantine_held *ret);
void quarantine_held_close(struct quarantine_held *h);

/*
 * quarantine_held_restore - rename it to where it appeared. If something stands there, that stays: -EEXIST. Its directory
 * must exist, with no link on the way. Its quarantine directory is removed if nothing else is in it.
 * Returns 0 or -errno with @e (ERROR_PATH).
 */
MUST_CHECK int quarantine_held_restore(const struct quarantine_held *h, struct error *e);

/* quarantine_held_remove - remove it, and its directory as above. 0 or -errno with @e (ERROR_TEARDOWN). */
MUST_CHECK int quarantine_held_remove(const struct quarantine_held *h, struct error *e);

/*
 * quarantine_held_age - remove what has been in quarantine for as long as its record says, and the records of things
 * that are gone although their writable place is still there. @records: the directory of records. @dry_run: only tell.
 * @each: called with the path where it appeared. A failure does not stop the rest. Returns 0, or the first -errno with @e.
 */
MUST_CHECK int quarantine_held_age(int records, bool dry_run,
	void (*each)(void *context, const char *path), void *context, struct error *e);

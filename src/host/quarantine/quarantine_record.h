/*
 * quarantine_record.h - notes of what was moved to quarantine, kept where no tool can write: in the state directory.
 *
 * Runs in: the supervisor and the sweep, which write it; `carrel quarantine` and `carrel gc`, which read it. May not:
 * believe anything that lies in a quarantine directory, or its name: tools write there with the caller's uid. carrel
 * lists, moves back and removes only what a record names.
 *
 * A record is a file quarantine/ID in the state directory (host/session/state_place.h), which is covered in every
 * session. ID is a part of a hash of the session, the root and where the thing is now: if a thing is moved over an earlier
 * one, its record replaces the earlier one's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/error.h"

enum {
	QUARANTINE_ID = 12, /* characters */
	QUARANTINE_DAYS =
		30, /* `carrel gc` removes it after so long, unless the policy says otherwise */
};

/* Where to note. Zeroed: nowhere. */
struct quarantine_log {
	int dir; /* `state` is relative to it; AT_FDCWD where that is absolute. The caller's */
	const char *state; /* the state directory; NULL: nothing is noted */
	uint64_t keep_ms;  /* how long it is kept; 0: QUARANTINE_DAYS */
};

struct quarantine_record {
	char id[QUARANTINE_ID + 1];
	const char *session; /* without "carrel-" */
	const char *root;    /* the writable place: absolute, canonical */
	const char *from;    /* where it appeared, below that */
	const char *to;      /* where it is now, below the root */
	ino_t root_ino, ino; /* numbers of devices change when the machine starts again */
	int64_t ctime_ns; /* right after the move; a later one means that something in it changed. 0: unknown, S was killed before */
	uint64_t size;
	int64_t moved_s, until_s; /* CLOCK_REALTIME */
};

/* One move, below one root. */
struct quarantine_moving {
	const char *session;
	int root_fd; /* O_PATH is enough */
	const char *root;
	const char *from; /* of which the first from_length bytes are meant */
	size_t from_length;
	const char *to;
	bool done; /* it is at `to`; otherwise still at `from` */
};

/*
 * quarantine_record_write - note the move: before it is made, so that a thing is on record even if the supervisor is
 * killed right after the move, and once more when it is done. @ret_id: the id; empty: it could not be noted. A failure
 * to note does not stop the move: the thing is moved, and the user is told.
 */
void quarantine_record_write(const struct quarantine_log *log,
	const struct quarantine_moving *m, char ret_id[QUARANTINE_ID + 1]);

/* quarantine_record_cancel - the move that was noted under @id was not made. */
void quarantine_record_cancel(const struct quarantine_log *log, const char *id);

/* quarantine_record_open - the directory of records in the state directory @state. The descriptor or -errno. */
MUST_CHECK int quarantine_record_open(int state);

/* quarantine_record_count - how many there are in @records; what cannot be read counts as none. */
size_t quarantine_record_count(int records);

/*
 * quarantine_record_list - all of them, the oldest first. Files that are no records, or cannot be read, are left out.
 * @a: owns the result. 0 or -errno.
 */
MUST_CHECK int quarantine_record_list(
	int records, struct arena *a, struct quarantine_record **ret, size_t *ret_count);

/* Where it appeared, and where it is now: absolute, into @ret_path, and cut where there is no room. */
void quarantine_record_path(const struct quarantine_record *r, char *ret_path, size_t size);
void quarantine_record_place(const struct quarantine_record *r, char *ret_path, size_t size);

/* quarantine_record_forget - remove the record. 0 or -errno. */
MUST_CHECK int quarantine_record_forget(int records, const char *id);

/*
 * record.h - the record of a session: what the host side must know of it when whoever began it is dead.
 *
 * Runs in: the launcher, the supervisor, its clients, and the sweep, outside. May not: believe anything that
 * lies in a scratch base: tools write with the caller's uid, so where a file lies and who owns it proves nothing.
 *
 * A record is a directory, sessions/ID in the state directory (host/session/state_place.h). It is there before the
 * session directory is made and goes after that, so a directory in a scratch base without a record is nobody's.
 * Its lock (flock(2)) is held by the session's supervisor and goes with the last process that holds it: a
 * record that can be locked is a dead session's. In it:
 *   where      the session directory's canonical path
 *   inode      "DEVICE:INODE" of that directory; missing as long as it is empty
 *              (both: the extended attribute user.carrel.where of the record; what does not fit in there is a link)
 *   protected  what was absent, init, the git directories (host/session/manifest.h)
 *   cgroup     where the session's group is (host/cgroup/cgroup.h)
 *   keep       that the session directory is to stay, and how long (host/session/session.h)
 *   promotion, output, net, path, pad   of live sessions, for their clients
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/session_name.h"

/* Where a session directory is. */
struct record_where {
	char base[PATH_MAX]; /* the scratch base, canonical */
	char name[sizeof(SESSION_NAME_PREFIX) + SESSION_ID_LENGTH];
	bool made; /* dev and ino are known: something was put into it */
	dev_t dev;
	ino_t ino;
};

/*
 * record_make - a new record, locked. @records: the directory of records. @id: of the session.
 * @session_dir: its canonical path. Returns the record's descriptor, the caller's, or -errno; nothing is left
 * then.
 */
MUST_CHECK int record_make(int records, const char *id, const char *session_dir);

/* record_note_inode - the session directory was made, and is this one. 0 or -errno. */
MUST_CHECK int record_note_inode(int record, dev_t dev, ino_t ino);

/*
 * record_claim - open and lock the record @id of a dead session.
 * Returns its descriptor; -EWOULDBLOCK: the session lives; -ENOENT: there is none (any more); or -errno.
 */
MUST_CHECK int record_claim(int records, const char *id);

/*
 * record_read_where - where the session directory of @record is. @ret: filled in part after a
 * failure, its name empty where that could not be read. Too large for a stack. Returns 0; -ENOENT:
 * the session was killed before it noted that; -EBADMSG: no such record is ever written; or -errno.
 */
MUST_CHECK int record_read_where(int record, struct record_where *ret);

/*
 * record_open_where - open the session directory that @where names, and nothing else: no other one
 * that was made at this path later, and none that a link leads to.
 * @ret_base, @ret_dir: the caller's to close. Returns 0; -ENOENT: it is gone; or -errno.
 */
MUST_CHECK int record_open_where(const struct record_where *where, int *ret_base, int *ret_dir);

/* record_remove - the record @id, claimed by the caller, with all that is in it. 0 or -errno. */
MUST_CHECK int record_remove(int records, const char *id, int record);

/*
 * record_leave - the same for a session that has ended as it should: the empty directory may be
 * kept for the next one. Not for a live session: a client that has its record open would then have
 * another session's.
 */
MUST_CHECK int record_leave(int records, const char *id, int record);

/*
 * record_next - the names of all records, in no order. @list: from record_list(); NULL at the end.
 * A name is an id, or one with ".N" behind it while the record is being made. What is no record is passed over.
 */
struct record_list;
struct record_list *record_list(int records); /* NULL: cannot be read, errno says why */
const char *record_next(struct record_list *list);
void record_list_end(struct record_list *list);

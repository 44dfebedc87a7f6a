/*
 * state_sweep.c - see state_sweep.h.
 *
 * Runs in: the launcher, outside. May not: take an entry's word for it that a session is dead.
 */
#include "host/session/state_sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "base/fd.h"

/* The lock on the record is the truth. One that cannot be looked at may live. */
static bool lives(const struct state_session *session)
{
	const char *name = strrchr(session->record, '/');

	if (!name || session->record[0] != '/' || strcmp(name + 1, session->id) != 0)
		return false; /* it names no record */
	autofd int record =
		fd_open_at(AT_FDCWD, session->record, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (record == -ENOENT || record == -ENOTDIR || record == -ELOOP)
		return false;
	return record < 0 || flock(record, LOCK_EX | LOCK_NB) < 0;
}

int state_sweep(const struct state *state, bool dry_run,
	void (*each)(void *context, const char *id), void *context, struct error *e)
{
	struct state_session at = { 0 };
	int r;

	while ((r = state_next(state, &at)) > 0) {
		autofd int fd = state_connect(state, at.id);

		/* Somebody listens, or it cannot be told. */
		if ((fd != -ECONNREFUSED && fd != -ENOENT) || lives(&at))
			continue;
		if (!dry_run)
			state_forget(state, at.id);
		each(context, at.id);
	}
	return r < 0 ? error_set(e, ERROR_STATE, "session", -r, state->path,
			       "cannot read the directory of sockets")
		     : 0;
}

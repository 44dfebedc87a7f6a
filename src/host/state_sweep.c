/*
 * state_sweep.c - see state_sweep.h.
 *
 * Runs in: the launcher, outside. May not: take an entry's word for it that a session is dead.
 */
#include "host/state_sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fd.h"

enum life { LIFE_LIVE, LIFE_DEAD, LIFE_NO_DIRECTORY };

/* The lock on the session directory is the truth. A link to anything else names no directory. */
static enum life look_at(const struct state_session *session)
{
	const char *name = strrchr(session->dir, '/');

	if (!name || session->dir[0] != '/' || !session_is_name(name + 1) ||
		strcmp(name + 1 + strlen("carrel-"), session->id) != 0)
		return LIFE_NO_DIRECTORY;
	autofd int dir =
		fd_open_at(AT_FDCWD, session->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir == -ENOENT || dir == -ENOTDIR || dir == -ELOOP)
		return LIFE_NO_DIRECTORY;
	/* One that cannot be looked at may live. */
	return dir < 0 || flock(dir, LOCK_EX | LOCK_NB) < 0 ? LIFE_LIVE : LIFE_DEAD;
}

static bool same_directory(const char *a, const char *b)
{
	struct stat sa, sb;

	return a && stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
		sa.st_ino == sb.st_ino;
}

static int sweep_directory(
	struct state_session *session, const struct state_sweep *how, struct error *e)
{
	struct session_sweep swept;
	char *slash = strrchr(session->dir, '/');
	int r = 0;

	*slash = '\0';
	const char *base = session->dir[0] ? session->dir : "/";
	if (!same_directory(how->swept, base))
		r = session_sweep_one(base, slash + 1, how->dry_run ? SWEEP_DRY_RUN : 0,
			how->each, how->context, &swept, e);
	*slash = '/';
	return r < 0 || e->code != ERROR_NONE ? -EBUSY : 0;
}

static int sweep_entry(const struct state *state, struct state_session *session,
	const struct state_sweep *how, struct error *e)
{
	autofd int fd = state_connect(state, session->id);
	struct error failed = { 0 };

	if (fd != -ECONNREFUSED && fd != -ENOENT)
		return 0; /* somebody listens, or it cannot be told */
	enum life life = look_at(session);
	if (life == LIFE_LIVE)
		return 0;
	if (life == LIFE_DEAD && sweep_directory(session, how, &failed) < 0) {
		if (e->code == ERROR_NONE)
			*e = failed;
		return -EBUSY; /* the entry stays: it tells where what is left is */
	}
	if (!how->dry_run)
		state_forget(state, session->id);
	how->each_entry(how->context, session->id);
	return 0;
}

int state_sweep(const struct state *state, const struct state_sweep *how, struct error *e)
{
	struct state_session at = { 0 };
	int r, failed = 0;

	while ((r = state_next(state, &at)) > 0) {
		int swept = sweep_entry(state, &at, how, e);

		failed = swept < 0 ? swept : failed;
	}
	if (r < 0)
		return error_set(e, ERROR_STATE, "session", -r, state->path,
			"cannot read the state directory");
	return failed;
}

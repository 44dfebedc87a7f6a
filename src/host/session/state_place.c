/*
 * state_place.c - see state_place.h.
 *
 * Runs in: the launcher, the supervisor and its clients, outside.
 */
#include "host/session/state_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "host/facts/facts.h"
#include "host/facts/home.h"

#define IN_HOME "/.local/state/carrel"
enum { HOME_ARENA = 1 << 20 }; /* for /etc/passwd */

int state_place_error(const char *path, int errnum, const char *what, struct error *e)
{
	int r = error_set(e, ERROR_STATE, "session", errnum, path, "%s", what);

	if (errnum == ENOSPC || errnum == EDQUOT)
		error_hint(e,
			"free some space there, or name another directory with XDG_STATE_HOME");
	else
		error_hint(e, "name a directory of your own with XDG_STATE_HOME");
	return r;
}

/* --- the places -------------------------------------------------------------------------------- */

static int join_path(char ret[STATE_PATH_MAX], const char *in, const char *name)
{
	int length = snprintf(ret, STATE_PATH_MAX, "%s%s", in, name);

	return length < 0 || length >= STATE_PATH_MAX ? -ENAMETOOLONG : 0;
}

int state_runtime_path(const char *const *environment, char ret[STATE_PATH_MAX])
{
	const char *runtime = facts_env(environment, "XDG_RUNTIME_DIR");
	char user[64];

	if (runtime && runtime[0] == '/')
		return join_path(ret, runtime, "/carrel");
	(void)snprintf(user, sizeof(user), "/run/user/%u", (unsigned)geteuid());
	return access(user, W_OK | X_OK) < 0 ? -ENOENT : join_path(ret, user, "/carrel");
}

/* `sudo` may leave another user's HOME: root makes nothing there, and believes nothing. */
static int find_own_directory(const char *path)
{
	struct stat st;

	if (!path || path[0] != '/')
		return -ENOENT;
	if (stat(path, &st) < 0)
		return error_is_own(errno) ? -errno : -ENOENT;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() ? 0 : -ENOENT;
}

int state_place_in_home(const char *home, char ret[STATE_PATH_MAX])
{
	int r = find_own_directory(home);

	return r < 0 ? r : join_path(ret, home, IN_HOME);
}

static int in_account(char ret[STATE_PATH_MAX], const char *home)
{
	struct arena a;
	struct error ignored = { 0 };
	const char *account = NULL;

	if (arena_init(&a, HOME_ARENA) < 0)
		return -ENOMEM;
	int r = home_of_account(&account, &a, home ? home : "/", &ignored);
	if (r >= 0)
		r = state_place_in_home(account, ret);
	arena_free(&a);
	return r;
}

int state_place_path(const char *const *environment, unsigned n, char ret[STATE_PATH_MAX])
{
	const char *requested = facts_env(environment, "XDG_STATE_HOME");
	const char *home = facts_env(environment, "HOME");

	switch (n) {
	case 0:
		return requested && requested[0] == '/' ? join_path(ret, requested, "/carrel")
							: -ENOENT;
	case 1:
		return state_place_in_home(home, ret);
	case STATE_IN_ACCOUNT:
		return in_account(ret, home);
	case 3:
		return state_runtime_path(environment, ret);
	case 4:
		(void)snprintf(ret, STATE_PATH_MAX, "/tmp/carrel-%u", (unsigned)geteuid());
		return 0;
	default:
		return -ENOENT;
	}
}

/* --- one of them ------------------------------------------------------------------------------- */

/*
 * Make the directory and those that are missing above it, at most three. Only its user gets in,
 * whatever the umask says.
 */
static int make_path(char *path)
{
	size_t length = strlen(path);
	unsigned cut = 0;
	int r = -ENOENT;

	while (r == -ENOENT && cut < 4) {
		r = mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
		char *slash = r == -ENOENT ? strrchr(path, '/') : NULL;
		if (!slash || slash == path)
			break;
		*slash = '\0';
		cut++;
	}
	/* Downwards again, from the one that could be made. */
	while (cut-- > 0) {
		path[strlen(path)] = '/';
		if (r >= 0 && mkdir(path, 0700) < 0 && errno != EEXIST)
			r = -errno;
	}
	return strlen(path) == length ? r : -EINVAL;
}

static int make_directory(char *path)
{
	mode_t mask = umask(077);
	int r = make_path(path);

	(void)umask(mask);
	return r;
}

static const char *what_is_wrong(int dir)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		return "cannot look at the state directory";
	if (st.st_uid != geteuid())
		return "the state directory belongs to somebody else";
	if (st.st_mode & 077)
		return "the state directory lets others in";
	return NULL;
}

/* -ENOENT and kin: there is none, and none can be made. */
static int open_place(struct state_place *s, bool make)
{
	s->dir = fd_open_at(AT_FDCWD, s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (s->dir != -ENOENT || !make)
		return s->dir < 0 ? s->dir : 0;
	int r = make_directory(s->path);
	if (r < 0)
		return r;
	s->dir = fd_open_at(AT_FDCWD, s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return s->dir < 0 ? s->dir : 0;
}

/*
 * Whether the next place of the list is tried: the machine does not give this one, and nobody has
 * forged it.
 */
static bool is_passed_over(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -EROFS || r == -EACCES || r == -EPERM;
}

int state_place_nth(struct state_place *ret, const char *const *environment, unsigned n)
{
	struct state_place s = { .dir = -1 };
	int r = state_place_path(environment, n, s.path);

	if (r < 0)
		return r;
	r = open_place(&s, false);
	if (r < 0)
		return r;
	if (what_is_wrong(s.dir)) {
		fd_close(&s.dir);
		r = -EPERM;
	}
	if (r < 0)
		return r;
	*ret = s;
	return 0;
}

/* 1: the place is used; 0: try the next one; or -errno with @e. */
static int try_place(struct state_place *s, bool make, struct error *e)
{
	int r = open_place(s, make);

	if (is_passed_over(r))
		return 0;
	if (r < 0)
		return state_place_error(s->path, -r, "cannot use the state directory", e);
	const char *wrong = what_is_wrong(s->dir);
	if (wrong) {
		fd_close(&s->dir);
		return state_place_error(s->path, 0, wrong, e);
	}
	if (faccessat(s->dir, ".", W_OK | X_OK, AT_EACCESS) == 0)
		return 1;
	fd_close(&s->dir);
	return 0;
}

int state_place_open(
	struct state_place *ret, const char *const *environment, bool make, struct error *e)
{
	struct state_place s = { .dir = -1 };
	int r = 0;

	for (unsigned n = 0; n < STATE_PLACES && r == 0; n++) {
		if (state_place_path(environment, n, s.path) < 0)
			continue;
		r = try_place(&s, make, e);
		if (n == 0) /* it was named: no other will do */
			break;
	}
	if (r == 0 && make)
		return state_place_error(
			s.path, 0, "cannot make or write the state directory", e);
	if (r < 0)
		return r;
	if (r == 0)
		s.dir = -1;
	*ret = s;
	return 0;
}

int state_place_sub(const struct state_place *s, const char *name, bool make)
{
	int fd = fd_open_at(s->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd != -ENOENT || !make)
		return fd;
	mode_t mask = umask(077);
	int r = mkdirat(s->dir, name, 0700) < 0 && errno != EEXIST ? -errno : 0;
	(void)umask(mask);
	return r < 0 ? r : fd_open_at(s->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

void state_place_close(struct state_place *s)
{
	fd_close(&s->dir);
}

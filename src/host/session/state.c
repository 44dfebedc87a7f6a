/*
 * state.c - see state.h.
 *
 * Runs in: the supervisor of a live session, and its clients.
 */
#include "host/session/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/facts/facts.h"
#include "host/tree/beneath.h"

#define LINK_SUFFIX ".record"
enum { BACKLOG = 256 };

static int state_error(const struct state *s, int errnum, const char *what, struct error *e)
{
	int r = error_set(e, ERROR_STATE, "session", errnum, s->path, "%s", what);

	error_hint(e, "name a directory of your own, mode 0700, with XDG_RUNTIME_DIR");
	return r;
}

static int check(const struct state *s, struct error *e)
{
	struct stat st;

	if (fstat(s->dir, &st) < 0)
		return state_error(s, errno, "cannot look at the directory of sockets", e);
	if (st.st_uid != geteuid())
		return state_error(
			s, 0, "the directory of sockets belongs to somebody else", e);
	if (st.st_mode & 077)
		return state_error(s, 0, "the directory of sockets lets others in", e);
	return 0;
}

/* 0700, whatever the caller's umask takes from other files. */
static int make_directory(const char *path)
{
	mode_t mask = umask(077);
	int r = mkdir(path, 0700) < 0 && errno != EEXIST ? -1 : 0;

	(void)umask(mask); /* which leaves errno as it is */
	return r;
}

/* Without a runtime directory sockets lie in the state directory, which nobody else can make first. */
static int open_in_state(
	struct state *s, const char *const *environment, bool make, struct error *e)
{
	struct state_place place;
	int r = state_place_open(&place, environment, make, e);

	if (r < 0 || place.dir < 0)
		return r;
	s->dir = state_place_sub(&place, "run", make);
	state_place_close(&place);
	r = snprintf(s->path, sizeof(s->path), "%s/run", place.path);
	if (s->dir == -ENOENT && !make) {
		s->dir = -1;
		return 0;
	}
	return s->dir < 0 || r >= (int)sizeof(s->path)
		? state_error(s, s->dir < 0 ? -s->dir : ENAMETOOLONG,
			  "cannot open the directory of sockets", e)
		: check(s, e);
}

static int open_in_runtime(struct state *s, bool make, struct error *e)
{
	/* It does not matter who made the directory: it is checked below, and a link is not followed. */
	if (make && make_directory(s->path) < 0)
		return state_error(s, errno, "cannot make the directory of sockets", e);
	s->dir = fd_open_at(AT_FDCWD, s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (s->dir == -ENOENT && !make) {
		s->dir = -1;
		return 0;
	}
	if (s->dir < 0)
		return state_error(s, -s->dir, "cannot open the directory of sockets", e);
	return check(s, e);
}

int state_open(struct state *ret, const char *const *environment, bool make, struct error *e)
{
	struct state s = { .dir = -1 };
	int r = state_runtime_path(environment, s.path);

	if (r == -ENAMETOOLONG)
		return state_error(&s, ERROR_OWN(ENAMETOOLONG),
			"the path of the directory of sockets is too long", e);
	r = r < 0 ? open_in_state(&s, environment, make, e) : open_in_runtime(&s, make, e);
	if (r < 0) {
		state_close(&s);
		return r;
	}
	*ret = s;
	return 0;
}

void state_close(struct state *s)
{
	fd_close(&s->dir);
}

static void link_name(const char *id, char ret[SESSION_ID_LENGTH + sizeof(LINK_SUFFIX)])
{
	(void)snprintf(ret, SESSION_ID_LENGTH + sizeof(LINK_SUFFIX), "%s" LINK_SUFFIX, id);
}

/* The way through the descriptor is short, however long the path is: sun_path holds only 108 bytes. */
static void set_address(const struct state *s, const char *id, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	(void)snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", s->dir, id);
}

int state_listen(
	const struct state *s, const char *id, const char *record_path, struct error *e)
{
	struct sockaddr_un address;
	char name[SESSION_ID_LENGTH + sizeof(LINK_SUFFIX)];
	autofd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return state_error(s, errno, "cannot make the control socket", e);
	set_address(s, id, &address);
	link_name(id, name);
	/* Linked first: a session that is found can be looked at. */
	if (symlinkat(record_path, s->dir, name) < 0)
		return state_error(
			s, errno, "cannot record the session in the directory of sockets", e);
	mode_t mask = umask(0177);
	int r = bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	(void)umask(mask);
	if (r == 0 && listen(fd, BACKLOG) < 0)
		r = -errno;
	if (r < 0) {
		state_forget(s, id);
		return state_error(s, -r, "cannot listen in the directory of sockets", e);
	}
	return take_fd(&fd);
}

void state_forget(const struct state *s, const char *id)
{
	char name[SESSION_ID_LENGTH + sizeof(LINK_SUFFIX)];

	link_name(id, name);
	(void)unlinkat(s->dir, id, 0);
	(void)unlinkat(s->dir, name, 0);
}

static void read_link(const struct state *s, struct state_session *session)
{
	char name[SESSION_ID_LENGTH + sizeof(LINK_SUFFIX)];

	link_name(session->id, name);
	ssize_t n = readlinkat(s->dir, name, session->record, sizeof(session->record) - 1);
	session->record[n > 0 ? n : 0] = '\0';
}

/* A session's name stands in a socket's name and in a link's: one may exist without the other. */
static bool names_session(const char *name, char ret[SESSION_ID_LENGTH + 1])
{
	size_t length = strlen(name);

	if (length != SESSION_ID_LENGTH &&
		(length != SESSION_ID_LENGTH + strlen(LINK_SUFFIX) ||
			strcmp(name + SESSION_ID_LENGTH, LINK_SUFFIX) != 0))
		return false;
	memcpy(ret, name, SESSION_ID_LENGTH);
	ret[SESSION_ID_LENGTH] = '\0';
	return session_is_id(ret);
}

/* The smallest id behind @after. The directory is read anew each time: it changes meanwhile. */
static int next_id(int fd, const char *after, char best[SESSION_ID_LENGTH + 1])
{
	_Alignas(struct beneath_entry) char buffer[2048];
	struct beneath_entry *entry;
	autofd int copy = fd_open_at(fd, ".", O_RDONLY | O_DIRECTORY, 0);
	struct beneath_list names = { .fd = copy, .buffer = buffer, .size = sizeof(buffer) };
	int r;

	if (copy < 0)
		return copy;
	best[0] = '\0';
	while ((r = beneath_next(&names, &entry)) > 0) {
		char id[SESSION_ID_LENGTH + 1];

		if (names_session(entry->name, id) && strcmp(id, after) > 0 &&
			(!best[0] || strcmp(id, best) < 0))
			memcpy(best, id, sizeof(id));
	}
	return r < 0 ? r : best[0] != '\0';
}

int state_next(const struct state *s, struct state_session *ret)
{
	char best[SESSION_ID_LENGTH + 1];

	if (s->dir < 0)
		return 0;
	int r = next_id(s->dir, ret->id, best);
	if (r <= 0)
		return r;
	memcpy(ret->id, best, sizeof(best));
	read_link(s, ret);
	return 1;
}

int state_fail_unknown(const char *id, struct error *e)
{
	int r = error_set(e, ERROR_SESSION, "session", ERROR_OWN(ENOENT), id,
		"there is no such live session");

	error_hint(e, "`carrel session list` shows all");
	return r;
}

int state_find(
	const struct state *s, const char *prefix, struct state_session *ret, struct error *e)
{
	struct state_session at = { 0 }, found = { 0 };
	const char *id = !strncmp(prefix, "carrel-", 7) ? prefix + 7 : prefix;
	int r = 0;

	if (session_is_id(id)) { /* whole: nothing to choose from, and no directory to read */
		memcpy(found.id, id, sizeof(found.id));
		read_link(s, &found);
		if (!found.record[0])
			found.id[0] = '\0';
	}
	while (!session_is_id(id) && (r = state_next(s, &at)) > 0) {
		if (strncmp(at.id, id, strlen(id)) != 0)
			continue;
		if (found.id[0]) {
			error_hint(e, "write more of it; `carrel session list` shows all");
			return error_set(e, ERROR_SESSION, "session", 0, prefix,
				"more than one session's id begins like this");
		}
		found = at;
	}
	if (r < 0)
		return state_error(s, -r, "cannot read the directory of sockets", e);
	if (!found.id[0])
		return state_fail_unknown(prefix, e);
	*ret = found;
	return 0;
}

int state_connect(const struct state *s, const char *id)
{
	struct sockaddr_un address;
	autofd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	set_address(s, id, &address);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return take_fd(&fd);
}

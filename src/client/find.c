/*
 * find.c - see find.h.
 *
 * Runs in: the client.
 */
#include "client/find.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/autofree.h"
#include "base/fd.h"
#include "box/sys.h"
#include "host/facts/facts.h"
#include "host/session/record.h"
#include "host/tree/plainfile.h"

enum { END_MS = 30000 };

static int no_session(struct error *e)
{
	int r = error_set(e, ERROR_SESSION, "session", 0, NULL, "no session is named");

	error_hint(
		e, "name it with -s ID, or in CARREL_SESSION; `carrel session list` shows all");
	return r;
}

static int not_trusted(const char *path, int errnum, const char *what, struct error *e)
{
	return error_set(e, ERROR_STATE, "session", errnum, path, "%s", what);
}

/* The link leads to the record, which is checked before it is believed. */
static int open_record(struct client_session *s, const char *path, struct error *e)
{
	const char *name = strrchr(path, '/');
	struct stat st;

	if (path[0] != '/' || strcmp(name + 1, s->id) != 0)
		return not_trusted(
			path, 0, "the state directory has no record of the session", e);
	s->record = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (s->record == -ENOENT) /* the session has ended since it was found */
		return state_fail_unknown(s->id, e);
	if (s->record < 0)
		return not_trusted(path, -s->record, "cannot open the session's record", e);
	if (fstat(s->record, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 077))
		return not_trusted(
			path, 0, "the session's record is not the caller's alone", e);
	return 0;
}

static int open_directory(struct client_session *s, const char *record_path, struct error *e)
{
	struct record_where *where = malloc(sizeof(*where));
	autofd int base = -1;
	int r = where ? record_read_where(s->record, where) : -ENOMEM;

	if (r >= 0 &&
		snprintf(s->path, sizeof(s->path), "%s%s%s", where->base,
			where->base[1] ? "/" : "", where->name) >= (int)sizeof(s->path))
		r = -ENAMETOOLONG;
	if (r < 0) {
		free(where);
		return not_trusted(record_path, -r,
			"the session's record does not say where the session is", e);
	}
	r = record_open_where(where, &base, &s->dir);
	free(where);
	if (r == -ENOENT)
		return 0; /* somebody has removed it: client_connect() fails then */
	return r < 0 ? not_trusted(s->path, -r, "cannot open the session directory", e) : 0;
}

static int find_in(
	struct client_session *s, const struct state *state, const char *id, struct error *e)
{
	struct state_session found;
	int r = state_find(state, id, &found, e);

	if (r < 0)
		return r;
	memcpy(s->id, found.id, sizeof(s->id));
	r = open_record(s, found.record, e);
	return r < 0 ? r : open_directory(s, found.record, e);
}

/* Whether this is a command of that very session: carrel sets all three variables there, a user only the first. */
static bool is_inside(const char *id, const char *const *environment)
{
	const char *own = facts_env(environment, "CARREL_SESSION");

	return own && !strcmp(own, id) && facts_env(environment, "CARREL_SCRATCH") &&
		facts_env(environment, "CARREL_TOOL_RESULTS");
}

static int fail_inside(const char *id, struct error *e)
{
	int r = error_set(e, ERROR_SESSION, "session", 0, id,
		"this is inside of the session, which cannot be reached from here");

	error_hint(e,
		"whoever started it calls this verb outside, with -s %.8s; in here, what is to stay is "
		"moved to $CARREL_WORKSPACE, and files are read and listed as usual",
		id);
	return r;
}

int client_reach(struct client_session *ret, const char *id, const char *const *environment,
	struct error *e)
{
	struct client_session s = CLIENT_NO_SESSION;
	struct error why = { 0 };
	struct state state;

	if (!id)
		id = facts_env(environment, "CARREL_SESSION");
	if (!id || !id[0])
		return no_session(e);
	int r = state_open(&state, environment, false, &why);
	if (r >= 0) {
		r = find_in(&s, &state, id, &why);
		if (r < 0)
			state_close(&state);
	}
	if (r < 0) {
		client_close(&s);
		*e = why;
		if (is_inside(id, environment)) {
			*e = (struct error){ 0 };
			r = fail_inside(id, e);
		}
		return r;
	}
	s.fd = state_connect(&state, s.id);
	if (s.fd < 0) {
		r = error_set(e, ERROR_SESSION, "session", -s.fd, s.id,
			"the session's supervisor does not answer");
		error_hint(e, "it was killed; `carrel gc` removes what it left");
	}
	state_close(&state);
	if (r < 0)
		client_close(&s);
	else
		*ret = s;
	return r;
}

int client_connect(struct client_session *ret, const char *id, const char *const *environment,
	struct error *e)
{
	int r = client_reach(ret, id, environment, e);

	if (r < 0 || ret->dir >= 0)
		return r;
	r = not_trusted(ret->path, ENOENT, "the session's directory was removed", e);
	error_hint(e, "carrel session end %.8s", ret->id);
	client_close(ret);
	return r;
}

int client_supervisor(int connection)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	return peer.pid > 0 ? (int)sys_result(syscall(SYS_pidfd_open, peer.pid, 0)) : -ESRCH;
}

void client_await_end(int pidfd)
{
	struct pollfd gone = { .fd = pidfd, .events = POLLIN };

	if (pidfd >= 0)
		(void)poll(&gone, 1, END_MS);
}

void client_close(struct client_session *s)
{
	fd_close(&s->record);
	fd_close(&s->dir);
	fd_close(&s->fd);
}

int client_output(const struct client_session *s, struct stdio_output *ret, struct error *e)
{
	uint64_t bounds[3] = { 0 };
	char text[96];
	autofd int fd = plainfile_open(s->record, "output", 0, false);
	ssize_t n = fd < 0 ? fd : fd_read_file(fd, text, sizeof(text) - 1);

	/* It is written before anybody can connect: if it is missing, the session is being removed. */
	if (n == -ENOENT)
		return error_set(e, ERROR_SESSION, "session", 0, s->id, "the session ended");
	if (n < 0 ||
		sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &bounds[0], &bounds[1],
			&bounds[2]) != 3)
		return not_trusted(s->path, n < 0 ? (int)-n : 0,
			"the session's record does not say how outputs are limited", e);
	*ret = (struct stdio_output){
		.budget = bounds[0], .max_bytes = bounds[1], .merge = bounds[2] != 0
	};
	return 0;
}

char *client_path_env(const struct client_session *s)
{
	struct stat st;
	autofd int fd = plainfile_open(s->record, "path", 0, false);
	char *text = fd >= 0 && fstat(fd, &st) == 0 ? malloc((size_t)st.st_size + 1) : NULL;

	if (text && fd_read_file(fd, text, (size_t)st.st_size) < 0) {
		free(text);
		return NULL;
	}
	return text;
}

int client_ask(const struct client_session *s, const struct control_record *request,
	const void *body, size_t size, struct control_message *answer, struct error *e)
{
	int r = control_send(s->fd, request, body, size, NULL, 0);

	/* A session that refused this client has said why. */
	if (r >= 0 || r == -EPIPE || r == -ECONNRESET)
		r = control_receive(s->fd, answer);
	if (r <= 0)
		return error_set(e, r == -EPROTONOSUPPORT ? ERROR_VERSION : ERROR_SESSION,
			"session", r < 0 ? -r : 0, s->id,
			r == -EPROTONOSUPPORT  ? "the session speaks another version"
				: r == -EAGAIN ? "the session's supervisor does not answer"
					       : "the session ended");
	if (answer->head.kind != CONTROL_ERROR)
		return 0;
	control_close_fds(answer);
	control_read_error(answer, e);
	return e && e->errnum > 0 ? -e->errnum : -EINVAL;
}

int client_open_file(const struct client_session *s, const char *path, int flags, unsigned mode,
	char *ret_path, size_t size, struct error *e)
{
	const struct control_record request = {
		.kind = CONTROL_OPEN, .number = flags & ~O_CLOEXEC, .streams = mode
	};
	autofree struct control_message *answer = malloc(sizeof(*answer));

	if (!answer)
		return error_no_memory(e, "session");
	int r = client_ask(s, &request, path, strlen(path) + 1, answer, e);
	if (r < 0)
		return r;
	if (answer->fd_count != 1)
		return error_set(e, ERROR_PATH, "session", answer->head.number, path,
			"the session cannot open this");
	if (ret_path && answer->size < size)
		memcpy(ret_path, answer->body, answer->size + 1);
	return take_fd(&answer->fds[0]);
}

/*
 * session_logs.c - see session_logs.h.
 *
 * Runs in: the client. A log is two files that the session's supervisor writes (host/serve/serve_log.c): the
 * newer one, and a full one before it. Tools cannot write them, but what is in them is theirs.
 */
#include "client/session_logs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "client/find.h"
#include "client/talk.h"
#include "host/tree/plainfile.h"

/* Without inotify the client looks at the file this often. */
enum { LOOK_MS = 250, CHUNK = 4096, CHARACTER_MAX = 4 };

struct logs {
	struct client_session session;
	struct control_message answer;
	struct error *e;
	char name[40], older[44]; /* below the session directory */
	int file;                 /* the file that is being read */
	bool visible;             /* for a terminal */
	char chunk[CHUNK];
	char rest[CHUNK +
		CHARACTER_MAX]; /* for a terminal: room also for the beginning of a character */
	size_t rest_size;
	char out[(CHUNK + CHARACTER_MAX) * 4 + 1]; /* each byte as \xNN */
};

static int fail(const struct logs *l, int r)
{
	return error_set(
		l->e, ERROR_PATH, "session", -r, l->name, "cannot read the service's log");
}

/* --- what is printed ------------------------------------------------------------------------- */

/* A character that is not whole yet waits for the next call; at the @last call it counts as its bytes. */
static int put_visible(struct logs *l, bool last)
{
	size_t at = 0, used = 0;

	while (at < l->rest_size) {
		const char *c = l->rest + at;
		size_t left = l->rest_size - at, length = text_printable_length(c, left);

		if (*c == '\n' || *c == '\t')
			length = 1;
		if (!length && !last && left < CHARACTER_MAX && (unsigned char)*c >= 0xc0)
			break;
		if (length)
			memcpy(l->out + used, c, length);
		else
			(void)snprintf(
				l->out + used, 5, "\\x%02x", (unsigned)(unsigned char)*c);
		used += length ? length : 4;
		at += length ? length : 1;
	}
	memmove(l->rest, l->rest + at, l->rest_size - at);
	l->rest_size -= at;
	return talk_result(l->out, used, l->e);
}

static int put_chunk(struct logs *l, const char *data, size_t size)
{
	if (!l->visible)
		return talk_result(data, size, l->e);
	memcpy(l->rest + l->rest_size, data, size);
	l->rest_size += size;
	return put_visible(l, false);
}

/* Print the file up to its present end. */
static int put_file(struct logs *l, int fd)
{
	int r = 0;

	while (r >= 0) {
		ssize_t n = read(fd, l->chunk, sizeof(l->chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? fail(l, -errno) : 0;
		r = put_chunk(l, l->chunk, (size_t)n);
	}
	return r;
}

/* --- the files ------------------------------------------------------------------------------- */

static bool is_same(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino &&
		x.st_dev == y.st_dev;
}

static int open_log(const struct logs *l, const char *name)
{
	return plainfile_open(l->session.dir, name, 0, false);
}

/* The newer file may become the older one meanwhile: then there is a new one in its place. */
static int begin(struct logs *l)
{
	l->file = open_log(l, l->name);
	autofd int older = open_log(l, l->older);

	if (older >= 0 && l->file >= 0 && is_same(older, l->file)) {
		fd_close(&l->file);
		l->file = open_log(l, l->name);
	}
	if (older >= 0) {
		int r = put_file(l, older);

		if (r < 0)
			return r;
	}
	if (l->file >= 0)
		return put_file(l, l->file);
	return l->file == -ENOENT ? 0 : fail(l, l->file);
}

static int tell_gap(struct logs *l)
{
	static const char gap[] =
		"\n[carrel: a part of the log is missing here: it was written "
		"faster than it was read]\n";

	return talk_result(gap, sizeof(gap) - 1, l->e);
}

/* Print what was written since the last time, also in the file that comes after this one. */
static int go_on(struct logs *l)
{
	int r = l->file >= 0 ? put_file(l, l->file) : 0;
	autofd int next = open_log(l, l->name);

	if (r < 0 || next < 0 || (l->file >= 0 && is_same(next, l->file)))
		return r;
	if (l->file >= 0) {
		autofd int older = open_log(l, l->older);

		r = put_file(l, l->file); /* what came before it was full */
		if (r >= 0 && older >= 0 && !is_same(older, l->file))
			r = tell_gap(l);
		fd_close(&l->file);
	}
	l->file = take_fd(&next);
	return r < 0 ? r : put_file(l, l->file);
}

/* --- until the service has ended ------------------------------------------------------------- */

/* Watch for the end of the service. This connection asks for nothing else, so whatever arrives means the end. */
static int watch_end(struct logs *l, uint32_t number)
{
	const struct control_record request = { .kind = CONTROL_STOP, .flag = 1 };
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", (unsigned)number);
	int r = control_send(l->session.fd, &request, text, (size_t)length + 1, NULL, 0);

	return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

/* Take the events away. It is enough to know that there were some. */
static void take_events(struct logs *l, int watch)
{
	(void)!read(watch, l->chunk, sizeof(l->chunk));
}

static int follow(struct logs *l, uint32_t number)
{
	autofd int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	autofd int results =
		fd_open_at(l->session.dir, "tool-results", O_PATH | O_DIRECTORY, 0);
	struct pollfd events[] = { { .fd = l->session.fd, .events = POLLIN },
		{ .fd = watch, .events = POLLIN } };
	char path[32];
	bool over = false;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", results);
	bool watched = watch >= 0 && results >= 0 &&
		inotify_add_watch(watch, path, IN_MODIFY | IN_CREATE | IN_MOVED_TO) >= 0;
	int r = watch_end(l, number);
	while (r >= 0 && !over) {
		r = go_on(l);
		if (r < 0)
			break;
		int n = poll(events, 2, watched ? -1 : LOOK_MS);
		if (n < 0 && errno != EINTR)
			return fail(l, -errno);
		over = n > 0 && events[0].revents;
		if (n > 0 && events[1].revents)
			take_events(l, watch);
	}
	return r < 0 ? r : go_on(l);
}

static int print(struct logs *l, const char *name, bool following)
{
	const struct control_record request = { .kind = CONTROL_LOG };
	int r = client_ask(&l->session, &request, name, strlen(name) + 1, &l->answer, l->e);

	if (r < 0)
		return r;
	unsigned number = (unsigned)l->answer.head.execution;
	control_close_fds(&l->answer);
	(void)snprintf(l->name, sizeof(l->name), "tool-results/service-%u.log", number);
	(void)snprintf(l->older, sizeof(l->older), "%s.1", l->name);
	r = begin(l);
	if (r < 0)
		return r;
	if (following)
		r = follow(l, number);
	if (r < 0)
		return r;
	if (l->visible)
		r = put_visible(l, true);
	return r;
}

int session_logs(const char *id, const char *name, bool following,
	const char *const *environment, struct error *e)
{
	struct logs *l = calloc(1, sizeof(*l));

	if (!l)
		return error_no_memory(e, "session");
	l->e = e;
	l->file = -1;
	l->visible = isatty(STDOUT_FILENO);
	l->session = CLIENT_NO_SESSION;
	int r = client_connect(&l->session, id, environment, e);
	if (r >= 0)
		r = print(l, name, following);
	client_close(&l->session);
	fd_close(&l->file);
	free(l);
	return r;
}

/*
 * agent_session.c - see agent_session.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/agent_session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/capture.h"
#include "agent/message.h"
#include "agent/pad_store.h"
#include "base/fd.h"
#include "client/find.h"

extern char **environ;

/* --- the connection --------------------------------------------------------------------------- */

static struct session_request *find_request(const struct agent_session *d, uint64_t tag)
{
	struct session_request *a = d->requests;

	while (a && a->tag != tag)
		a = a->next;
	return a;
}

/* The session is gone: tell each waiting request. A callback may remove itself or others from the list. */
static void lose(struct agent_session *d)
{
	d->lost = true;
	loop_forget(d->loop, &d->watch);
	while (d->requests) {
		struct session_request *a = d->requests;

		agent_session_forget(d, a);
		a->answer(a, NULL);
	}
}

static void receive(struct watch *w, uint32_t events)
{
	struct agent_session *d = w->context;

	(void)events;
	while (!d->lost) {
		int r = control_receive(w->fd, d->in);

		if (r == -EAGAIN)
			return;
		if (r <= 0)
			return lose(d);
		struct session_request *a = find_request(d, d->in->head.tag);

		if (a)
			a->answer(a, d->in);
		control_close_fds(d->in);
	}
}

int agent_session_send(struct agent_session *d, struct session_request *a,
	struct control_record *record, const void *body, size_t size, const int *fds,
	unsigned fd_count)
{
	if (d->lost)
		return -ECONNRESET;
	record->tag = ++d->last_tag;
	int r = control_send(d->watch.fd, record, body, size, fds, fd_count);
	if (r < 0)
		return r;
	a->tag = record->tag;
	a->next = d->requests;
	d->requests = a;
	return 0;
}

void agent_session_forget(struct agent_session *d, struct session_request *a)
{
	struct session_request **at = &d->requests;

	while (*at && *at != a)
		at = &(*at)->next;
	if (*at)
		*at = a->next;
}

/* --- beginning and end ------------------------------------------------------------------------ */

static int complain(struct error *e, int errnum, const char *what)
{
	return error_set(e, ERROR_SESSION, "session", errnum, NULL, "%s", what);
}

static int read_paths(struct agent_session *d, struct error *e)
{
	d->id = json_string_value(json_object_get(d->started, "session"));
	d->scratch = json_string_value(json_object_get(d->started, "scratch"));
	d->workspace = json_string_value(json_object_get(d->started, "workspace"));
	d->tool_results = json_string_value(json_object_get(d->started, "tool_results"));
	if (!d->id || !d->scratch || !d->workspace || !d->tool_results)
		return complain(e, ERROR_OWN(EPROTO),
			"the session was started, but did not report where it is");
	return 0;
}

static int open_places(
	struct agent_session *d, const struct client_session *session, struct error *e)
{
	int r = client_output(session, &d->output, e);

	if (r < 0)
		return r;
	d->results =
		fd_open_at(session->dir, "tool-results", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	d->pad = pad_open(session->record);
	if (d->results < 0 || d->pad < 0)
		return complain(e, d->pad < 0 ? -d->pad : -d->results,
			"the session's directory cannot be used");
	return 0;
}

static int connect_to(struct agent_session *d, struct error *e)
{
	struct client_session session;
	int r = client_connect(&session, d->id, (const char *const *)environ, e);

	if (r < 0)
		return r;
	d->watch = (struct watch){ .fd = take_fd(&session.fd), .ready = receive, .context = d };
	r = open_places(d, &session, e);
	client_close(&session);
	if (r < 0)
		return r;
	if (fcntl(d->watch.fd, F_SETFL, O_NONBLOCK) < 0)
		return complain(e, errno, "the session does not answer");
	r = loop_watch(d->loop, &d->watch, EPOLLIN);
	return r < 0 ? complain(e, -r, "cannot wait for the session") : 0;
}

int agent_session_open(
	struct agent_session *d, struct loop *loop, json_t *started, struct error *e)
{
	*d = (struct agent_session){
		.loop = loop, .watch.fd = -1, .pad = -1, .results = -1, .null = -1
	};
	d->started = json_incref(started);
	d->in = malloc(sizeof(*d->in));
	d->block = malloc(CAPTURE_BLOCK);
	d->null = fd_open_at(AT_FDCWD, "/dev/null", O_RDONLY, 0);
	d->own_user =
		geteuid() != 0; /* root's commands are another user (host/facts/identity.h) */
	int r = d->in && d->block ? read_paths(d, e)
				  : complain(e, ERROR_OWN(ENOMEM), "out of memory");

	if (r == 0 && d->null < 0)
		r = complain(e, -d->null, "cannot open /dev/null");

	if (r == 0)
		r = connect_to(d, e);
	if (r < 0)
		agent_session_close(d);
	return r;
}

void agent_session_close(struct agent_session *d)
{
	if (d->watch.added)
		loop_forget(d->loop, &d->watch);
	fd_close(&d->watch.fd);
	fd_close(&d->pad);
	fd_close(&d->results);
	fd_close(&d->null);
	free(d->block);
	d->block = NULL;
	json_decref(d->moved);
	d->moved = NULL;
	json_decref(d->started);
	d->started = NULL;
	free(d->in);
	d->in = NULL;
}

/* --- for tools -------------------------------------------------------------------------------- */

void agent_session_path(const struct agent_session *d, const char *path, struct buffer *b)
{
	if (path[0] != '/')
		buffer_format(b, "%s/", d->scratch);
	buffer_text(b, path);
}

json_t *agent_session_json(const char *text, size_t size)
{
	autobuffer struct buffer b = { 0 };

	buffer_add(&b, text, size);
	if (!b.failed && b.used > 0)
		(void)message_mend(b.data, b.used);
	return b.failed ? NULL : json_loadb(b.data, b.used, JSON_REJECT_DUPLICATES, NULL);
}

void agent_session_explain(const struct control_message *m, struct buffer *b)
{
	struct error e = { 0 };

	control_read_error(m, &e);
	buffer_text(b, e.what);
	if (e.on[0])
		buffer_format(b, ": %s", e.on);
	if (error_why(&e))
		buffer_format(b, ": %s", error_why(&e));
	if (e.hint[0])
		buffer_format(b, ". %s", e.hint);
}

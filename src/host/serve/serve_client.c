/*
 * serve_client.c - the connections of a live session's supervisor.
 *
 * Runs in: S. May not: wait for a client. One that does not take its answers is dropped.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/serve/peer.h"
#include "host/serve/server.h"

enum { LISTEN_AGAIN_NS = 100000000 };

static void refuse_peer(int fd, const struct error *e)
{
	const struct control_record none = { 0 };
	(void)!control_send_error(fd, &none, e); /* it is being sent away in any case */
}

static int place_client(struct server *s, int fd, struct error *e)
{
	for (unsigned i = 0; i < SERVER_CLIENTS; i++) {
		if (i < s->client_slots && s->clients[i].fd >= 0)
			continue;
		int r = server_watch(s, fd, SERVER_EVENT_CLIENT, i);
		if (r < 0)
			return error_set(e, ERROR_LIMIT, "session", -r, NULL,
				"the session can serve no more clients");
		s->clients[i] = (struct server_client){ .fd = fd };
		if (i == s->client_slots)
			s->client_slots++;
		s->client_count++;
		s->resting = false;
		return 0;
	}
	return error_set(e, ERROR_LIMIT, "session", ERROR_OWN(EBUSY), NULL,
		"the session serves as many clients as it can");
}

void server_accept(struct server *s)
{
	struct error e = { 0 };
	autofd int fd =
		accept4(s->settings->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		if (errno != EMFILE && errno != ENFILE && errno != ENOMEM)
			return;
		/* The listener is left out for a while, or until a client leaves: while it is
		 * ready and cannot be accepted, epoll would return at once each time. */
		if (epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->settings->listener, NULL) == 0) {
			s->listening = false;
			s->listen_ns = clock_now_ns() + LISTEN_AGAIN_NS;
		}
		return;
	}
	int r = peer_is_own(fd) ? place_client(s, fd, &e)
				: error_set(&e, ERROR_PEER, "session", ERROR_OWN(EPERM), NULL,
					  "the session belongs to another user");
	if (r < 0) {
		refuse_peer(fd, &e);
		return;
	}
	(void)take_fd(&fd);
}

/* The executions of the client end with it, except services; answers that it waited for are
 * dropped. */
static void end_executions_of(struct server *s, int index)
{
	for (unsigned i = 0; i < s->slot_count; i++) {
		struct slot *slot = &s->slots[i];

		if (slot->state == SLOT_FREE)
			continue;
		if (slot->client != index)
			continue;
		slot->client = -1;
		if (slot->detached)
			continue;
		switch (slot->state) {
		case SLOT_RUNNING:
		case SLOT_STOPPING:
			server_kill_slot(slot);
			break;
		case SLOT_PTY:
		case SLOT_LINGERS:
		case SLOT_OPENING:
			server_free_slot(s, slot);
			break;
		case SLOT_FREE:
		case SLOT_IDLE:
		case SLOT_KILLING:
			break;
		}
	}
}

void server_listen_again(struct server *s)
{
	if (s->listening || s->phase != SERVER_SERVING)
		return;
	s->listening = server_watch(s, s->settings->listener, SERVER_EVENT_LISTENER, 0) >= 0;
	s->listen_ns = clock_now_ns() + LISTEN_AGAIN_NS;
}

void server_drop_client(struct server *s, unsigned index)
{
	struct server_client *c = &s->clients[index];

	if (c->fd < 0)
		return;
	fd_close(&c->fd);
	server_allow_forget(s, index);
	*c = (struct server_client){ .fd = -1 };
	s->client_count--;
	s->idle_since_ns = clock_now_ns();
	end_executions_of(s, (int)index);
	server_listen_again(s);
}

void server_answer(struct server *s, int client, const struct control_record *record,
	const void *body, size_t size, const int *fds, unsigned fd_count)
{
	if (client < 0 || s->clients[client].fd < 0)
		return;
	if (control_send(s->clients[client].fd, record, body, size, fds, fd_count) < 0)
		server_drop_client(s, (unsigned)client);
}

void server_refuse(struct server *s, int client, const struct control_record *request,
	const struct error *e)
{
	if (client < 0 || s->clients[client].fd < 0)
		return;
	if (control_send_error(s->clients[client].fd, request, e) < 0)
		server_drop_client(s, (unsigned)client);
}

static int explain_bad_record(int r, struct error *e)
{
	if (r == -EPROTONOSUPPORT) {
		int result = error_set(e, ERROR_VERSION, "session", 0, NULL,
			"the session speaks version %d of the control protocol",
			CONTROL_VERSION);

		error_hint(e, "end it with the carrel that started it, or start a new one");
		return result;
	}
	return error_set(e, ERROR_REQUEST, "session", 0, NULL, "%s",
		r == -E2BIG ? "too many descriptors came with a request"
			    : "this is not a record of the control protocol");
}

/* Handles one record of one client; then the other clients have their turn. */
void server_client_event(struct server *s, unsigned index)
{
	struct error e = { 0 };
	int r = control_receive(s->clients[index].fd, &s->in);

	if (r == -EAGAIN)
		return;
	if (r == -EPROTO || r == -EPROTONOSUPPORT || r == -E2BIG) {
		r = explain_bad_record(r, &e);
		server_refuse(s, (int)index, &s->in.head, &e);
		r = 0;
	}
	if (r <= 0) {
		server_drop_client(s, index);
		return;
	}
	if (server_handle(s, index, &s->in, &e) < 0)
		server_refuse(s, (int)index, &s->in.head, &e);
	control_close_fds(&s->in);
}

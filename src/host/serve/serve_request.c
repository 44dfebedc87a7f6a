/*
 * serve_request.c - one table of what a client may ask of a live session.
 *
 * Runs in: S. May not: wait; look at more of a request than its size says.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "host/serve/server.h"

typedef int (*handler_fn)(
	struct server *s, unsigned client, struct control_message *m, struct error *e);

static int malformed(struct error *e)
{
	return error_set(e, ERROR_REQUEST, "session", 0, NULL,
		"the request is malformed, or out of order");
}

/* --- executions ------------------------------------------------------------------------------ */

/* The running execution that a record of the client that started it is about. */
static struct slot *find_own(
	struct server *s, unsigned client, const struct control_message *m, struct error *e)
{
	for (unsigned i = 0; i < s->slot_count; i++) {
		struct slot *slot = &s->slots[i];

		if (slot->state != SLOT_FREE && slot->state != SLOT_IDLE &&
			slot->client == (int)client && slot->number == m->head.execution &&
			slot->number)
			return slot;
	}
	(void)error_set(e, ERROR_EXECUTION, "session", ERROR_OWN(ESRCH), NULL,
		"this client has no such execution");
	return NULL;
}

static int do_start(
	struct server *s, unsigned client, struct control_message *m, struct error *e)
{
	struct slot *slot = find_own(s, client, m, e);

	if (!slot)
		return -ESRCH;
	if (!slot->has_tty)
		return malformed(e);
	return server_start_prepared(s, slot, m->head.flag != 0, e);
}

/*
 * Send @record to the command's monitor. Before the command starts and after it ends nobody takes a
 * record; a monitor that has just ended leaves one with how the command ended, which S has still to
 * read.
 */
static int pass_to_command(struct slot *slot, const struct channel_record *record)
{
	if (slot->state == SLOT_PTY || slot->state == SLOT_LINGERS)
		return 0;
	int r = server_send_monitor(slot, record);
	return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

static int do_signal(
	struct server *s, unsigned client, struct control_message *m, struct error *e)
{
	struct slot *slot = find_own(s, client, m, e);
	const struct channel_record record = {
		.kind = CHANNEL_SIGNAL, .number = m->head.number, .flag = m->head.flag != 0
	};

	if (!slot)
		return -ESRCH;
	if (m->head.number < 1 || m->head.number > 64)
		return malformed(e);
	if (m->head.number == SIGKILL && m->head.flag) {
		if (slot->state == SLOT_PTY)
			server_ask_to_end(s, slot, SIGKILL);
		else
			server_kill_slot(slot);
		return 0;
	}
	int r = pass_to_command(slot, &record);
	return r < 0 ? error_set(e, ERROR_LIMIT, "session", -r, NULL,
			       "the execution does not take the signal")
		     : 0;
}

static int do_continue(
	struct server *s, unsigned client, struct control_message *m, struct error *e)
{
	struct slot *slot = find_own(s, client, m, e);
	const struct channel_record record = { .kind = CHANNEL_CONTINUE,
		.flag = m->head.flag != 0 };

	if (!slot)
		return -ESRCH;
	int r = pass_to_command(slot, &record);
	return r < 0 ? error_set(e, ERROR_LIMIT, "session", -r, NULL,
			       "the execution cannot be continued")
		     : 0;
}

static int do_close(
	struct server *s, unsigned client, struct control_message *m, struct error *e)
{
	struct slot *slot = find_own(s, client, m, e);

	if (!slot)
		return -ESRCH;
	if (slot->state != SLOT_LINGERS)
		return malformed(e);
	server_free_slot(s, slot);
	return 0;
}

/* The name or number of a service. */
static bool is_word(const struct control_message *m)
{
	return m->size > 1 && strlen(m->body) + 1 == m->size;
}

static int no_service(const struct control_message *m, struct error *e)
{
	return error_set(e, ERROR_EXECUTION, "session", ERROR_OWN(ESRCH), m->body,
		"there is no such service in the session");
}

/* Any client of the session may stop a service, since no client waits for it. */
static int do_stop(
	struct server *s, unsigned client, struct control_message *m, struct error *e)
{
	uint64_t number = 0;
	bool counted = text_parse_count(m->body, &number) == 0;

	if (!is_word(m) || s->clients[client].stops)
		return malformed(e);
	for (unsigned i = 0; i < s->slot_count; i++) {
		struct slot *slot = &s->slots[i];

		if (!slot->detached || slot->state == SLOT_FREE ||
			(strcmp(slot->name, m->body) != 0 &&
				!(counted && slot->number == number)))
			continue;
		s->clients[client].stops = slot->number;
		s->clients[client].stop_tag = m->head.tag;
		if (!m->head.flag)
			server_ask_to_end(s, slot, SIGTERM);
		return 0;
	}
	return no_service(m, e);
}

static int do_log(struct server *s, unsigned client, struct control_message *m, struct error *e)
{
	struct control_record done = { .kind = CONTROL_DONE, .tag = m->head.tag };
	bool has_log = false;

	if (!is_word(m))
		return malformed(e);
	done.execution = server_find_log(s, m->body, &has_log);
	if (!done.execution)
		return no_service(m, e);
	if (!has_log)
		return error_set(e, ERROR_EXECUTION, "session", ERROR_OWN(ENOENT), m->body,
			"the service has no log");
	server_answer(s, (int)client, &done, NULL, 0, NULL, 0);
	return 0;
}

/* --- the session ----------------------------------------------------------------------------- */

/* The answer is one snapshot, whatever its length: between pages executions would start and end. */
static int answer_text(
	struct server *s, unsigned client, uint64_t tag, const char *text, size_t size)
{
	struct control_record record = { .kind = CONTROL_TEXT, .tag = tag };

	if (size <= CONTROL_BODY_MAX) {
		server_answer(s, (int)client, &record, text, size, NULL, 0);
		return 0;
	}
	autofd int apart = control_seal(text, size);
	if (apart < 0)
		return apart;
	record.body = CONTROL_BODY_FD;
	server_answer(s, (int)client, &record, NULL, 0, &apart, 1);
	return 0;
}

static int show(struct server *s, unsigned how, char *text, size_t size)
{
	switch (how) {
	case 0:
		return server_show(s, text, size);
	case CONTROL_SHOW_POLICY:
		return server_show_policy(s, text, size);
	case CONTROL_SHOW_NETWORK:
	case CONTROL_SHOW_NETWORK_TEXT:
		return server_show_network(s, how == CONTROL_SHOW_NETWORK, text, size);
	case CONTROL_SHOW_ALLOWED:
		return server_show_allowed(s, text, size);
	default:
		return server_show_text(s, how == 2, text, size);
	}
}

static int do_show(
	struct server *s, unsigned client, struct control_message *m, struct error *e)
{
	char *text = malloc(CONTROL_TEXT_MAX);
	int r = text ? show(s, m->head.flag, text, CONTROL_TEXT_MAX) : -ENOMEM;

	if (r >= 0)
		r = answer_text(s, client, m->head.tag, text, (size_t)r);
	free(text);
	return r < 0 ? error_set(e, ERROR_LIMIT, "session", -r, NULL,
			       "the session cannot be described")
		     : 0;
}

static int do_moved(
	struct server *s, unsigned client, struct control_message *m, struct error *e)
{
	char *text = malloc(CONTROL_TEXT_MAX);

	newpath_watch_look(&s->out->watch);
	int r = text ? server_show_moved(s, text, CONTROL_TEXT_MAX) : -ENOMEM;
	if (r >= 0)
		r = answer_text(s, client, m->head.tag, text, (size_t)r);
	free(text);
	return r < 0 ? error_set(e, ERROR_LIMIT, "session", -r, NULL,
			       "the session cannot be described")
		     : 0;
}

static int do_end(struct server *s, unsigned client, struct control_message *m, struct error *e)
{
	(void)e;
	s->clients[client].ends_session = true;
	s->clients[client].end_tag = m->head.tag;
	server_begin_end(s);
	return 0;
}

/* --- the table ------------------------------------------------------------------------------- */

static const struct {
	uint16_t kind;
	bool when_ending; /* also while the session ends */
	bool has_body, has_fds;
	handler_fn handle;
} requests[] = {
	{ CONTROL_EXEC, false, true, true, server_begin_execution },
	{ CONTROL_START, true, false, false, do_start },
	{ CONTROL_SIGNAL, true, false, false, do_signal },
	{ CONTROL_CONTINUE, true, false, false, do_continue },
	{ CONTROL_CLOSE, true, false, false, do_close },
	{ CONTROL_SHOW, true, false, false, do_show },
	{ CONTROL_STOP, true, true, false, do_stop },
	{ CONTROL_MOVED, false, false, false, do_moved },
	{ CONTROL_LOG, true, true, false, do_log },
	{ CONTROL_OPEN, false, true, false, server_open_file },
	{ CONTROL_CLASSIFY, false, true, false, server_open_file },
	{ CONTROL_END, true, false, false, do_end },
	{ CONTROL_ALLOW, false, true, false, server_allow },
};

int server_handle(struct server *s, unsigned client, struct control_message *m, struct error *e)
{
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (requests[i].kind != m->head.kind)
			continue;
		if ((m->head.body && !requests[i].has_body) ||
			(m->fd_count && !requests[i].has_fds))
			return malformed(e);
		if (s->phase != SERVER_SERVING && !requests[i].when_ending)
			return error_set(e, ERROR_ENDING, "session", ERROR_OWN(ESHUTDOWN), NULL,
				"the session is ending");
		return requests[i].handle(s, client, m, e);
	}
	return error_set(e, ERROR_REQUEST, "session", 0, NULL,
		"the session does not know this kind of request");
}

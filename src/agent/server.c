/*
 * server.c - see server.h: messages to requests, and what goes back.
 *
 * Runs in: carrel-agent, outside.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/harmless.h"
#include "agent/server_private.h"

enum era { ERA_LEGACY = 1, ERA_MODERN = 2, ERA_EARLY = 4 /* also before `initialize` */ };

struct method {
	const char *name;
	unsigned eras;
	void (*handle)(struct server *s, const struct rpc_request *a, const json_t *params);
};

static const struct method methods[] = {
	{ "initialize", ERA_LEGACY | ERA_EARLY, legacy_initialize },
	{ "ping", ERA_LEGACY | ERA_EARLY, legacy_ping },
	{ "logging/setLevel", ERA_LEGACY, legacy_set_level },
	{ "tools/list", ERA_LEGACY | ERA_MODERN, call_list_tools },
	{ "tools/call", ERA_LEGACY | ERA_MODERN, call_tool },
	{ "server/discover", ERA_MODERN, modern_discover },
	{ "subscriptions/listen", ERA_MODERN, modern_listen },
};

/* --- out -------------------------------------------------------------------------------------- */

static void batch_done(struct server *s, struct batch *b)
{
	if (--b->waiting > 0)
		return;
	if (json_array_size(b->answers) > 0)
		s->setup.send(s->setup.context, b->answers);
	json_decref(b->answers);
	free(b);
}

void server_drop(struct server *s, const struct rpc_request *a)
{
	if (a->batch)
		batch_done(s, a->batch);
}

/* @message is taken. NULL: there was no memory for it, and nothing is sent. */
static void reply(struct server *s, const struct rpc_request *a, json_t *message)
{
	if (message && a->batch)
		(void)json_array_append(a->batch->answers, message);
	else if (message)
		s->setup.send(s->setup.context, message);
	json_decref(message);
	server_drop(s, a);
}

void server_reply(struct server *s, const struct rpc_request *a, json_t *result)
{
	if (!result || (a->modern && !modern_dress(result))) {
		json_decref(result);
		server_reply_error(s, a, MESSAGE_INTERNAL_ERROR, NULL, "out of memory");
		return;
	}
	reply(s, a,
		json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", a->id, "result", result));
}

void server_reply_error(struct server *s, const struct rpc_request *a, enum message_code code,
	json_t *data, const char *format, ...)
{
	char text[512];
	autobuffer struct buffer shown = { 0 };
	va_list list;

	va_start(list, format);
	(void)vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	harmless_add(&shown, text, strlen(text));
	json_t *error = json_pack("{s:i, s:s}", "code", code, "message",
		shown.data && !shown.failed ? shown.data : "error");
	if (data)
		(void)json_object_set_new(error, "data", data);
	json_t *id = a->id ? json_incref(a->id) : json_null();
	reply(s, a, json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id", id, "error", error));
}

void server_notify(struct server *s, const char *method, json_t *params)
{
	json_t *message = params ? json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method",
					   method, "params", params)
				 : NULL;

	if (message)
		s->setup.send(s->setup.context, message);
	json_decref(message);
}

static const char *const levels[] = { "debug", "info", "notice", "warning", "error", "critical",
	"alert", "emergency" };

enum log_level server_level(const json_t *name)
{
	for (unsigned i = 0; json_is_string(name) && i < LEVEL_NONE; i++)
		if (!strcmp(levels[i], json_string_value(name)))
			return (enum log_level)i;
	return LEVEL_NONE;
}

void server_send_text(struct server *s, enum log_level level, const struct buffer *text)
{
	autobuffer struct buffer shown = { 0 };

	if (text->failed || s->setup.busy(s->setup.context))
		return;
	harmless_add(&shown, text->data, text->used);
	if (!shown.failed)
		server_notify(s, "notifications/message",
			json_pack("{s:s, s:s, s:s}", "level", levels[level], "logger", "carrel",
				"data", shown.data));
}

json_t *server_info(void)
{
	return json_pack("{s:s, s:s, s:s}", "name", "carrel", "title",
		"carrel: a desk for an agent", "version", CARREL_VERSION);
}

json_t *server_capabilities(void)
{
	return json_pack("{s:{s:b}, s:{}}", "tools", "listChanged", 0, "logging");
}

/* --- in --------------------------------------------------------------------------------------- */

static void request(struct server *s, const struct message *m, struct batch *b)
{
	struct rpc_request a = { .id = (json_t *)m->id,
		.batch = b,
		.modern = modern_is(m->params),
		.level = LEVEL_NONE };
	const struct method *method = NULL;

	if (b)
		b->waiting++;
	if (call_find(s, m->id))
		return server_reply_error(s, &a, MESSAGE_INVALID_REQUEST, NULL,
			"a request with this id is still being worked on; ids must be unique");
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (!strcmp(methods[i].name, m->method))
			method = &methods[i];
	if (a.modern && !modern_check(s, &a, m->params))
		return;
	if (!method || (a.modern && !(method->eras & ERA_MODERN)))
		return server_reply_error(s, &a, MESSAGE_NO_METHOD, NULL,
			"there is no such method: %.100s", m->method);
	if (!a.modern && !(method->eras & ERA_LEGACY))
		return server_reply_error(s, &a, MESSAGE_INVALID_PARAMS, NULL,
			"`params._meta` must name the revision of the protocol");
	if (!a.modern && s->revision < 0 && !(method->eras & ERA_EARLY))
		return server_reply_error(s, &a, MESSAGE_INVALID_REQUEST, NULL,
			"not initialized: send `initialize` first");
	if (b && method->handle == legacy_initialize)
		return server_reply_error(s, &a, MESSAGE_INVALID_REQUEST, NULL,
			"`initialize` must not be part of a batch");
	method->handle(s, &a, m->params);
}

static void notification(struct server *s, const struct message *m)
{
	if (!strcmp(m->method, "notifications/cancelled")) {
		struct call *c = call_find(s, json_object_get(m->params, "requestId"));

		if (c)
			call_cancel(c);
	} else if (s->revision >= 0 && !strcmp(m->method, "notifications/initialized")) {
		if (!s->ready)
			legacy_ask_roots(s);
		s->ready = true;
	} else if (s->ready && !strcmp(m->method, "notifications/roots/list_changed")) {
		legacy_ask_roots(s);
	}
}

static void bad_message(struct server *s, const struct message *m, struct batch *b)
{
	const struct rpc_request a = { .id = (json_t *)m->id, .batch = b };

	if (b)
		b->waiting++;
	server_reply_error(s, &a, m->code, NULL, "%s", m->why);
}

static void one(struct server *s, const struct message *m, struct batch *b)
{
	switch (m->kind) {
	case MESSAGE_REQUEST:
		return request(s, m, b);
	case MESSAGE_NOTIFICATION:
		return notification(s, m);
	case MESSAGE_RESPONSE:
		return legacy_response(s, m);
	case MESSAGE_BATCH:
	case MESSAGE_BAD:
		return bad_message(s, m, b);
	}
}

static void whole_batch(struct server *s, const json_t *value)
{
	struct message m = {
		.code = MESSAGE_INVALID_REQUEST,
		.why = "this revision of the protocol has no batches: send each message on its own line"
	};
	struct batch *b = NULL;
	size_t i;
	json_t *each;

	if (s->revision >= REVISION_2025_03_26)
		b = calloc(1, sizeof(*b));
	if (b)
		b->answers = json_array();
	if (!b || !b->answers) {
		free(b);
		return bad_message(s, &m, NULL);
	}
	b->waiting = 1;
	json_array_foreach(value, i, each)
	{
		message_read(each, &m);
		if (m.kind == MESSAGE_BATCH) {
			m.code = MESSAGE_INVALID_REQUEST;
			m.why = "a batch must not contain a batch";
		}
		one(s, &m, b);
	}
	batch_done(s, b);
}

void server_line(struct server *s, const char *line, size_t size, int64_t now_ms)
{
	struct message m = { .kind = MESSAGE_BAD };
	char why[200];

	s->now_ms = now_ms;
	if (message_is_blank(line, size))
		return;
	json_t *value = message_parse(line, size, &m.code, why, sizeof(why));
	if (!value) {
		m.why = why;
		return bad_message(s, &m, NULL);
	}
	message_read(value, &m);
	if (m.kind == MESSAGE_BATCH)
		whole_batch(s, value);
	else
		one(s, &m, NULL);
	json_decref(value);
}

void server_long_line(struct server *s)
{
	const struct message m = {
		.code = MESSAGE_INVALID_REQUEST,
		.why = "a message must not be longer than 16 MiB; write a large file in pieces"
	};

	bad_message(s, &m, NULL);
}

/* --- the whole -------------------------------------------------------------------------------- */

struct server *server_new(const struct server_setup *setup)
{
	struct server *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->setup = *setup;
	s->revision = -1;
	s->level = LEVEL_WARNING;
	return s;
}

void server_free(struct server *s)
{
	if (!s)
		return;
	json_decref(s->client);
	json_decref(s->roots);
	free(s);
}

json_t *server_describe(const struct server *s)
{
	json_t *roots = s->roots ? json_incref(s->roots) : json_array();

	return json_pack("{s:s, s:i, s:o}", "revision",
		s->revision < 0 ? MODERN_REVISION : legacy_revision(s->revision), "calls",
		(int)server_calls(s), "roots", roots);
}

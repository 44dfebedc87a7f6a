/*
 * server_call.c - tools: listed, called, cancelled; see server.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/harmless.h"
#include "agent/server_private.h"

enum { PROGRESS_MS = 1000, TTL_MS = 3600 * 1000 };

/* --- the list --------------------------------------------------------------------------------- */

static json_t *hints(const struct tool *t)
{
	return json_pack("{s:s, s:b, s:b, s:b, s:b}", "title", t->title, "readOnlyHint",
		!!(t->hints & TOOL_READ_ONLY), "destructiveHint",
		!!(t->hints & TOOL_DESTRUCTIVE), "idempotentHint",
		!!(t->hints & TOOL_IDEMPOTENT), "openWorldHint",
		!!(t->hints & TOOL_OPEN_WORLD));
}

/* Leave out a field that the client's revision of MCP does not know. */
static json_t *describe(const struct tool *t, bool annotations, bool structured)
{
	json_t *tool = json_pack("{s:s, s:s, s:o}", "name", t->name, "description",
		t->description, "inputSchema", field_schema(t->input, true));
	int r = tool ? 0 : -1;

	if (tool && annotations)
		r |= json_object_set_new(tool, "annotations", hints(t));
	if (tool && structured) {
		r |= json_object_set_new(tool, "title", json_string(t->title));
		r |= json_object_set_new(tool, "outputSchema", field_schema(t->output, false));
	}
	if (r == 0)
		return tool;
	json_decref(tool);
	return NULL;
}

void call_list_tools(struct server *s, const struct rpc_request *a, const json_t *params)
{
	const json_t *cursor = json_object_get(params, "cursor");
	json_t *result = json_object(), *tools = json_array();
	int r = 0;

	if (cursor && !json_is_null(cursor)) {
		json_decref(result);
		json_decref(tools);
		return server_reply_error(s, a, MESSAGE_INVALID_PARAMS, NULL,
			"there is no such cursor: the list has one page");
	}
	for (size_t i = 0; i < s->setup.tool_count; i++)
		r |= json_array_append_new(tools,
			describe(s->setup.tools[i],
				a->modern || s->revision <= REVISION_2025_03_26,
				a->modern || s->revision <= REVISION_2025_06_18));
	r |= json_object_set_new(result, "tools", tools);
	if (a->modern) {
		r |= json_object_set_new(result, "ttlMs", json_integer(TTL_MS));
		r |= json_object_set_new(result, "cacheScope", json_string("private"));
	}
	if (r < 0) {
		json_decref(result);
		result = NULL;
	}
	server_reply(s, a, result);
}

/* --- calls ------------------------------------------------------------------------------------ */

struct call *call_new(struct server *s, const struct rpc_request *a)
{
	struct call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->server = s;
	c->request = *a;
	(void)json_incref(c->request.id);
	c->started_ms = c->progress_ms = s->now_ms;
	c->next = s->calls;
	s->calls = c;
	return c;
}

static void call_free(struct call *c)
{
	struct call **at = &c->server->calls;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	json_decref(c->request.id);
	json_decref(c->arguments);
	json_decref(c->token);
	free(c);
}

struct call *call_find(const struct server *s, const json_t *id)
{
	for (struct call *c = s->calls; c && id; c = c->next)
		if (json_equal(c->request.id, id))
			return c;
	return NULL;
}

unsigned server_calls(const struct server *s)
{
	unsigned count = 0;

	for (const struct call *c = s->calls; c; c = c->next)
		count++;
	return count;
}

/* A call that did not begin is answered with a result, not a protocol error, so that the model sees why. */
static void refuse_early(struct server *s, const struct rpc_request *a, const char *why)
{
	server_reply(s, a,
		json_pack("{s:[{s:s, s:s}], s:b}", "content", "type", "text", "text", why,
			"isError", 1));
}

static const struct tool *find_tool(const struct server *s, const char *name)
{
	for (size_t i = 0; i < s->setup.tool_count; i++)
		if (!strcmp(s->setup.tools[i]->name, name))
			return s->setup.tools[i];
	return NULL;
}

/* The token of progress: a text or a number; anything else counts as none. */
static json_t *progress_token(const json_t *params)
{
	json_t *token = json_object_get(json_object_get(params, "_meta"), "progressToken");

	return json_is_string(token) || json_is_number(token) ? json_incref(token) : NULL;
}

void call_tool(struct server *s, const struct rpc_request *a, const json_t *params)
{
	const char *name = json_string_value(json_object_get(params, "name"));
	json_t *arguments = json_object_get(params, "arguments");
	const struct tool *tool = name ? find_tool(s, name) : NULL;
	autobuffer struct buffer why = { 0 };

	if (!name)
		return server_reply_error(
			s, a, MESSAGE_INVALID_PARAMS, NULL, "`name` must be a string");
	if (!tool)
		return server_reply_error(
			s, a, MESSAGE_INVALID_PARAMS, NULL, "Unknown tool: %.100s", name);
	if (arguments && !json_is_object(arguments) && !json_is_null(arguments))
		return server_reply_error(
			s, a, MESSAGE_INVALID_PARAMS, NULL, "`arguments` must be an object");
	arguments = json_is_object(arguments) ? json_incref(arguments) : json_object();
	if (!tool->free_form && field_check(tool->input, arguments, &why) < 0) {
		json_decref(arguments);
		return refuse_early(s, a, why.failed ? "out of memory" : why.data);
	}
	struct call *c = server_calls(s) < SERVER_CALLS_MAX ? call_new(s, a) : NULL;
	if (!c) {
		json_decref(arguments);
		return refuse_early(s, a,
			"32 calls are under way already: wait until one of them "
			"has ended, then call again");
	}
	c->tool = tool;
	c->arguments = arguments;
	c->token = progress_token(params);
	tool->start(c, arguments);
}

void call_cancel(struct call *c)
{
	if (c->cancelled)
		return;
	c->cancelled = true;
	if (!c->tool)
		call_free(c);
	else if (c->tool->cancel)
		c->tool->cancel(c);
}

void server_cancel_all(struct server *s)
{
	struct call *c = s->calls;

	while (c) { /* a cancelled call may be gone at once: then begin again */
		if (c->cancelled) {
			c = c->next;
			continue;
		}
		call_cancel(c);
		c = s->calls;
	}
}

/* --- progress --------------------------------------------------------------------------------- */

static bool wants_progress(const struct call *c)
{
	return c->token && !c->cancelled && c->tool && c->tool->progress;
}

void server_tick(struct server *s, int64_t now_ms)
{
	s->now_ms = now_ms;
	for (struct call *c = s->calls; c; c = c->next) {
		autobuffer struct buffer text = { 0 };

		if (!wants_progress(c) || now_ms - c->progress_ms < PROGRESS_MS)
			continue;
		c->progress_ms = now_ms;
		c->tool->progress(c, &text);
		if (text.failed || s->setup.busy(s->setup.context))
			continue;
		server_notify(s, "notifications/progress",
			json_pack("{s:O, s:f, s:s}", "progressToken", c->token, "progress",
				(double)(now_ms - c->started_ms) / 1000.0, "message",
				text.data ? text.data : ""));
	}
}

int server_wait_ms(const struct server *s, int64_t now_ms)
{
	int64_t least = -1;

	for (const struct call *c = s->calls; c; c = c->next) {
		int64_t left = c->progress_ms + PROGRESS_MS - now_ms;

		if (!wants_progress(c))
			continue;
		left = left < 0 ? 0 : left;
		least = least < 0 || left < least ? left : least;
	}
	return (int)least;
}

/* --- for tools -------------------------------------------------------------------------------- */

void *call_context(const struct call *c)
{
	return c->server->setup.tool_context;
}

struct server *call_server(const struct call *c)
{
	return c->server;
}

void call_set_work(struct call *c, void *work)
{
	c->work = work;
}

void *call_work(const struct call *c)
{
	return c->work;
}

int64_t call_started_ms(const struct call *c)
{
	return c->started_ms;
}

void call_answer(struct call *c, json_t *content, json_t *structured, bool is_error)
{
	struct server *s = c->server;
	bool shows = c->request.modern || s->revision <= REVISION_2025_06_18;
	json_t *result = content
		? json_pack("{s:o, s:b}", "content", content, "isError", is_error)
		: NULL;

	if (result && structured && shows &&
		json_object_set(result, "structuredContent", structured) < 0) {
		json_decref(result);
		result = NULL;
	}
	json_decref(structured);
	if (c->cancelled) {
		json_decref(result);
		server_drop(s, &c->request);
	} else {
		server_reply(s, &c->request, result);
	}
	call_free(c);
}

void call_answer_text(struct call *c, const struct buffer *text, json_t *structured)
{
	json_t *content = text->failed ? NULL
				       : json_pack("[{s:s, s:s%}]", "type", "text", "text",
						 text->data ? text->data : "", text->used);

	call_answer(c, content, structured, false);
}

void call_refuse(struct call *c, const char *format, ...)
{
	autobuffer struct buffer text = { 0 }, shown = { 0 };
	va_list list;

	va_start(list, format);
	int length = vsnprintf(NULL, 0, format, list);
	va_end(list);
	if (length > 0 && buffer_reserve(&text, (size_t)length)) {
		va_start(list, format);
		(void)vsnprintf(text.data, (size_t)length + 1, format, list);
		va_end(list);
		text.used = (size_t)length;
	}
	harmless_add(&shown, text.data, text.used);
	json_t *content = shown.failed
		? NULL
		: json_pack("[{s:s, s:s%}]", "type", "text", "text", shown.data, shown.used);

	call_answer(c, content, NULL, true);
}

void call_log(struct call *c, enum log_level level, const char *format, ...)
{
	autobuffer struct buffer text = { 0 };
	enum log_level wanted = c->request.modern ? c->request.level : c->server->level;
	char line[1024];
	va_list list;

	if (c->cancelled || level < wanted)
		return;
	va_start(list, format);
	(void)vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	buffer_text(&text, line);
	server_send_text(c->server, level, &text);
}

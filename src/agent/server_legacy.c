/*
 * server_legacy.c - the revisions that begin with `initialize`; see server.h.
 *
 * Runs in: carrel-agent, outside.
 *
 * Roots are what the user works on, as the client sees it. The tool `status` shows them, and they
 * change nothing: the policy decided what the session may do before the client said a word.
 */
#include <stdio.h>
#include <string.h>

#include "agent/harmless.h"
#include "agent/server_private.h"

enum { ROOTS_MAX = 100, ROOT_BYTES_MAX = 4096 };

static const char *const revisions[REVISIONS] = {
	[REVISION_2025_11_25] = "2025-11-25",
	[REVISION_2025_06_18] = "2025-06-18",
	[REVISION_2025_03_26] = "2025-03-26",
	[REVISION_2024_11_05] = "2024-11-05",
};

const char *legacy_revision(int revision)
{
	return revisions[revision];
}

void legacy_initialize(struct server *s, const struct rpc_request *a, const json_t *params)
{
	const json_t *version = json_object_get(params, "protocolVersion");
	json_t *capabilities = json_object_get(params, "capabilities");
	int revision =
		REVISION_2025_11_25; /* the server offers this if it does not know the client's */

	if (s->revision >= 0)
		return server_reply_error(
			s, a, MESSAGE_INVALID_REQUEST, NULL, "already initialized");
	if (!json_is_string(version))
		return server_reply_error(s, a, MESSAGE_INVALID_PARAMS, NULL,
			"`protocolVersion` must be a string");
	if (capabilities && !json_is_object(capabilities))
		return server_reply_error(
			s, a, MESSAGE_INVALID_PARAMS, NULL, "`capabilities` must be an object");
	for (int i = 0; i < REVISIONS; i++)
		if (!strcmp(revisions[i], json_string_value(version)))
			revision = i;
	json_t *result = json_pack("{s:s, s:o, s:o}", "protocolVersion", revisions[revision],
		"capabilities", server_capabilities(), "serverInfo", server_info());

	if (result && s->setup.instructions &&
		json_object_set_new(
			result, "instructions", json_string(s->setup.instructions)) < 0) {
		json_decref(result);
		result = NULL;
	}
	if (result) {
		s->revision = revision;
		s->client = json_incref(capabilities);
	}
	server_reply(s, a, result);
}

void legacy_ping(struct server *s, const struct rpc_request *a, const json_t *params)
{
	(void)params;
	server_reply(s, a, json_object());
}

void legacy_set_level(struct server *s, const struct rpc_request *a, const json_t *params)
{
	enum log_level level = server_level(json_object_get(params, "level"));

	if (level == LEVEL_NONE)
		return server_reply_error(s, a, MESSAGE_INVALID_PARAMS, NULL,
			"`level` must be one of debug, info, notice, warning, error, critical, "
			"alert, emergency");
	s->level = level;
	server_reply(s, a, json_object());
}

/* --- roots ------------------------------------------------------------------------------------ */

void legacy_ask_roots(struct server *s)
{
	char id[40];

	if (!json_is_object(json_object_get(s->client, "roots")))
		return;
	(void)snprintf(id, sizeof(id), "carrel-roots-%lld", (long long)++s->roots_requested);
	json_t *message = json_pack(
		"{s:s, s:s, s:s}", "jsonrpc", "2.0", "id", id, "method", "roots/list");

	if (message)
		s->setup.send(s->setup.context, message);
	json_decref(message);
}

/* A new array of the addresses, made harmless; NULL without memory. */
static json_t *addresses(const json_t *offered)
{
	json_t *list = json_array(), *each;
	size_t i;

	json_array_foreach(offered, i, each)
	{
		const json_t *uri = json_object_get(each, "uri");
		autobuffer struct buffer shown = { 0 };

		if (i == ROOTS_MAX)
			break;
		if (!json_is_string(uri) || json_string_length(uri) > ROOT_BYTES_MAX)
			continue;
		harmless_add(&shown, json_string_value(uri), json_string_length(uri));
		if (!shown.failed)
			(void)json_array_append_new(list, json_string(shown.data));
	}
	return list;
}

/* Pass over answers to older questions or to none, and errors: a client that sends one has no roots. */
void legacy_response(struct server *s, const struct message *m)
{
	const json_t *offered = json_object_get(m->result, "roots");
	char id[40];

	(void)snprintf(id, sizeof(id), "carrel-roots-%lld", (long long)s->roots_requested);
	if (s->roots_requested == 0 || !json_is_string(m->id) ||
		strcmp(json_string_value(m->id), id) != 0 || !json_is_array(offered))
		return;
	json_t *list = addresses(offered);

	if (list) {
		json_decref(s->roots);
		s->roots = list;
	}
}

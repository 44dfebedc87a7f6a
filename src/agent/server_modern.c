/*
 * server_modern.c - revision 2026-07-28, in which every request speaks for itself; see server.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include <string.h>

#include "agent/server_private.h"

#define META "io.modelcontextprotocol/"

/* How long a client may keep the list of tools: it stays the same while the program runs, for the one user who runs it. */
enum { TTL_MS = 3600 * 1000 };

bool modern_is(const json_t *params)
{
	return json_object_get(json_object_get(params, "_meta"), META "protocolVersion") !=
		NULL;
}

bool modern_check(struct server *s, struct rpc_request *a, const json_t *params)
{
	const json_t *meta = json_object_get(params, "_meta");
	const json_t *version = json_object_get(meta, META "protocolVersion");
	const json_t *level = json_object_get(meta, META "logLevel");

	if (!json_is_string(version)) {
		server_reply_error(s, a, MESSAGE_INVALID_PARAMS, NULL,
			"`_meta." META "protocolVersion` must be a string");
		return false;
	}
	if (strcmp(json_string_value(version), MODERN_REVISION) != 0) {
		server_reply_error(s, a, MESSAGE_UNSUPPORTED_VERSION,
			json_pack("{s:[s], s:O}", "supported", MODERN_REVISION, "requested",
				version),
			"Unsupported protocol version");
		return false;
	}
	if (!json_is_object(json_object_get(meta, META "clientCapabilities"))) {
		server_reply_error(s, a, MESSAGE_INVALID_PARAMS, NULL,
			"`_meta." META "clientCapabilities` must be an object");
		return false;
	}
	a->level = server_level(level);
	if (level && a->level == LEVEL_NONE) {
		server_reply_error(s, a, MESSAGE_INVALID_PARAMS, NULL,
			"`_meta." META "logLevel` is not a level");
		return false;
	}
	return true;
}

bool modern_dress(json_t *result)
{
	json_t *meta = json_object_get(result, "_meta");

	if (!meta && json_object_set_new(result, "_meta", json_object()) < 0)
		return false;
	meta = json_object_get(result, "_meta");
	return json_object_set_new(result, "resultType", json_string("complete")) == 0 &&
		json_object_set_new(meta, META "serverInfo", server_info()) == 0;
}

void modern_discover(struct server *s, const struct rpc_request *a, const json_t *params)
{
	json_t *result = json_pack("{s:[s], s:o, s:i, s:s}", "supportedVersions",
		MODERN_REVISION, "capabilities", server_capabilities(), "ttlMs", TTL_MS,
		"cacheScope", "private");

	(void)params;
	if (result && s->setup.instructions &&
		json_object_set_new(
			result, "instructions", json_string(s->setup.instructions)) < 0) {
		json_decref(result);
		result = NULL;
	}
	server_reply(s, a, result);
}

/* Nothing here changes, so the subscription is granted, but to no kind of notification. */
void modern_listen(struct server *s, const struct rpc_request *a, const json_t *params)
{
	if (!json_is_object(json_object_get(params, "notifications")))
		return server_reply_error(s, a, MESSAGE_INVALID_PARAMS, NULL,
			"`notifications` must be an object");
	if (server_calls(s) >= SERVER_CALLS_MAX || !call_new(s, a))
		return server_reply_error(
			s, a, MESSAGE_INTERNAL_ERROR, NULL, "too many requests at once");
	server_notify(s, "notifications/subscriptions/acknowledged",
		json_pack("{s:{s:O}, s:{}}", "_meta", META "subscriptionId", a->id,
			"notifications"));
}

/*
 * server_private.h - what the parts of the server share.
 *
 * Runs in: carrel-agent, outside. Only for server*.c.
 */
#pragma once

#include "agent/message.h"
#include "agent/server.h"

/* The legacy revisions, newest first; `revision` is an index of these. */
enum {
	REVISION_2025_11_25,
	REVISION_2025_06_18,
	REVISION_2025_03_26,
	REVISION_2024_11_05,
	REVISIONS
};

#define MODERN_REVISION "2026-07-28"

/* The answers of a batch (revision 2025-03-26): sent together when the last is there. */
struct batch {
	json_t *answers;  /* an array */
	unsigned waiting; /* requests without an answer, and 1 while the batch is being read */
};

/* A request being answered: where its answer goes, and in which form. */
struct rpc_request {
	json_t *id;          /* a reference */
	struct batch *batch; /* or NULL */
	bool modern;
	enum log_level level; /* modern: of this request */
};

struct call {
	struct server *server;
	struct call *next;
	struct rpc_request request;
	const struct tool *tool; /* NULL: a subscription, which never ends by itself */
	json_t *arguments;       /* a reference, or NULL */
	json_t *token;           /* of progress; a reference, or NULL */
	void *work;
	int64_t started_ms, progress_ms; /* when it came; when progress was last sent */
	bool cancelled;                  /* nothing more may be sent about it */
};

struct server {
	struct server_setup setup;
	struct call *calls;
	int revision;            /* legacy: -1 before `initialize` */
	bool ready;              /* notifications/initialized came */
	enum log_level level;    /* legacy */
	json_t *client;          /* legacy: its capabilities */
	json_t *roots;           /* what it offered, an array; NULL: nothing */
	int64_t roots_requested; /* number of the last question */
	int64_t now_ms;
};

/* --- server.c: replies ------------------------------------------------------------------------ */

/* server_reply - @result is taken; NULL (no memory) becomes an internal error. */
void server_reply(struct server *s, const struct rpc_request *a, json_t *result);

/* server_reply_error - @data is taken, and may be NULL. */
void server_reply_error(struct server *s, const struct rpc_request *a, enum message_code code,
	json_t *data, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* server_drop - send nothing, as for a cancelled request; in a batch the request counts as absent. */
void server_drop(struct server *s, const struct rpc_request *a);

/* server_notify - @params is taken; NULL (no memory) sends nothing. */
void server_notify(struct server *s, const char *method, json_t *params);

/* server_send_text - a log message, sent. */
void server_send_text(struct server *s, enum log_level level, const struct buffer *text);

/* server_level - the level called @name; LEVEL_NONE: there is no such level. */
enum log_level server_level(const json_t *name);

/* server_info - name and version of this program: a new reference. */
json_t *server_info(void);

/* server_capabilities - a new reference. */
json_t *server_capabilities(void);

/* --- server_legacy.c -------------------------------------------------------------------------- */

/* legacy_initialize, legacy_ping, legacy_set_level - requests. */
void legacy_initialize(struct server *s, const struct rpc_request *a, const json_t *params);
void legacy_ping(struct server *s, const struct rpc_request *a, const json_t *params);
void legacy_set_level(struct server *s, const struct rpc_request *a, const json_t *params);

/* legacy_ask_roots - ask the client for its roots, if it has any. */
void legacy_ask_roots(struct server *s);

/* legacy_response - the client has sent a response. */
void legacy_response(struct server *s, const struct message *m);

/* legacy_revision - the name of a revision. */
const char *legacy_revision(int revision);

/* --- server_modern.c -------------------------------------------------------------------------- */

/* modern_is - whether the request names its revision itself. */
bool modern_is(const json_t *params);

/* modern_check - check the `_meta` of a request. False: it was refused, and the client was told. */
bool modern_check(struct server *s, struct rpc_request *a, const json_t *params);

/* modern_dress - add what every modern result has. False: memory ran out. */
bool modern_dress(json_t *result);

/* modern_discover, modern_listen - requests. */
void modern_discover(struct server *s, const struct rpc_request *a, const json_t *params);
void modern_listen(struct server *s, const struct rpc_request *a, const json_t *params);

/* --- server_call.c ---------------------------------------------------------------------------- */

/* call_list_tools, call_tool - requests. */
void call_list_tools(struct server *s, const struct rpc_request *a, const json_t *params);
void call_tool(struct server *s, const struct rpc_request *a, const json_t *params);

/* call_new - a call that is under way; it keeps the request's id. NULL: memory ran out. */
struct call *call_new(struct server *s, const struct rpc_request *a);

/* call_find - the call to which the client gave this id, or NULL. */
struct call *call_find(const struct server *s, const json_t *id);

/* call_cancel - the client cancelled it. */
void call_cancel(struct call *c);

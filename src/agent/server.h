/*
 * server.h - the Model Context Protocol: lines of a client in, messages out, tools called.
 *
 * Runs in: carrel-agent, outside. May not: read, write or wait. Its caller gives it each line and the time, and it
 * gives its messages to `send`. It knows nothing of sessions: the tools do.
 *
 * It speaks two eras of the protocol, and the client's first words choose (revision 2026-07-28,
 * "Backward Compatibility with Initialization-Based Versions"):
 *   legacy  2024-11-05 to 2025-11-25: `initialize` negotiates a revision for the connection
 *   modern  2026-07-28: each request names its revision in `_meta`, and nothing is negotiated
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/buffer.h"
#include "agent/field.h"

#define SERVER_CALLS_MAX 32 /* tool calls at once */

struct server;
struct call;

enum tool_hint {
	TOOL_READ_ONLY = 1 << 0,
	TOOL_DESTRUCTIVE = 1 << 1,
	TOOL_IDEMPOTENT = 1 << 2,
	TOOL_OPEN_WORLD = 1 << 3
};

struct tool {
	const char *name, *title, *description;
	const struct field *input, *output;
	unsigned hints;
	bool free_form; /* `input` is shown but not checked: the tool checks it itself */
	/*
	 * Begin with @arguments, an object that `input` was checked against and that lives as long
	 * as the call. Every call ends in exactly one call_...answer() or call_refuse(), now or later.
	 */
	void (*start)(struct call *c, const json_t *arguments);
	/* The client does not want it any more, or is gone: end soon. NULL: the tool never takes long. */
	void (*cancel)(struct call *c);
	/* Say in a line how far it is, for a progress notification. NULL: the tool never takes long. */
	void (*progress)(struct call *c, struct buffer *ret_text);
};

/* The levels of syslog(3), the least first; LEVEL_NONE: the client wants no messages. */
enum log_level {
	LEVEL_DEBUG,
	LEVEL_INFO,
	LEVEL_NOTICE,
	LEVEL_WARNING,
	LEVEL_ERROR,
	LEVEL_CRITICAL,
	LEVEL_ALERT,
	LEVEL_EMERGENCY,
	LEVEL_NONE
};

struct server_setup {
	const struct tool *const *tools;
	size_t tool_count;
	const char *instructions; /* borrowed; NULL: none */
	void *tool_context;       /* what the tools work on: call_context() */
	/* One message, to be written as one line. It is borrowed. */
	void (*send)(void *context, const json_t *message);
	/* Whether the client is slow: then progress and logging are left out. */
	bool (*busy)(void *context);
	void *context;
};

/* server_new - @setup is copied; what it points at is borrowed. NULL without memory. */
struct server *server_new(const struct server_setup *setup);

/* server_free - forgets calls that are under way; to call it then is an error in this program. */
void server_free(struct server *s);

/* server_line - one line of the client, at @now_ms on the monotonic clock. */
void server_line(struct server *s, const char *line, size_t size, int64_t now_ms);

/* server_long_line - the client sent a line that is longer than MESSAGE_MAX; it is skipped. */
void server_long_line(struct server *s);

/* server_tick - send the progress notifications that are due. */
void server_tick(struct server *s, int64_t now_ms);

/* server_wait_ms - until server_tick() has something to do; -1: nothing waits. */
int server_wait_ms(const struct server *s, int64_t now_ms);

/* server_calls - how many calls are under way. */
unsigned server_calls(const struct server *s);

/* server_cancel_all - the client is gone: cancel every call. Each still ends with an answer, which is not sent. */
void server_cancel_all(struct server *s);

/* server_describe - what the tool `status` says of the client: a new reference, or NULL. */
json_t *server_describe(const struct server *s);

/* --- for tools -------------------------------------------------------------------------------- */

/* call_context - the server's tool_context (struct server_setup). */
void *call_context(const struct call *c);

/* call_server - the server that the call came to. */
struct server *call_server(const struct call *c);

/* call_set_work, call_work - what the tool keeps for this call; it is the tool's to free. */
void call_set_work(struct call *c, void *work);
void *call_work(const struct call *c);

/* call_started_ms - when it came, monotonic clock. */
int64_t call_started_ms(const struct call *c);

/*
 * call_answer - the call is over. @content: an array of content items; @structured: an object, or
 * NULL. Both references are taken. A NULL @content says that memory ran out. @c is gone after it.
 */
void call_answer(struct call *c, json_t *content, json_t *structured, bool is_error);

/* call_answer_text - the same with one text, which must be valid UTF-8 and harmless already. */
void call_answer_text(struct call *c, const struct buffer *text, json_t *structured);

/* call_refuse - end the call as failed; the text tells the model what to do next. */
void call_refuse(struct call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* call_log - send a log message about this call, if the client wants those of @level. */
void call_log(struct call *c, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

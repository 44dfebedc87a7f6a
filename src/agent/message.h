/*
 * message.h - one line of the client as a JSON-RPC 2.0 message, or as what is wrong with it.
 *
 * Runs in: carrel-agent, outside. PURE. May not: let a text cost much more memory than it is long:
 * it counts nesting and values before it builds anything.
 *
 * Stricter than JSON where a loose reading has two meanings: a name may stand once in an object, texts
 * are strict UTF-8, an id is a text or an integer.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define MESSAGE_MAX ((size_t)16 << 20) /* bytes of a line */
#define MESSAGE_DEPTH_MAX 64
#define MESSAGE_VALUES_MAX 100000
#define MESSAGE_BATCH_MAX 100
#define MESSAGE_ID_MAX 1024 /* bytes of an id that is a text */

/* JSON-RPC 2.0, section 5.1; and what MCP adds. */
enum message_code {
	MESSAGE_PARSE_ERROR = -32700,
	MESSAGE_INVALID_REQUEST = -32600,
	MESSAGE_NO_METHOD = -32601,
	MESSAGE_INVALID_PARAMS = -32602,
	MESSAGE_INTERNAL_ERROR = -32603,
	MESSAGE_UNSUPPORTED_VERSION = -32022,
};

enum message_kind {
	MESSAGE_BAD, /* code and why say what is wrong; id is there if it could be read */
	MESSAGE_REQUEST,
	MESSAGE_NOTIFICATION,
	MESSAGE_RESPONSE,
	MESSAGE_BATCH, /* the value is an array of up to MESSAGE_BATCH_MAX elements, not looked at */
};

/* Everything is borrowed from the value that it was made of. */
struct message {
	enum message_kind kind;
	const json_t *id;     /* NULL: none */
	const char *method;   /* requests and notifications */
	const json_t *params; /* an object, or NULL */
	const json_t *result; /* of a response; NULL in one that reports an error */
	enum message_code code;
	const char *why; /* a sentence, static */
};

/*
 * message_parse - the JSON value of a line.
 * @ret_code, @ret_why: of the error, the latter a sentence for the client of @size bytes with the NUL; both are
 * written only with NULL.
 * Returns a new reference, or NULL.
 */
json_t *message_parse(const char *line, size_t length, enum message_code *ret_code,
	char *ret_why, size_t size);

/*
 * message_mend - in JSON, each escape of half a character ("\ud83d" without its other half), which no
 * text in UTF-8 can hold, becomes "\ufffd", in place. Returns whether there was one.
 */
bool message_mend(char *text, size_t size);

/* message_read - what the value says. @ret borrows from @value. */
void message_read(const json_t *value, struct message *ret);

/* message_is_blank - nothing but white space: no message at all. */
int message_is_blank(const char *line, size_t length);

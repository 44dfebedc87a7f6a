/*
 * field.h - what a tool takes and gives, as tables: the JSON Schema that the client is shown and the
 * check of what it sends come from the same rows.
 *
 * Runs in: carrel-agent, outside. PURE.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/buffer.h"

enum field_type {
	FIELD_TEXT,
	FIELD_INTEGER,
	FIELD_BOOLEAN,
	FIELD_TEXTS,   /* an array of strings */
	FIELD_NAMED,   /* an object whose values are strings */
	FIELD_OBJECT,  /* of `fields` */
	FIELD_OBJECTS, /* an array of these */
};

enum field_flag {
	FIELD_REQUIRED = 1 << 0, /* must be sent; in an answer: is always there */
	FIELD_BYTES = 1 << 1,    /* may contain NUL; no other text may */
	FIELD_NULL = 1 << 2,     /* in an answer: may be null */
};

struct field {
	const char *name; /* NULL: the row behind the last */
	enum field_type type;
	unsigned flags;
	int64_t min, max;         /* integers; both 0: any. Texts: max = bytes, 0 = any */
	const char *const *words; /* the only values of a text, NULL at the end; or NULL */
	const char *help;
	const struct field *fields;
};

/* field_schema - a JSON Schema for an object of @fields; @closed: nothing else. NULL without memory. */
json_t *field_schema(const struct field *fields, bool closed);

/*
 * field_check - whether the object @value is what @fields say. A null counts as not sent: that is how models
 * fill in what they do not want.
 * @ret_why: with -EINVAL, what is wrong and what would be right is appended there.
 * Returns 0 or -EINVAL.
 */
MUST_CHECK int field_check(
	const struct field *fields, const json_t *value, struct buffer *ret_why);

/* field_get - the value sent as @name; NULL: none was sent, or null. Borrowed. */
const json_t *field_get(const json_t *value, const char *name);

/* field_text, field_integer, field_flag - the same as a C value, or @otherwise. Borrowed. */
const char *field_text(const json_t *value, const char *name, const char *otherwise);
int64_t field_integer(const json_t *value, const char *name, int64_t otherwise);
bool field_flag(const json_t *value, const char *name, bool otherwise);

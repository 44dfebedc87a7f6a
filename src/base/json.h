/*
 * json.h - JSON out: a streaming writer without heap.
 *
 * Runs in: every process outside the box. May not: allocate, keep state outside struct
 * json, read JSON.
 *
 * Calls need not be checked one by one: the first failure is kept, everything after it is
 * passed over, and json_finish() returns it. A document is one line, compact, and ends
 * with a newline.
 *
 * Texts that are no UTF-8 (paths, arguments) survive: valid UTF-8 is written as it is;
 * each byte that belongs to no valid sequence becomes the lone surrogate U+DC00 + byte,
 * "\udc80" to "\udcff", as in Python's `surrogateescape`. This is unambiguous: UTF-8 has
 * no surrogates (their three-byte forms are invalid, and so are escaped byte by byte),
 * and no other escape written here is in that range. In Python:
 * json.loads(text)[...].encode("utf-8", "surrogateescape") gives the bytes back. Controls
 * (C0, DEL, C1) are escaped, so that printing a document to a terminal is safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/writer.h"

#define JSON_DEPTH_MAX 32

/*
 * The library that carrel-agent reads JSON with has functions of these names: the linker must not
 * take one for the other. No file includes both headers.
 */
#define json_string json_out_string
#define json_null json_out_null

struct json {
	struct writer out;
	uint32_t arrays; /* bit n: nesting level n is an array, else an object */
	uint32_t filled; /* bit n: level n has an element, the next one needs a comma */
	unsigned depth;  /* open levels */
	bool keyed;      /* a key was written and waits for its value */
	bool complete;   /* the top-level value is there */
};

/*
 * json_init - start a document.
 * @buffer: @size bytes (at least 1) of the caller's, in use until json_finish(); any size
 * works, 4 KiB is good.
 * @write:  takes @size bytes and returns 0 or -errno; NULL keeps the document in @buffer,
 * where it is j->out.used bytes long (not NUL-terminated), and fails with -ENOBUFS when it
 * does not fit.
 */
void json_init(struct json *j, char *buffer, size_t size, writer_fn write, void *context);

/* Nesting. A begin or end in the wrong place, or too many levels: -EINVAL. */
void json_object_begin(struct json *j);
void json_object_end(struct json *j);
void json_array_begin(struct json *j);
void json_array_end(struct json *j);

/* json_key - the name of the next member; only directly inside an object. */
void json_key(struct json *j, const char *key);

/* Values: after a key, in an array, or once as the whole document; elsewhere -EINVAL. */
void json_string(struct json *j, const char *text);             /* NULL is written as null */
void json_bytes(struct json *j, const void *data, size_t size); /* may contain NUL */
void json_number(struct json *j, int64_t value);
void json_unsigned(struct json *j, uint64_t value);
void json_bool(struct json *j, bool value);
void json_null(struct json *j);
/* json_document - a value that another json.h has written, as it is; its newline is left out. */
void json_document(struct json *j, const char *text, size_t size);

/*
 * json_finish - write the newline and flush.
 * Returns 0; -EINVAL where a level is open, a key waits or nothing was written; else the
 * first failure.
 */
MUST_CHECK int json_finish(struct json *j);

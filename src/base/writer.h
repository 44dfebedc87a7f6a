/*
 * writer.h - the one buffered writer: text and bytes to a function of the caller's.
 *
 * Runs in: every process outside the box. PURE but for the caller's function. May not: allocate.
 *
 * Calls need not be checked one by one: the first failure is kept, everything after it is passed over, and
 * writer_finish() returns it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Takes @size bytes: 0 or -errno. */
typedef int (*writer_fn)(void *context, const void *data, size_t size);

struct writer {
	char *buffer; /* the caller's */
	size_t size;  /* bytes of buffer */
	size_t used;  /* bytes in buffer that have not been handed to `write` */
	writer_fn write;
	void *context;
	size_t column; /* characters since the last newline */
	int error;     /* first failure, -errno; 0 while all is well */
};

/*
 * writer_init - @buffer: @size bytes of the caller's (at least 1, else -EINVAL is kept), in use until writer_finish().
 * @write: NULL keeps everything in @buffer, `used` bytes, without a NUL; what does not fit is -ENOBUFS.
 */
void writer_init(struct writer *w, char *buffer, size_t size, writer_fn write, void *context);

/* writer_fail - keep @error, unless one is kept already. */
void writer_fail(struct writer *w, int error);

/* writer_bytes, writer_char, writer_text - as they are. */
void writer_bytes(struct writer *w, const void *data, size_t size);
void writer_char(struct writer *w, char c);
void writer_text(struct writer *w, const char *text);

/* writer_number - in decimal. */
void writer_number(struct writer *w, uint64_t number);

/* writer_format - at most 255 bytes of it. */
void writer_format(struct writer *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* writer_pad - blanks up to @column, at least one. */
void writer_pad(struct writer *w, size_t column);

/* writer_escaped - text with @escape in front of each byte of @special. */
void writer_escaped(
	struct writer *w, const char *text, const char *special, const char *escape);

/*
 * writer_visible - text from outside: what is no printable character as \xNN, and a backslash in front of each
 * byte of @special.
 */
void writer_visible(struct writer *w, const char *text, size_t size, const char *special);

/* writer_finish - hand on what is left. 0, or the first failure. */
MUST_CHECK int writer_finish(struct writer *w);

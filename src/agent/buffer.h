/*
 * buffer.h - text that grows.
 *
 * Runs in: carrel-agent, outside. May not: end the program when memory runs out. The buffer remembers the
 * first failure and drops what is added after it, so that its user checks once, at the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct buffer {
	char *data; /* NUL-terminated once something was added; NULL before */
	size_t used, size;
	bool failed; /* memory ran out */
};

/* buffer_free - free the memory; the buffer is empty and usable again. For autobuffer. */
void buffer_free(struct buffer *b);
#define autobuffer __attribute__((cleanup(buffer_free), unused))

/* buffer_reserve - make room for @size more bytes and a NUL. False: memory ran out. */
bool buffer_reserve(struct buffer *b, size_t size);

/* buffer_add, buffer_text, buffer_format - append bytes, a text, a formatted text. */
void buffer_add(struct buffer *b, const void *data, size_t size);
void buffer_text(struct buffer *b, const char *text);
void buffer_format(struct buffer *b, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

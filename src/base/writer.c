/*
 * writer.c - see writer.h.
 *
 * Runs in: every process outside the box. May not: allocate.
 */
#include "base/writer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { FEW = 64, DIGITS_MAX = 20 }; /* 2^64 - 1 has 20 digits */

void writer_init(struct writer *w, char *buffer, size_t size, writer_fn write, void *context)
{
	*w = (struct writer){
		.buffer = buffer, .size = size, .write = write, .context = context
	};
	if (!buffer || size == 0)
		writer_fail(w, -EINVAL);
}

void writer_fail(struct writer *w, int error)
{
	if (!w->error)
		w->error = error;
}

static void flush(struct writer *w)
{
	if (w->error || w->used == 0 || !w->write)
		return;
	int r = w->write(w->context, w->buffer, w->used);

	w->used = 0;
	if (r < 0)
		writer_fail(w, r);
}

/* The first byte of a character takes a column, those that follow it in UTF-8 do not. */
static bool is_character(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

/* Count the columns: one for each character, not for each byte. */
static void count(struct writer *w, const char *data, size_t size)
{
	const char *newline = memrchr(data, '\n', size);
	const char *end = data + size;
	size_t columns = newline ? 0 : w->column;

	for (const char *at = newline ? newline + 1 : data; at < end; at++)
		columns += is_character(*at);
	w->column = columns;
}

/* For a few bytes, for which there is room: calls of memrchr() and memcpy() cost more than this loop. */
static void put_few(struct writer *w, const char *data, size_t size)
{
	char *to = w->buffer + w->used;
	size_t column = w->column;

	for (size_t i = 0; i < size; i++) {
		to[i] = data[i];
		column = data[i] == '\n' ? 0 : column + is_character(data[i]);
	}
	w->used += size;
	w->column = column;
}

void writer_bytes(struct writer *w, const void *data, size_t size)
{
	const char *at = data;

	if (size <= FEW && size <= w->size - w->used && !w->error)
		return put_few(w, at, size);
	count(w, at, size);
	while (size > 0 && !w->error) {
		size_t room = w->size - w->used;

		if (room == 0 && !w->write)
			return writer_fail(w, -ENOBUFS);
		if (room == 0) {
			flush(w);
			continue;
		}
		size_t part = size < room ? size : room;
		memcpy(w->buffer + w->used, at, part);
		w->used += part;
		at += part;
		size -= part;
	}
}

void writer_char(struct writer *w, char c)
{
	writer_bytes(w, &c, 1);
}

void writer_text(struct writer *w, const char *text)
{
	writer_bytes(w, text, strlen(text));
}

void writer_number(struct writer *w, uint64_t number)
{
	char digits[DIGITS_MAX], *first = digits + DIGITS_MAX;

	do
		*--first = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	writer_bytes(w, first, (size_t)(digits + DIGITS_MAX - first));
}

void writer_format(struct writer *w, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	writer_text(w, text);
}

void writer_pad(struct writer *w, size_t column)
{
	do
		writer_char(w, ' ');
	while (w->column < column);
}

void writer_escaped(struct writer *w, const char *text, const char *special, const char *escape)
{
	for (; *text; text++) {
		if (strchr(special, *text))
			writer_text(w, escape);
		writer_char(w, *text);
	}
}

void writer_visible(struct writer *w, const char *text, size_t size, const char *special)
{
	while (size > 0) {
		size_t n = text_printable_length(text, size);

		if (n == 0)
			writer_format(w, "\\x%02x", (unsigned char)*text);
		else if (n == 1 && strchr(special, *text))
			writer_char(w, '\\');
		writer_bytes(w, text, n);
		text += n ? n : 1;
		size -= n ? n : 1;
	}
}

int writer_finish(struct writer *w)
{
	flush(w);
	return w->error;
}

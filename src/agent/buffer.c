/*
 * buffer.c - see buffer.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/buffer.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buffer_free(struct buffer *b)
{
	free(b->data);
	*b = (struct buffer){ 0 };
}

bool buffer_reserve(struct buffer *b, size_t size)
{
	if (b->failed)
		return false;
	if (b->size - b->used > size)
		return true;
	size_t want = b->size ? b->size : 256;
	while (want - b->used <= size) {
		if (want > SIZE_MAX / 2) {
			b->failed = true;
			return false;
		}
		want *= 2;
	}
	char *grown = realloc(b->data, want);
	if (!grown) {
		b->failed = true;
		return false;
	}
	b->data = grown;
	b->size = want;
	b->data[b->used] = '\0';
	return true;
}

void buffer_add(struct buffer *b, const void *data, size_t size)
{
	if (!buffer_reserve(b, size))
		return;
	if (size)
		memcpy(b->data + b->used, data, size);
	b->used += size;
	b->data[b->used] = '\0';
}

void buffer_text(struct buffer *b, const char *text)
{
	buffer_add(b, text, strlen(text));
}

void buffer_format(struct buffer *b, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	int length = vsnprintf(NULL, 0, format, list);
	va_end(list);
	if (length < 0 || !buffer_reserve(b, (size_t)length)) {
		b->failed = true;
		return;
	}
	va_start(list, format);
	(void)vsnprintf(b->data + b->used, (size_t)length + 1, format, list);
	va_end(list);
	b->used += (size_t)length;
}

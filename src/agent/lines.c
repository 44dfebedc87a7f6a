/*
 * lines.c - see lines.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes to read at a time; a buffer of this size is kept when it is empty. */
enum { BLOCK = 64 << 10 };

void lines_init(struct lines *l, size_t max)
{
	*l = (struct lines){ .max = max };
}

void lines_free(struct lines *l)
{
	free(l->data);
	lines_init(l, l->max);
}

/* Move what is left to the front; free a buffer that one long line had needed. */
static void compact(struct lines *l)
{
	if (l->at > 0) {
		memmove(l->data, l->data + l->at, l->used - l->at);
		l->used -= l->at;
		l->searched -= l->at;
		l->at = 0;
	}
	if (l->used == 0 && l->size > BLOCK) {
		free(l->data);
		l->data = NULL;
		l->size = 0;
	}
}

int lines_room(struct lines *l, char **ret_at, size_t *ret_size)
{
	compact(l);
	if (l->used == l->size) {
		/* lines_next() leaves at most max + 2 bytes here, so this ends below twice that. */
		size_t size = l->size ? l->size * 2 : BLOCK;
		char *grown = realloc(l->data, size);

		if (!grown)
			return -ENOMEM;
		l->data = grown;
		l->size = size;
	}
	*ret_at = l->data + l->used;
	*ret_size = l->size - l->used < BLOCK ? l->size - l->used : BLOCK;
	return 0;
}

void lines_filled(struct lines *l, size_t size)
{
	l->used += size;
}

static enum lines_what take_line(struct lines *l, size_t end, char **ret_line, size_t *ret_size)
{
	size_t from = l->at, to = end;

	l->at = end < l->used ? end + 1 : end;
	l->searched = l->at;
	if (to > from && l->data[to - 1] == '\r')
		to--;
	if (to - from > l->max)
		return LINES_LONG;
	*ret_line = l->data + from;
	*ret_size = to - from;
	return LINES_LINE;
}

enum lines_what lines_next(struct lines *l, char **ret_line, size_t *ret_size)
{
	for (;;) {
		char *found = l->used > l->searched
			? memchr(l->data + l->searched, '\n', l->used - l->searched)
			: NULL;

		if (found && l->skipping) {
			l->skipping = false;
			l->at = l->searched = (size_t)(found - l->data) + 1;
			continue;
		}
		if (found)
			return take_line(l, (size_t)(found - l->data), ret_line, ret_size);
		l->searched = l->used;
		if (l->skipping) {
			l->at = l->used;
			return LINES_NONE;
		}
		if (l->used - l->at <= l->max + 1) /* the last one may be a carriage return */
			return LINES_NONE;
		l->skipping = true;
		l->at = l->used;
		return LINES_LONG;
	}
}

enum lines_what lines_last(struct lines *l, char **ret_line, size_t *ret_size)
{
	if (l->skipping || l->at == l->used)
		return LINES_NONE;
	return take_line(l, l->used, ret_line, ret_size);
}

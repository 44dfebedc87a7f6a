/*
 * lines.h - messages out of a stream of bytes: one a line, and none longer than a bound.
 *
 * Runs in: carrel-agent, outside. May not: hold more than one line over the bound in memory. It reports a line
 * that is too long once, when the bound is passed, and skips the rest without keeping it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct lines {
	char *data;
	size_t size;     /* bytes allocated */
	size_t at, used; /* data[at..used) is not consumed yet */
	size_t searched; /* data[at..searched) has no newline */
	size_t max;      /* bytes of a line, the newline aside */
	bool skipping;   /* inside a line that is too long */
};

enum lines_what {
	LINES_NONE, /* no whole line: read more */
	LINES_LINE,
	LINES_LONG, /* a line longer than the bound begins; its rest is skipped */
};

/* lines_init - @max: bytes of the longest line. Nothing is allocated yet. */
void lines_init(struct lines *l, size_t max);

/* lines_free - give the memory back. */
void lines_free(struct lines *l);

/*
 * lines_room - where the next bytes may be read to.
 * @ret_size: how many, at least 1. Lines returned before are gone. Returns 0 or -ENOMEM.
 */
MUST_CHECK int lines_room(struct lines *l, char **ret_at, size_t *ret_size);

/* lines_filled - @size bytes were read into that room. */
void lines_filled(struct lines *l, size_t size);

/*
 * lines_next - the next whole line, without its newline (and a carriage return before it).
 * @ret_line: valid until lines_room(); not NUL-terminated. Untouched unless LINES_LINE.
 */
enum lines_what lines_next(struct lines *l, char **ret_line, size_t *ret_size);

/* lines_last - at the end of the stream: what comes after the last newline, as lines_next(). */
enum lines_what lines_last(struct lines *l, char **ret_line, size_t *ret_size);

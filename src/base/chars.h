/*
 * chars.h - characters in bytes that may be no text at all.
 *
 * Runs in: every process outside the box. PURE. May not: allocate, keep state.
 *
 * A character is a valid UTF-8 sequence (nothing overlong, no surrogate, up to U+10FFFF), or one
 * byte that belongs to none. Since no valid sequence overlaps another, whether a byte begins a
 * character is decided by at most three bytes before and after it: any range between two
 * boundaries can be counted alone, forwards and backwards.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CHARS_LENGTH_MAX 4 /* bytes of the longest sequence */

/* chars_count - how many characters @size bytes are; a sequence that is cut counts each byte. */
size_t chars_count(const char *data, size_t size);

/*
 * chars_offset - where the first @count characters end, in bytes; @size where there are fewer.
 * @data begins at a boundary.
 */
size_t chars_offset(const char *data, size_t size, uint64_t count);

/*
 * chars_boundary - the last boundary at or before @at (@at <= @size). @data begins at one, or at least three
 * bytes before @at.
 */
size_t chars_boundary(const char *data, size_t size, size_t at);

/* chars_open - bytes at the end, 0 to 3, that more bytes may make one character of. */
size_t chars_open(const char *data, size_t size);

/*
 * chars_last_length - bytes of the last character of @data, 0 where there is none. Its last byte
 * ends a character; three bytes before that are enough to see.
 */
size_t chars_last_length(const char *data, size_t size);

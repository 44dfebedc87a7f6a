/*
 * text.h - strict reading of small texts: sizes, durations, counts, words, UTF-8.
 *
 * Runs in: every process outside the box. PURE. May not: allocate, depend on the locale, accept
 * a prefix of its input: a text is right to its last byte or refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Longest duration that is accepted: 100 years, so that nanoseconds fit into 64 bits. */
#define TEXT_DURATION_MAX_MS (UINT64_C(100) * 366 * 86400 * 1000)

/*
 * text_parse_size - a size in bytes: decimal digits and an optional unit K M G T, KiB MiB GiB
 * TiB (all powers of 1024). @ret_bytes: untouched on failure.
 * Returns 0, -EINVAL (empty, zero, sign, space, unknown unit) or -ERANGE (2^64 and more).
 */
MUST_CHECK int text_parse_size(const char *text, uint64_t *ret_bytes);

/*
 * text_parse_duration - a duration in milliseconds: digits, an optional fraction, an optional unit
 * ms s m h d; without a unit seconds. A part below a millisecond is dropped.
 * Returns 0, -EINVAL (as above; also what comes to less than 1 ms) or -ERANGE.
 */
MUST_CHECK int text_parse_duration(const char *text, uint64_t *ret_ms);

/* text_parse_count - decimal digits, 1 and more. 0, -EINVAL or -ERANGE. */
MUST_CHECK int text_parse_count(const char *text, uint64_t *ret_count);

/*
 * text_parse_thousandths - a decimal number such as 2, 0.5 or 1.125, in thousandths; at most three
 * digits after the point. 0, -EINVAL (as above; also zero, and more digits) or -ERANGE.
 */
MUST_CHECK int text_parse_thousandths(const char *text, uint64_t *ret_thousandths);

/* text_format_size / text_format_duration / text_format_thousandths - the shortest exact form that reads back the same. */
void text_format_size(uint64_t bytes, char *ret_text, size_t size);
void text_format_duration(uint64_t ms, char *ret_text, size_t size);
void text_format_thousandths(uint64_t thousandths, char *ret_text, size_t size);

/*
 * text_distance - edit distance (insert, delete, replace, swap of neighbours) of two words.
 * Returns the distance, or @limit + 1 where it is larger or a word is longer than 63 bytes.
 */
unsigned text_distance(const char *a, const char *b, unsigned limit);

/*
 * text_nearest - the word of @list that @word was probably meant to be, or NULL: a word that it
 * abbreviates, else the one at the smallest distance, at most a third of its length.
 */
const char *text_nearest(const char *word, const char *const *list, size_t count);

/* text_words - "a, b or c"; an empty text where that does not fit into @size. */
void text_words(const char *const *words, size_t count, char *ret_text, size_t size);

/*
 * text_printable_length - bytes of the character at @text that a terminal shows and does not obey;
 * 0 for a control character (U+0080 to U+009F are some), for one that changes the order in which
 * others are shown, for one that is shown as a blank or as nothing but is not the blank, and for a
 * byte that is no character.
 */
size_t text_printable_length(const char *text, size_t size);

/*
 * text_visible - *@text with what is not printable, and with what is in @special, as \xNN.
 * @text: moved behind what fitted. @ret_text: @size bytes (5 at least), ended by a NUL. Returns its length.
 */
size_t text_visible(const char **text, const char *special, char *ret_text, size_t size);

/* text_utf8_length - bytes of the valid UTF-8 sequence at @text (1 to 4), 0 where there is none. */
size_t text_utf8_length(const char *text, size_t size);

/* text_is_utf8 - all @size bytes are valid UTF-8 (no surrogates, nothing overlong). */
bool text_is_utf8(const char *text, size_t size);

/*
 * number.h - numbers as text, without stdio.
 *
 * Runs in: init.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#define NUMBER_TEXT 24

/* number_text - decimal digits of @value into @buffer (NUMBER_TEXT bytes); returns their start. */
static inline char *number_text(char buffer[NUMBER_TEXT], uint64_t value)
{
	char *at = buffer + NUMBER_TEXT - 1;

	*at = '\0';
	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	return at;
}

/* number_path - prefix, number, suffix into @ret (64 bytes; the parts are short constants). */
static inline void number_path(
	char ret[64], const char *prefix, unsigned number, const char *suffix)
{
	char digits[NUMBER_TEXT];
	const char *parts[] = { prefix, number_text(digits, number), suffix };
	size_t at = 0;

	for (size_t i = 0; i < 3; i++)
		for (const char *c = parts[i]; *c && at < 63; c++)
			ret[at++] = *c;
	ret[at] = '\0';
}

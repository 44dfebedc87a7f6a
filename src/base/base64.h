/*
 * base64.h - bytes as text: RFC 4648 4, with padding, without line breaks.
 *
 * Runs in: everywhere. PURE.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The 64 digits, in order, and a NUL. */
extern const char base64_digits[];

/* base64_group - the next three bytes of the @size at @data, or the last one or two, as four characters. */
void base64_group(const uint8_t *data, size_t size, char ret[4]);

/* base64_size - the characters that @size bytes become. */
static inline size_t base64_size(size_t size)
{
	return (size + 2) / 3 * 4;
}

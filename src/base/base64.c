/*
 * base64.c - see base64.h.
 *
 * Runs in: everywhere. PURE.
 */
#include "base/base64.h"

const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_group(const uint8_t *data, size_t size, char ret[4])
{
	uint32_t bits = (uint32_t)data[0] << 16 | (size > 1 ? (uint32_t)data[1] << 8 : 0) |
		(size > 2 ? data[2] : 0);

	ret[0] = base64_digits[bits >> 18];
	ret[1] = base64_digits[bits >> 12 & 63];
	ret[2] = size > 1 ? base64_digits[bits >> 6 & 63] : '=';
	ret[3] = size > 2 ? base64_digits[bits & 63] : '=';
}

/*
 * image.c - see image.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/image.h"

#include <stdint.h>
#include <string.h>

const char *image_type(const char *head, size_t size)
{
	if (size >= 8 && !memcmp(head, "\x89PNG\r\n\x1a\n", 8))
		return "image/png";
	if (size >= 3 && !memcmp(head, "\xff\xd8\xff", 3))
		return "image/jpeg";
	if (size >= 6 && (!memcmp(head, "GIF87a", 6) || !memcmp(head, "GIF89a", 6)))
		return "image/gif";
	if (size >= 12 && !memcmp(head, "RIFF", 4) && !memcmp(head + 8, "WEBP", 4))
		return "image/webp";
	return NULL;
}

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void image_base64(struct buffer *b, const void *data, size_t size)
{
	const uint8_t *at = data;

	if (!buffer_reserve(b, (size + 2) / 3 * 4))
		return;
	for (; size > 0; at += 3, size -= size < 3 ? size : 3) {
		uint32_t bits = (uint32_t)at[0] << 16 | (size > 1 ? (uint32_t)at[1] << 8 : 0) |
			(size > 2 ? at[2] : 0);
		const char four[4] = { digits[bits >> 18], digits[bits >> 12 & 63],
			size > 1 ? digits[bits >> 6 & 63] : '=',
			size > 2 ? digits[bits & 63] : '=' };

		buffer_add(b, four, sizeof(four));
	}
}

/* 0 to 63, 64 for padding, -1 for anything else. */
static int digit(char c)
{
	if (c == '=')
		return 64;
	const char *found = c ? strchr(digits, c) : NULL;

	return found ? (int)(found - digits) : -1;
}

bool image_from_base64(struct buffer *b, const char *text, size_t size)
{
	uint32_t bits = 0;
	unsigned count = 0, padding = 0;

	for (size_t i = 0; i < size; i++) {
		if (text[i] == '\n' || text[i] == '\r' || text[i] == ' ' || text[i] == '\t')
			continue;
		int value = digit(text[i]);

		if (value < 0 || (padding && value != 64) || (value == 64 && count < 2))
			return false;
		if (value == 64) {
			padding++;
			value = 0;
		}
		bits = bits << 6 | (uint32_t)value;
		if (++count < 4)
			continue;
		const char three[3] = { (char)(bits >> 16), (char)(bits >> 8), (char)bits };

		if ((padding == 1 && (bits & 0xff)) || (padding == 2 && (bits & 0xffff)))
			return false; /* bits that would be lost */
		buffer_add(b, three, 3 - padding);
		bits = 0;
		count = 0;
		if (padding) /* nothing but white space may follow */
			padding = 3;
	}
	return count == 0;
}

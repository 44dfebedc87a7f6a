/*
 * chars.c - see chars.h.
 *
 * Runs in: every process outside the box. May not: allocate, keep state.
 */
#include "base/chars.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

enum {
	STRIDE = 64, /* looked through at once for anything but ASCII */
	CHUNK = 4096,
};

static bool is_ascii(const char *data)
{
	uint64_t any = 0;

	for (size_t i = 0; i < STRIDE; i += sizeof(any)) {
		uint64_t eight;

		memcpy(&eight, data + i, sizeof(eight));
		any |= eight;
	}
	return (any & UINT64_C(0x8080808080808080)) == 0;
}

size_t chars_count(const char *data, size_t size)
{
	size_t more = 0, at = 0;

	while (at < size) {
		if (size - at >= STRIDE && is_ascii(data + at)) {
			at += STRIDE;
			continue;
		}
		/* A text of another script usually goes on: no look for ASCII within this stride. */
		for (size_t end = size - at < STRIDE ? size : at + STRIDE; at < end;) {
			size_t length = text_utf8_length(data + at, size - at);

			more += length > 1 ? length - 1 : 0;
			at += length > 1 ? length : 1;
		}
	}
	return size - more;
}

size_t chars_boundary(const char *data, size_t size, size_t at)
{
	for (size_t back = 1; back < CHARS_LENGTH_MAX && back <= at; back++)
		if (text_utf8_length(data + at - back, size - at + back) > back)
			return at - back;
	return at;
}

size_t chars_offset(const char *data, size_t size, uint64_t count)
{
	size_t at = 0;

	/* Whole chunks first, for as long as they cannot hold too many. */
	while (count >= CHUNK && size - at > CHUNK) {
		size_t end = chars_boundary(data, size, at + CHUNK);

		count -= chars_count(data + at, end - at);
		at = end;
	}
	for (; count > 0 && at < size; count--) {
		size_t length = text_utf8_length(data + at, size - at);

		at += length ? length : 1;
	}
	return at;
}

/* Whether the @size bytes at @data, 1 to 3, can begin a valid sequence that is longer. */
static bool can_begin(const char *data, size_t size)
{
	/*
	 * The lowest and the highest continuation byte: one of them completes whatever can be
	 * completed.
	 */
	static const unsigned char fill[] = { 0x80, 0xbf };
	char whole[CHARS_LENGTH_MAX];

	for (size_t i = 0; i < sizeof(fill); i++) {
		memset(whole, fill[i], sizeof(whole));
		memcpy(whole, data, size);
		for (size_t length = size + 1; length <= CHARS_LENGTH_MAX; length++)
			if (text_utf8_length(whole, length) == length)
				return true;
	}
	return false;
}

size_t chars_open(const char *data, size_t size)
{
	size_t most = size < CHARS_LENGTH_MAX ? size : CHARS_LENGTH_MAX - 1;

	for (size_t open = most; open > 0; open--)
		if (can_begin(data + size - open, open))
			return open;
	return 0;
}

size_t chars_last_length(const char *data, size_t size)
{
	size_t most = size < CHARS_LENGTH_MAX ? size : CHARS_LENGTH_MAX;

	for (size_t length = most; length > 1; length--)
		if (text_utf8_length(data + size - length, length) == length)
			return length;
	return size > 0;
}

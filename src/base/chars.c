/*
 * chars.c - see chars.h.
 *
 * Runs in: every process outside the box. May not: allocate, keep state.
 */
#include "base/chars.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

/*
 * Sixteen bytes at once, in the compiler's own vectors: what the target has is used, and where it
 * has nothing they become plain code. A comparison gives all ones where it holds.
 */
typedef unsigned char block __attribute__((vector_size(16)));

enum {
	BLOCK = sizeof(block),
	AHEAD = CHARS_LENGTH_MAX - 1, /* a sequence that begins in a block may end behind it */
	STRIDE = 4 * BLOCK,           /* looked through at once for anything but ASCII */
	ROUNDS = 84,                  /* of at most 3 each that fit into a lane */
	CHUNK = 4096,
};

static block load(const char *data)
{
	block b;

	memcpy(&b, data, sizeof(b));
	return b;
}

static block continues(block b)
{
	return (block)((b & 0xc0) == 0x80);
}

static block between(block b, unsigned char low, unsigned char high)
{
	return (block)(b >= low) & (block)(b <= high);
}

/* For each byte of a block that begins a valid sequence: how many more bytes it has. */
static block more_bytes(const char *data)
{
	block lead = load(data), second = load(data + 1), third = load(data + 2);
	block two = continues(second);
	block three = two & continues(third);
	block four = three & continues(load(data + 3));
	/* overlong forms, surrogates, beyond U+10FFFF: told by the second byte */
	block bad3 = ((block)(lead == 0xe0) & (block)(second < 0xa0)) |
		((block)(lead == 0xed) & (block)(second > 0x9f));
	block bad4 = ((block)(lead == 0xf0) & (block)(second < 0x90)) |
		((block)(lead == 0xf4) & (block)(second > 0x8f));

	return (between(lead, 0xc2, 0xdf) & two & 1) |
		(between(lead, 0xe0, 0xef) & three & ~bad3 & 2) |
		(between(lead, 0xf0, 0xf4) & four & ~bad4 & 3);
}

static bool is_ascii(const char *data)
{
	block any = load(data) | load(data + BLOCK) | load(data + 2 * BLOCK) |
		load(data + 3 * BLOCK);
	uint64_t half[2];

	memcpy(half, &any, sizeof(half));
	return ((half[0] | half[1]) & UINT64_C(0x8080808080808080)) == 0;
}

/* The sum of @rounds blocks from @data on. */
static size_t sum_blocks(const char *data, size_t rounds)
{
	block lanes = { 0 };
	size_t sum = 0;

	for (size_t i = 0; i < rounds; i++)
		lanes += more_bytes(data + i * BLOCK);
	for (size_t i = 0; i < BLOCK; i++)
		sum += lanes[i];
	return sum;
}

size_t chars_count(const char *data, size_t size)
{
	size_t more = 0, at = 0;

	while (at + STRIDE + AHEAD <= size) {
		if (is_ascii(data + at)) {
			at += STRIDE;
			continue;
		}
		size_t rounds = (size - at - AHEAD) / BLOCK;

		/* A text of another script goes on being one. */
		rounds = rounds < ROUNDS ? rounds : ROUNDS;
		more += sum_blocks(data + at, rounds);
		at += rounds * BLOCK;
	}
	for (; at < size; at++) {
		size_t length = text_utf8_length(data + at, size - at);

		more += length > 1 ? length - 1 : 0;
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
	/* The first continuation of all and the last: one of them completes what can be. */
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

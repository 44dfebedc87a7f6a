/*
 * image.c - see image.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/image.h"

#include <stdint.h>
#include <string.h>

#include "base/base64.h"

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

/* --- size ------------------------------------------------------------------------------------- */

/* What is still to be read. */
struct bytes {
	const uint8_t *at;
	size_t left;
};

static bool skip(struct bytes *b, size_t count)
{
	bool fits = count <= b->left;

	b->at += fits ? count : 0;
	b->left -= fits ? count : 0;
	return fits;
}

static unsigned big16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

static uint32_t big32(const uint8_t *at)
{
	return (uint32_t)big16(at) << 16 | big16(at + 2);
}

static unsigned little16(const uint8_t *at)
{
	return (unsigned)at[1] << 8 | at[0];
}

static unsigned little24(const uint8_t *at)
{
	return (unsigned)at[2] << 16 | little16(at);
}

/* Chunks of length, name, data and checksum: IHDR first, IDAT among them, IEND last. */
static bool measure_png(struct bytes b, struct image_size *ret)
{
	bool has_data = false;

	if (!skip(&b, 8) || b.left < 25 || big32(b.at) != 13 ||
		memcmp(b.at + 4, "IHDR", 4) != 0)
		return false;
	*ret = (struct image_size){ big32(b.at + 8), big32(b.at + 12) };
	while (b.left >= 12) {
		const uint8_t *chunk = b.at;

		if (!memcmp(chunk + 4, "IEND", 4))
			return has_data;
		has_data |= !memcmp(chunk + 4, "IDAT", 4);
		if (!skip(&b, (size_t)big32(chunk) + 12))
			break;
	}
	return false;
}

/* Segments up to the first scan; one of them, SOF0 to SOF15, is the frame. EOI is behind the last scan. */
static bool measure_jpeg(struct bytes b, struct image_size *ret)
{
	if (!skip(&b, 2))
		return false;
	while (b.left >= 4 && b.at[0] == 0xff) {
		unsigned marker = b.at[1], length = big16(b.at + 2);

		if (marker == 0xff) { /* fill bytes may stand before any marker */
			(void)skip(&b, 1);
			continue;
		}
		if (marker == 0xda)
			return ret->width && memmem(b.at, b.left, "\xff\xd9", 2);
		bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 &&
			marker != 0xc8 && marker != 0xcc;
		if (frame && b.left >= 9)
			*ret = (struct image_size){ big16(b.at + 7), big16(b.at + 5) };
		if (length < 2 || !skip(&b, (size_t)length + 2))
			break;
	}
	return false;
}

/* The bytes of the colour table that @flags announce. */
static size_t gif_table(unsigned flags)
{
	return flags & 0x80 ? (size_t)6 << (flags & 7) : 0;
}

/* Sub-blocks, each with its length in front, up to an empty one. */
static bool skip_gif_data(struct bytes *b)
{
	while (b->left > 0) {
		size_t length = *b->at;

		if (!skip(b, length + 1))
			return false;
		if (length == 0)
			return true;
	}
	return false;
}

/* Extensions and images. Some files lack the trailer, and hosts show them nevertheless. */
static bool measure_gif(struct bytes b, struct image_size *ret)
{
	unsigned images = 0;

	if (b.left < 13)
		return false;
	*ret = (struct image_size){ little16(b.at + 6), little16(b.at + 8) };
	if (!skip(&b, 13 + gif_table(b.at[10])))
		return false;
	while (b.left > 0 && b.at[0] != 0x3b) {
		bool image = b.at[0] == 0x2c && b.left >= 11;
		/* The least size of a code stands before the data of an image, a label before an extension's. */
		size_t head = image ? 11 + gif_table(b.at[9]) : 2;

		if ((!image && b.at[0] != 0x21) || !skip(&b, head) || !skip_gif_data(&b))
			return false;
		images += image;
	}
	return images > 0;
}

/* The first chunk: lossy, lossless, or the extended header. */
static bool measure_webp(struct bytes b, struct image_size *ret)
{
	if (b.left < 30 || (little24(b.at + 4) | (size_t)b.at[7] << 24) > b.left - 8)
		return false;
	const uint8_t *data = b.at + 20;
	if (!memcmp(b.at + 12, "VP8X", 4)) {
		*ret = (struct image_size){ little24(data + 4) + 1, little24(data + 7) + 1 };
		return true;
	}
	if (!memcmp(b.at + 12, "VP8L", 4)) {
		uint32_t bits = little24(data + 1) | (uint32_t)data[4] << 24;

		*ret = (struct image_size){ (bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1 };
		return data[0] == 0x2f;
	}
	*ret = (struct image_size){ little16(data + 6) & 0x3fff, little16(data + 8) & 0x3fff };
	return !memcmp(b.at + 12, "VP8 ", 4) && !memcmp(data + 3, "\x9d\x01\x2a", 3);
}

bool image_measure(const char *type, const char *data, size_t size, struct image_size *ret)
{
	static const struct {
		const char *type;
		bool (*measure)(struct bytes b, struct image_size *ret);
	} kinds[] = {
		{ "image/png", measure_png },
		{ "image/jpeg", measure_jpeg },
		{ "image/gif", measure_gif },
		{ "image/webp", measure_webp },
	};

	*ret = (struct image_size){ 0 };
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].type, type))
			return kinds[i].measure(
				       (struct bytes){ (const uint8_t *)data, size }, ret) &&
				ret->width && ret->height;
	return false;
}

/* --- base64 ----------------------------------------------------------------------------------- */

void image_base64(struct buffer *b, const void *data, size_t size)
{
	const uint8_t *at = data;
	char four[4];

	if (!buffer_reserve(b, base64_size(size)))
		return;
	for (; size > 0; at += 3, size -= size < 3 ? size : 3) {
		base64_group(at, size, four);
		buffer_add(b, four, sizeof(four));
	}
}

/* 0 to 63, 64 for padding, -1 for anything else. */
static int digit(char c)
{
	if (c == '=')
		return 64;
	const char *found = c ? strchr(base64_digits, c) : NULL;

	return found ? (int)(found - base64_digits) : -1;
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

/*
 * harmless.c - see harmless.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/harmless.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct range {
	uint32_t first, last;
};

/* Characters that are not shown, or change how others are shown. Joiners and variation selectors are not among them: scripts need those. */
static const struct range unseen[] = {
	{ 0x80, 0x9f },       /* C1 */
	{ 0xad, 0xad },       /* soft hyphen */
	{ 0x61c, 0x61c },     /* Arabic letter mark */
	{ 0x115f, 0x1160 },   /* Hangul fillers */
	{ 0x180e, 0x180e },   /* Mongolian vowel separator */
	{ 0x200b, 0x200b },   /* zero width space */
	{ 0x200e, 0x200f },   /* left-to-right and right-to-left mark */
	{ 0x2028, 0x202e },   /* separators, embeddings, overrides */
	{ 0x2060, 0x206f },   /* word joiner, invisible operators, isolates, deprecated ones */
	{ 0x3164, 0x3164 },   /* Hangul filler */
	{ 0xfeff, 0xfeff },   /* byte order mark */
	{ 0xffa0, 0xffa0 },   /* half-width Hangul filler */
	{ 0xfff9, 0xfffb },   /* interlinear annotations */
	{ 0x1d173, 0x1d17a }, /* musical controls */
	{ 0xe0000, 0xe0fff }, /* tags, and variation selectors that carry bytes */
};

static bool is_unseen(uint32_t c)
{
	for (size_t i = 0; i < sizeof(unseen) / sizeof(unseen[0]); i++)
		if (c >= unseen[i].first && c <= unseen[i].last)
			return true;
	return false;
}

/* The character of a valid sequence. */
static uint32_t decode(const char *text, size_t length)
{
	const unsigned char *t = (const unsigned char *)text;

	switch (length) {
	case 2:
		return (t[0] & 0x1fu) << 6 | (t[1] & 0x3fu);
	case 3:
		return (t[0] & 0x0fu) << 12 | (t[1] & 0x3fu) << 6 | (t[2] & 0x3fu);
	case 4:
		return (t[0] & 0x07u) << 18 | (t[1] & 0x3fu) << 12 | (t[2] & 0x3fu) << 6 |
			(t[3] & 0x3fu);
	default:
		return t[0];
	}
}

static bool is_plain(unsigned char c)
{
	return (c >= ' ' && c < 0x7f) || c == '\n' || c == '\t';
}

static void add_control(struct buffer *b, unsigned char c)
{
	uint32_t picture = c == 0x7f ? 0x2421 : 0x2400u + c;
	const char utf8[3] = { (char)(0xe0 | picture >> 12),
		(char)(0x80 | (picture >> 6 & 0x3f)), (char)(0x80 | (picture & 0x3f)) };

	buffer_add(b, utf8, sizeof(utf8));
}

void harmless_add(struct buffer *b, const char *data, size_t size)
{
	size_t i = 0;

	if (!buffer_reserve(b, size))
		return;
	while (i < size) {
		size_t from = i;

		while (i < size && is_plain((unsigned char)data[i]))
			i++;
		buffer_add(b, data + from, i - from);
		if (i == size)
			return;
		if (data[i] == '\r' && i + 1 < size && data[i + 1] == '\n') {
			buffer_add(b, data + i++, 1);
			continue;
		}
		size_t length = text_utf8_length(data + i, size - i);
		uint32_t c = length ? decode(data + i, length) : 0;

		if (length == 0)
			buffer_add(b, "\xef\xbf\xbd", 3);
		else if (length == 1)
			add_control(b, (unsigned char)c);
		else if (is_unseen(c))
			buffer_format(b, "<U+%04X>", c);
		else
			buffer_add(b, data + i, length);
		i += length ? length : 1;
	}
}

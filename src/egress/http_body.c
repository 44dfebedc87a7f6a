/*
 * http_body.c - see http_message.h: where a body ends.
 *
 * Runs in: carrel-egress. PURE. A chunked body is passed on byte by byte as it is, so that the next reader finds what was
 * checked here.
 */
#include <errno.h>

#include "egress/http_message.h"

enum state {
	SIZE,      /* hexadecimal digits */
	EXTENSION, /* after a ';', to the end of the line */
	SIZE_LF,
	DATA,
	DATA_CR,
	DATA_LF,
	LINE, /* the start of a line after the last chunk */
	FIELD,
	FIELD_LF,
	LAST_LF,
};

enum { DIGITS_MAX = 15 };

void http_body_begin(struct http_body *b, const struct http_head *h, bool strict)
{
	*b = (struct http_body){ .framing = h->framing,
		.strict = strict,
		.ended = h->framing == HTTP_NO_BODY ||
			(h->framing == HTTP_LENGTH && h->length == 0),
		.left = h->framing == HTTP_LENGTH ? h->length : 0 };
}

/* -1: it is no digit. */
static int digit_value(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int size_byte(struct http_body *b, uint8_t c)
{
	int value = digit_value(c);

	if (value >= 0 && b->digits < DIGITS_MAX) {
		b->left = b->left << 4 | (uint64_t)value;
		b->digits++;
		return SIZE;
	}
	if (b->digits == 0)
		return -EBADMSG;
	if (c == '\r')
		return SIZE_LF;
	return c == ';' && !b->strict ? EXTENSION : -EBADMSG;
}

static bool is_text(uint8_t c)
{
	return c == '\t' || (c >= 0x20 && c != 0x7f);
}

/* The state after the byte @c, which is no data; or -EBADMSG. */
static int framing_byte(struct http_body *b, uint8_t c)
{
	switch ((enum state)b->state) {
	case SIZE:
		return size_byte(b, c);
	case EXTENSION:
		return c == '\r' ? SIZE_LF : is_text(c) ? EXTENSION : -EBADMSG;
	case SIZE_LF:
		b->digits = 0;
		return c != '\n' ? -EBADMSG : b->left > 0 ? DATA : LINE;
	case DATA_CR:
		return c == '\r' ? DATA_LF : -EBADMSG;
	case DATA_LF:
		return c == '\n' ? SIZE : -EBADMSG;
	case LINE:
		return c == '\r' ? LAST_LF : is_text(c) && !b->strict ? FIELD : -EBADMSG;
	case FIELD:
		return c == '\r' ? FIELD_LF : is_text(c) ? FIELD : -EBADMSG;
	case FIELD_LF:
		return c == '\n' ? LINE : -EBADMSG;
	case LAST_LF:
		b->ended = c == '\n';
		return b->ended ? LAST_LF : -EBADMSG;
	case DATA:
		break;
	}
	return -EBADMSG;
}

static ssize_t pass_chunks(struct http_body *b, const uint8_t *data, size_t size)
{
	size_t at = 0;

	while (at < size && !b->ended) {
		if (b->state == DATA) {
			size_t n = size - at < b->left ? size - at : (size_t)b->left;

			at += n;
			b->left -= n;
			b->beside = 0;
			if (b->left == 0)
				b->state = DATA_CR;
			continue;
		}
		int next =
			++b->beside > HTTP_TRAILER_MAX ? -EBADMSG : framing_byte(b, data[at]);
		if (next < 0)
			return next;
		b->state = (uint8_t)next;
		at++;
	}
	return (ssize_t)at;
}

ssize_t http_body_pass(struct http_body *b, const uint8_t *data, size_t size)
{
	if (b->ended)
		return 0;
	if (b->framing == HTTP_CHUNKED)
		return pass_chunks(b, data, size);
	if (b->framing == HTTP_LENGTH) {
		size_t n = size < b->left ? size : (size_t)b->left;

		b->left -= n;
		b->ended = b->left == 0;
		return (ssize_t)n;
	}
	return (ssize_t)size;
}

/*
 * json.c - see json.h.
 *
 * Runs in: every process outside the box. May not: allocate.
 */
#include "base/json.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"

static void note_error(struct json *j, int error)
{
	if (!j->error)
		j->error = error;
}

static void flush_json(struct json *j)
{
	if (j->error || j->used == 0 || !j->write)
		return;
	int r = j->write(j->context, j->buffer, j->used);

	j->used = 0;
	if (r < 0)
		note_error(j, r);
}

static void put_bytes(struct json *j, const void *data, size_t size)
{
	const char *at = data;

	while (size > 0 && !j->error) {
		size_t room = j->size - j->used;

		if (room == 0 && !j->write)
			return note_error(j, -ENOBUFS);
		if (room == 0) {
			flush_json(j);
			continue;
		}
		size_t part = size < room ? size : room;
		memcpy(j->buffer + j->used, at, part);
		j->used += part;
		at += part;
		size -= part;
	}
}

/* Bit of the innermost open level. Only called with depth > 0. */
static uint32_t level(const struct json *j)
{
	return (uint32_t)1 << (j->depth - 1);
}

/* Whether a value may stand here; writes the comma it needs. */
static bool value_begin(struct json *j)
{
	bool in_array = j->depth > 0 && (j->arrays & level(j));

	if (j->depth == 0 ? j->complete : (!in_array && !j->keyed))
		note_error(j, -EINVAL);
	if (j->error)
		return false;
	if (in_array && (j->filled & level(j)))
		put_bytes(j, ",", 1);
	if (in_array)
		j->filled |= level(j);
	j->keyed = false;
	j->complete = true;
	return true;
}

static void begin_container(struct json *j, bool array)
{
	if (j->depth == JSON_DEPTH_MAX)
		note_error(j, -EINVAL);
	if (!value_begin(j))
		return;
	put_bytes(j, array ? "[" : "{", 1);
	j->depth++;
	j->filled &= ~level(j);
	if (array)
		j->arrays |= level(j);
	else
		j->arrays &= ~level(j);
}

static void end(struct json *j, bool array)
{
	if (j->depth == 0 || j->keyed || !!(j->arrays & level(j)) != array)
		return note_error(j, -EINVAL);
	put_bytes(j, array ? "]" : "}", 1);
	j->depth--;
}

/* Length of the valid UTF-8 sequence at @s, or 0 (Unicode, table 3-7). */
static size_t utf8_length(const unsigned char *s, size_t size)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4 || size < length)
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0; /* overlong */
	else if (s[0] == 0xed)
		high = 0x9f; /* surrogates */
	else if (s[0] == 0xf0)
		low = 0x90; /* overlong */
	else if (s[0] == 0xf4)
		high = 0x8f; /* above U+10FFFF */
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return length;
}

static void put_escape(struct json *j, unsigned code)
{
	static const char hex[] = "0123456789abcdef";
	const char text[6] = { '\\', 'u', hex[code >> 12 & 15], hex[code >> 8 & 15],
		hex[code >> 4 & 15], hex[code & 15] };

	put_bytes(j, text, sizeof(text));
}

/* One character below 0x80 that cannot stand as it is. */
static void put_special(struct json *j, unsigned char c)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *at = c ? strchr(from, c) : NULL;

	if (!at)
		return put_escape(j, c);
	put_bytes(j, (const char[2]){ '\\', to[at - from] }, 2);
}

static bool is_special(unsigned char c)
{
	return c < 0x20 || c == '"' || c == '\\' || c == 0x7f;
}

static void put_quoted(struct json *j, const unsigned char *s, size_t size)
{
	size_t at = 0, plain = 0; /* [plain, at) is written as it is, in one piece */

	put_bytes(j, "\"", 1);
	while (at < size && !j->error) {
		size_t length = utf8_length(s + at, size - at);
		bool control = length == 2 && s[at] == 0xc2 && s[at + 1] < 0xa0;

		if (length > 0 && !control && !is_special(s[at])) {
			at += length;
			continue;
		}
		put_bytes(j, s + plain, at - plain);
		if (length == 0)
			put_escape(j, 0xdc00U + s[at]);
		else if (control)
			put_escape(j, s[at + 1]);
		else
			put_special(j, s[at]);
		at += length ? length : 1;
		plain = at;
	}
	put_bytes(j, s + plain, at - plain);
	put_bytes(j, "\"", 1);
}

void json_init(struct json *j, char *buffer, size_t size,
	int (*write)(void *context, const void *data, size_t size), void *context)
{
	*j = (struct json){
		.buffer = buffer, .size = size, .write = write, .context = context
	};
	if (!buffer || size == 0)
		note_error(j, -EINVAL);
}

int json_write_fd(void *context, const void *data, size_t size)
{
	return fd_write_all(*(const int *)context, data, size);
}

void json_object_begin(struct json *j)
{
	begin_container(j, false);
}

void json_object_end(struct json *j)
{
	end(j, false);
}

void json_array_begin(struct json *j)
{
	begin_container(j, true);
}

void json_array_end(struct json *j)
{
	end(j, true);
}

void json_key(struct json *j, const char *key)
{
	if (j->depth == 0 || (j->arrays & level(j)) || j->keyed)
		return note_error(j, -EINVAL);
	if (j->filled & level(j))
		put_bytes(j, ",", 1);
	j->filled |= level(j);
	put_quoted(j, (const unsigned char *)key, strlen(key));
	put_bytes(j, ":", 1);
	j->keyed = true;
}

void json_string(struct json *j, const char *text)
{
	if (!text)
		return json_null(j);
	json_bytes(j, text, strlen(text));
}

void json_bytes(struct json *j, const void *data, size_t size)
{
	if (value_begin(j))
		put_quoted(j, data, size);
}

static void put_number(struct json *j, bool negative, uint64_t value)
{
	char text[24];
	size_t at = sizeof(text);

	if (!value_begin(j))
		return;
	do
		text[--at] = (char)('0' + value % 10);
	while ((value /= 10) > 0);
	if (negative)
		text[--at] = '-';
	put_bytes(j, text + at, sizeof(text) - at);
}

void json_number(struct json *j, int64_t value)
{
	/* Unsigned negation: INT64_MIN has no positive counterpart. */
	put_number(j, value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void json_unsigned(struct json *j, uint64_t value)
{
	put_number(j, false, value);
}

void json_bool(struct json *j, bool value)
{
	if (value_begin(j))
		put_bytes(j, value ? "true" : "false", value ? 4 : 5);
}

void json_null(struct json *j)
{
	if (value_begin(j))
		put_bytes(j, "null", 4);
}

int json_finish(struct json *j)
{
	if (j->depth > 0 || !j->complete)
		note_error(j, -EINVAL);
	put_bytes(j, "\n", 1);
	flush_json(j);
	return j->error;
}

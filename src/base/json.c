/*
 * json.c - see json.h.
 *
 * Runs in: every process outside the box. May not: allocate.
 */
#include "base/json.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

static void note_error(struct json *j, int error)
{
	writer_fail(&j->out, error);
}

static void put_bytes(struct json *j, const void *data, size_t size)
{
	writer_bytes(&j->out, data, size);
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
	if (j->out.error)
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
	while (at < size && !j->out.error) {
		size_t length = text_utf8_length((const char *)s + at, size - at);
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

void json_init(struct json *j, char *buffer, size_t size, writer_fn write, void *context)
{
	*j = (struct json){ 0 };
	writer_init(&j->out, buffer, size, write, context);
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

void json_document(struct json *j, const char *text, size_t size)
{
	if (value_begin(j))
		put_bytes(j, text, size && text[size - 1] == '\n' ? size - 1 : size);
}

int json_finish(struct json *j)
{
	if (j->depth > 0 || !j->complete)
		note_error(j, -EINVAL);
	put_bytes(j, "\n", 1);
	return writer_finish(&j->out);
}

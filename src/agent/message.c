/*
 * message.c - see message.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * An empty array takes three bytes of a line ("[],") and more than a hundred of memory: a line within
 * its bound could still take gigabytes. The parser decides later whether the text is JSON at all.
 */
static const char *count_values(const char *line, size_t length)
{
	size_t depth = 0, values = 0;
	bool inside = false;

	for (size_t i = 0; i < length; i++) {
		if (inside) {
			if (line[i] == '\\')
				i++;
			else if (line[i] == '"')
				inside = false;
			continue;
		}
		switch (line[i]) {
		case '"':
			inside = true;
			break;
		case '[':
		case '{':
			if (++depth > MESSAGE_DEPTH_MAX)
				return "the message is nested too deeply";
			values++;
			break;
		case ']':
		case '}':
			depth -= depth > 0;
			break;
		case ',':
		case ':':
			values++;
			break;
		default:
			break;
		}
		if (values > MESSAGE_VALUES_MAX)
			return "the message has too many values";
	}
	return NULL;
}

/* The parser's own text may quote the line. */
static const char *why_not(enum json_error_code code)
{
	switch ((int)code) {
	case json_error_duplicate_key:
		return "an object has two members of the same name";
	case json_error_invalid_utf8:
		return "it is not UTF-8";
	case json_error_numeric_overflow:
		return "a number has more than 64 bits";
	default:
		return "it is not JSON";
	}
}

/* The code unit of the escape at @text; -1: there is no escape. */
static long unit(const char *text, size_t size)
{
	long value = 0;

	if (size < 6 || text[0] != '\\' || text[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c >= '0' && c <= '9')
			value = value << 4 | (c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			value = value << 4 | ((c | 0x20) - 'a' + 10);
		else
			return -1;
	}
	return value;
}

bool message_mend(char *text, size_t size)
{
	bool any = false;

	for (size_t i = 0; i + 1 < size; i++) {
		if (text[i] != '\\')
			continue;
		long first = unit(text + i, size - i);
		bool high = first >= 0xd800 && first <= 0xdbff;
		long second = high ? unit(text + i + 6, size - i - 6) : -1;

		if (high && second >= 0xdc00 && second <= 0xdfff) {
			i += 11;
		} else if (first >= 0xd800 && first <= 0xdfff) {
			memcpy(text + i, "\\ufffd", 6);
			any = true;
			i += 5;
		} else {
			i++; /* whatever is escaped: it may be a backslash */
		}
	}
	return any;
}

static json_t *load(const char *line, size_t length, json_error_t *ret_e)
{
	return json_loadb(
		line, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, ret_e);
}

/* A client whose texts are UTF-16 can send half a character: one that it cut there. */
static json_t *load_mended(const char *line, size_t length, json_error_t *ret_e)
{
	char *copy = malloc(length);
	json_t *value = NULL;

	if (!copy)
		return NULL;
	memcpy(copy, line, length);
	if (message_mend(copy, length))
		value = load(copy, length, ret_e);
	free(copy);
	return value;
}

json_t *message_parse(const char *line, size_t length, enum message_code *ret_code,
	char *ret_why, size_t size)
{
	const char *why = count_values(line, length);

	if (why) {
		*ret_code = MESSAGE_PARSE_ERROR;
		(void)snprintf(ret_why, size, "%s", why);
		return NULL;
	}
	json_error_t e;
	json_t *value = load(line, length, &e);

	if (!value && json_error_code(&e) == json_error_invalid_syntax)
		value = load_mended(line, length, &e);
	if (!value) {
		/* It is JSON, but does not say which call it belongs to. */
		*ret_code = json_error_code(&e) == json_error_numeric_overflow
			? MESSAGE_INVALID_REQUEST
			: MESSAGE_PARSE_ERROR;
		(void)snprintf(ret_why, size, "the line cannot be read: %s (at byte %d)",
			why_not(json_error_code(&e)), e.position);
	}
	return value;
}

static bool is_id(const json_t *id)
{
	return json_is_integer(id) ||
		(json_is_string(id) && json_string_length(id) <= MESSAGE_ID_MAX);
}

static void bad(struct message *m, const char *why)
{
	m->kind = MESSAGE_BAD;
	m->code = MESSAGE_INVALID_REQUEST;
	m->why = why;
}

static void read_call(const json_t *value, struct message *m)
{
	const json_t *method = json_object_get(value, "method");
	const json_t *params = json_object_get(value, "params");
	const json_t *id = json_object_get(value, "id");

	if (!json_is_string(method) ||
		strlen(json_string_value(method)) != json_string_length(method))
		return bad(m, "`method` must be a string");
	if (id && !m->id)
		return bad(m, "`id` must be a string (of up to 1,024 bytes) or an integer");
	m->kind = id ? MESSAGE_REQUEST : MESSAGE_NOTIFICATION;
	m->method = json_string_value(method);
	if (params && !json_is_object(params)) {
		bad(m, "`params` must be an object");
		m->code = MESSAGE_INVALID_PARAMS;
		m->id = id ? m->id : NULL;
		return;
	}
	m->params = params;
}

void message_read(const json_t *value, struct message *ret)
{
	*ret = (struct message){ .kind = MESSAGE_BAD };
	if (json_is_array(value)) {
		if (json_array_size(value) == 0)
			return bad(ret, "the batch is empty");
		if (json_array_size(value) > MESSAGE_BATCH_MAX)
			return bad(ret, "the batch has more than 100 messages");
		ret->kind = MESSAGE_BATCH;
		return;
	}
	if (!json_is_object(value))
		return bad(ret, "a message must be an object");
	const json_t *id = json_object_get(value, "id");
	const json_t *version = json_object_get(value, "jsonrpc");

	if (is_id(id))
		ret->id = id;
	if (!json_is_string(version) || strcmp(json_string_value(version), "2.0") != 0)
		return bad(ret, "`jsonrpc` must be \"2.0\"");
	if (json_object_get(value, "method"))
		return read_call(value, ret);
	ret->result = json_object_get(value, "result");
	if (!ret->result && !json_is_object(json_object_get(value, "error")))
		return bad(ret, "neither `method` nor `result` nor `error`");
	ret->kind = MESSAGE_RESPONSE;
}

int message_is_blank(const char *line, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
			return 0;
	return 1;
}

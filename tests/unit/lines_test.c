/*
 * lines_test.c - messages out of a stream: cut in every way, empty, unfinished, and far too long.
 */
/* ctest: as=any */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/lines.h"
#include "agent/message.h"

/* Feed @size bytes, @step at a time; what comes out, each line in brackets, LONG as "!". */
static void feed(struct lines *l, const char *data, size_t size, size_t step, char *ret)
{
	size_t used = 0;

	for (size_t at = 0; at < size;) {
		char *room, *line;
		size_t space, length;
		enum lines_what what;

		assert_int_equal(lines_room(l, &room, &space), 0);
		assert_true(space > 0);
		size_t part = size - at < step ? size - at : step;
		part = part < space ? part : space;
		memcpy(room, data + at, part);
		lines_filled(l, part);
		at += part;
		while ((what = lines_next(l, &line, &length)) != LINES_NONE) {
			if (what == LINES_LONG) {
				ret[used++] = '!';
				continue;
			}
			ret[used++] = '[';
			memcpy(ret + used, line, length);
			used += length;
			ret[used++] = ']';
		}
	}
	ret[used] = '\0';
}

static void same_however_it_is_cut(void **state)
{
	static const char text[] =
		"one\ntwo\r\n\n0123456789\n0123456789x\r\n01234567890123456789\nend\nlast";
	char got[256];

	(void)state;
	for (size_t step = 1; step < sizeof(text); step++) {
		struct lines l;
		char *line;
		size_t length;

		lines_init(&l, 10);
		feed(&l, text, sizeof(text) - 1, step, got);
		assert_string_equal(got, "[one][two][][0123456789]!![end]");
		assert_int_equal(lines_last(&l, &line, &length), LINES_LINE);
		assert_memory_equal(line, "last", length);
		assert_int_equal(length, 4);
		assert_int_equal(lines_last(&l, &line, &length), LINES_NONE);
		lines_free(&l);
	}
}

static void a_long_line_is_not_kept(void **state)
{
	enum { BOUND = 1 << 20, TIMES = 100 };
	struct lines l;
	char got[64];
	char *block = malloc(BOUND), *line;
	size_t length;

	(void)state;
	assert_non_null(block);
	memset(block, 'x', BOUND);
	lines_init(&l, BOUND);
	for (int i = 0; i < TIMES; i++) {
		feed(&l, block, BOUND, BOUND, got);
		assert_string_equal(got, i == 1 ? "!" : "");
		assert_true(l.size <= (size_t)2 * BOUND);
	}
	feed(&l, "y\nafter\n", 8, 8, got);
	assert_string_equal(got, "[after]");
	assert_int_equal(lines_last(&l, &line, &length), LINES_NONE);
	/* and what it had taken is given back */
	feed(&l, "z", 1, 1, got);
	assert_true(l.size <= (size_t)64 << 10);
	lines_free(&l);
	free(block);
}

static void unfinished_long_lines_end_in_nothing(void **state)
{
	struct lines l;
	char got[64], *line;
	size_t length;

	(void)state;
	lines_init(&l, 4);
	feed(&l, "123456", 6, 1, got);
	assert_string_equal(got, "!");
	assert_int_equal(lines_last(&l, &line, &length), LINES_NONE);
	lines_free(&l);
	lines_init(&l, 4);
	feed(&l, "12345", 5, 5, got); /* may still be four and a carriage return */
	assert_string_equal(got, "");
	assert_int_equal(lines_last(&l, &line, &length), LINES_LONG);
	lines_free(&l);
}

/* --- messages --------------------------------------------------------------------------------- */

static enum message_kind kind(const char *text, int code)
{
	struct message m;
	char why[256];
	enum message_code said = 0;
	json_t *value = message_parse(text, strlen(text), &said, why, sizeof(why));

	if (!value) {
		assert_int_equal(code, said);
		assert_true(why[0] != '\0');
		return MESSAGE_BAD;
	}
	message_read(value, &m);
	if (m.kind == MESSAGE_BAD) {
		assert_int_equal(m.code, code);
		assert_non_null(m.why);
	}
	enum message_kind found = m.kind;
	json_decref(value);
	return found;
}

static void kinds_of_messages(void **state)
{
	(void)state;
#define HEAD "{\"jsonrpc\":\"2.0\","
	assert_int_equal(kind(HEAD "\"id\":1,\"method\":\"ping\"}", 0), MESSAGE_REQUEST);
	assert_int_equal(
		kind(HEAD "\"id\":\"a\",\"method\":\"x\",\"params\":{}}", 0), MESSAGE_REQUEST);
	assert_int_equal(kind(HEAD "\"method\":\"x\"}", 0), MESSAGE_NOTIFICATION);
	assert_int_equal(kind(HEAD "\"id\":1,\"result\":{}}", 0), MESSAGE_RESPONSE);
	assert_int_equal(kind(HEAD "\"id\":1,\"error\":{}}", 0), MESSAGE_RESPONSE);
	assert_int_equal(kind("[1]", 0), MESSAGE_BATCH);
}

/* Of an escape of half a character: the text that is read. */
static void assert_text(const char *escaped, const char *text)
{
	enum message_code code = 0;
	char why[256];
	json_t *value = message_parse(escaped, strlen(escaped), &code, why, sizeof(why));

	assert_true(json_is_string(value));
	assert_string_equal(json_string_value(value), text);
	json_decref(value);
}

static void halves_of_characters(void **state)
{
	(void)state;
	assert_text("\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80");
	assert_text("\"\\ud83d\"", "\xef\xbf\xbd");
	assert_text("\"a\\uD83Dz\"", "a\xef\xbf\xbdz");
	assert_text("\"\\ude00\\ud83d\"", "\xef\xbf\xbd\xef\xbf\xbd");
	assert_text("\"\\ud83d\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80");
	assert_text("\"\\ud83d\\n\"", "\xef\xbf\xbd\n");
	assert_text("\"\\\\ud83d \\ud83d\"", "\\ud83d \xef\xbf\xbd"); /* the first is none */
	assert_int_equal(kind("\"\\ud83", MESSAGE_PARSE_ERROR), MESSAGE_BAD);
	assert_int_equal(kind("\"\\ud83d", MESSAGE_PARSE_ERROR), MESSAGE_BAD);
	assert_int_equal(
		kind("{\"\\ud83d\":1,\"\\ud83e\":2}", MESSAGE_PARSE_ERROR), MESSAGE_BAD);
}

static void what_is_no_message(void **state)
{
	static const char *const invalid[] = {
		"1",
		"null",
		"\"text\"",
		"[]",
		"{}",
		"{\"id\":1,\"method\":\"x\"}",
		"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"x\"}",
		"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"x\"}",
		HEAD "\"id\":1}",
		HEAD "\"id\":1,\"method\":2}",
		HEAD "\"id\":1,\"method\":\"x\\u0000y\"}",
		HEAD "\"id\":null,\"method\":\"x\"}",
		HEAD "\"id\":1.5,\"method\":\"x\"}",
		HEAD "\"id\":[],\"method\":\"x\"}",
		HEAD "\"id\":true,\"method\":\"x\"}",
		HEAD "\"id\":1,\"error\":1}",
		HEAD "\"id\":99999999999999999999,\"method\":\"x\"}",
		HEAD "\"id\":-99999999999999999999,\"method\":\"x\"}",
	};
	static const char *const unreadable[] = {
		"",
		"{",
		"{\"a\":1,}",
		"{\"a\":1,\"a\":2}",
		"{\"a\":\"\xff\"}",
		"{\"a\":\"\xed\xa0\x80\"}",
		"{} {}",
		"{'a':1}",
		"NaN",
		"\xef\xbb\xbf{}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
		assert_int_equal(kind(invalid[i], MESSAGE_INVALID_REQUEST), MESSAGE_BAD);
	for (size_t i = 0; i < sizeof(unreadable) / sizeof(unreadable[0]); i++)
		assert_int_equal(kind(unreadable[i], MESSAGE_PARSE_ERROR), MESSAGE_BAD);
	assert_int_equal(
		kind(HEAD "\"id\":1,\"method\":\"x\",\"params\":[]}", MESSAGE_INVALID_PARAMS),
		MESSAGE_BAD);
}

/* @count times @text, as the middle of a line. */
static char *repeated(const char *before, const char *text, size_t count, const char *after)
{
	size_t part = strlen(text), first = strlen(before), last = strlen(after);
	char *line = malloc(first + part * count + last + 1);

	assert_non_null(line);
	memcpy(line, before, first);
	for (size_t i = 0; i < count; i++)
		memcpy(line + first + i * part, text, part);
	memcpy(line + first + part * count, after, last + 1);
	return line;
}

static void nesting_and_values_are_bounded(void **state)
{
	(void)state;
	char *deep = repeated("", "[", 3000000, "");
	char *wide = repeated("[", "[],", 3000000, "[]]");
	char *text =
		repeated("[\"", "[,:\\\"", 100000, "\"]"); /* inside a text nothing counts */

	assert_int_equal(kind(deep, MESSAGE_PARSE_ERROR), MESSAGE_BAD);
	assert_int_equal(kind(wide, MESSAGE_PARSE_ERROR), MESSAGE_BAD);
	assert_int_equal(kind(text, 0), MESSAGE_BATCH);
	free(deep);
	free(wide);
	free(text);
	deep = repeated("", "[", MESSAGE_DEPTH_MAX, "");
	char *close = repeated(deep, "]", MESSAGE_DEPTH_MAX, "");
	assert_int_equal(kind(close, 0), MESSAGE_BATCH);
	free(deep);
	free(close);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_however_it_is_cut),
		cmocka_unit_test(a_long_line_is_not_kept),
		cmocka_unit_test(unfinished_long_lines_end_in_nothing),
		cmocka_unit_test(kinds_of_messages),
		cmocka_unit_test(halves_of_characters),
		cmocka_unit_test(what_is_no_message),
		cmocka_unit_test(nesting_and_values_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

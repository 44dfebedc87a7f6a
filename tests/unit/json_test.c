/*
 * json_test.c - the JSON writer: what it writes, byte for byte, and what it refuses.
 *
 * Runs in: the unit tests. That the documents are JSON for others too is shown in report_test.c.
 */
/* ctest: as=any */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"

/* Where the test's `write` puts things; fails once @limit bytes are full. */
struct sink {
	char text[4096];
	size_t used;
	size_t limit;
	size_t calls;
};

static int sink_write(void *context, const void *data, size_t size)
{
	struct sink *s = context;

	s->calls++;
	if (size > s->limit - s->used)
		return -ENOSPC;
	memcpy(s->text + s->used, data, size);
	s->used += size;
	return 0;
}

static struct sink new_sink(void)
{
	return (struct sink){ .limit = sizeof(((struct sink *)0)->text) - 1 };
}

static void write_everything(struct json *j)
{
	json_object_begin(j);
	json_key(j, "text");
	json_string(j, "a");
	json_key(j, "none");
	json_string(j, NULL);
	json_key(j, "list");
	json_array_begin(j);
	json_number(j, INT64_MIN);
	json_number(j, -1);
	json_number(j, 0);
	json_unsigned(j, UINT64_MAX);
	json_bool(j, true);
	json_bool(j, false);
	json_null(j);
	json_array_begin(j);
	json_array_end(j);
	json_object_begin(j);
	json_object_end(j);
	json_object_begin(j);
	json_key(j, "\n");
	json_null(j);
	json_object_end(j);
	json_array_end(j);
	json_key(j, "last");
	json_number(j, 7);
	json_object_end(j);
}

static const char everything[] =
	"{\"text\":\"a\",\"none\":null,\"list\":[-9223372036854775808,-1,0,"
	"18446744073709551615,true,false,null,[],{},{\"\\n\":null}],"
	"\"last\":7}\n";

/* The same document whatever the size of the buffer: no piece is lost or doubled at a seam. */
static void test_every_buffer_size(void **state)
{
	(void)state;
	for (size_t size = 1; size <= 256; size++) {
		struct sink s = new_sink();
		char buffer[256];
		struct json j;

		json_init(&j, buffer, size, sink_write, &s);
		write_everything(&j);
		assert_int_equal(json_finish(&j), 0);
		assert_string_equal(s.text, everything);
	}
}

static void test_in_memory(void **state)
{
	char buffer[256];
	struct json j;

	(void)state;
	json_init(&j, buffer, sizeof(everything) - 1, NULL, NULL);
	write_everything(&j);
	assert_int_equal(json_finish(&j), 0);
	assert_int_equal(j.out.used, sizeof(everything) - 1);
	assert_memory_equal(buffer, everything, j.out.used);
	json_init(&j, buffer, sizeof(everything) - 2, NULL, NULL);
	write_everything(&j);
	assert_int_equal(json_finish(&j), -ENOBUFS);
}

/* @size bytes as one string are written as @expected. */
static void expect_bytes(const void *data, size_t size, const char *expected)
{
	char buffer[64];
	struct json j;
	struct sink s = new_sink();

	json_init(&j, buffer, sizeof(buffer), sink_write, &s);
	json_bytes(&j, data, size);
	assert_int_equal(json_finish(&j), 0);
	assert_string_equal(s.text, expected);
}

#define EXPECT(text, expected) expect_bytes(text, sizeof(text) - 1, "\"" expected "\"\n")

static void test_escapes(void **state)
{
	(void)state;
	EXPECT("", "");
	EXPECT("plain /text", "plain /text");
	EXPECT("\"\\", "\\\"\\\\");
	EXPECT("\b\f\n\r\t", "\\b\\f\\n\\r\\t");
	EXPECT("\0\x01\x1f\x7f", "\\u0000\\u0001\\u001f\\u007f");
	EXPECT("a\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0z", "a\\u0080\\u009b\\u009f\xc2\xa0z");
	EXPECT("\xe2\x80\xa8", "\xe2\x80\xa8"); /* U+2028 */
}

static void test_valid_utf8_is_kept(void **state)
{
	(void)state;
	EXPECT("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	EXPECT("\xdf\xbf\xe0\xa0\x80", "\xdf\xbf\xe0\xa0\x80");
	EXPECT("\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", "\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf");
	EXPECT("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
}

static void test_other_bytes_survive(void **state)
{
	(void)state;
	EXPECT("a\xff"
	       "b",
		"a\\udcffb");
	EXPECT("\x80\xbf", "\\udc80\\udcbf");
	EXPECT("\xc0\xaf\xc1\x81", "\\udcc0\\udcaf\\udcc1\\udc81"); /* overlong */
	EXPECT("\xe0\x9f\xbf", "\\udce0\\udc9f\\udcbf");
	EXPECT("\xf0\x8f\xbf\xbf", "\\udcf0\\udc8f\\udcbf\\udcbf");
	EXPECT("\xed\xa0\x80", "\\udced\\udca0\\udc80"); /* U+D800 */
	EXPECT("\xed\xb3\xbf", "\\udced\\udcb3\\udcbf"); /* what "\udcff" would be in UTF-8 */
	EXPECT("\xf4\x90\x80\x80", "\\udcf4\\udc90\\udc80\\udc80"); /* U+110000 */
	EXPECT("\xf5\xfe", "\\udcf5\\udcfe");
	EXPECT("\xc3", "\\udcc3"); /* cut sequences, at the end and before something else */
	EXPECT("\xe2\x82", "\\udce2\\udc82");
	EXPECT("\xe2\x82"
	       "A",
		"\\udce2\\udc82A");
	EXPECT("\xf0\x9f\x98\xc3\xa9", "\\udcf0\\udc9f\\udc98\xc3\xa9");
}

/* Reads what put_quoted wrote: the bytes again, as Python's surrogateescape gives them. */
static size_t unescape(const char *text, unsigned char *ret_bytes)
{
	size_t n = 0;

	for (; *text != '"'; n++) {
		unsigned code = (unsigned char)*text;

		if (*text != '\\') {
			ret_bytes[n] = (unsigned char)*text++;
			continue;
		}
		if (text[1] == 'u') {
			char digits[5] = { text[2], text[3], text[4], text[5], '\0' };
			code = (unsigned)strtoul(digits, NULL, 16);
			text += 6;
		} else {
			const char *at = strchr("\"\"\\\\b\bf\fn\nr\rt\t", text[1]);
			assert_non_null(at);
			code = (unsigned char)at[1];
			text += 2;
		}
		if (code >= 0x80 && code < 0xa0) { /* a C1 control: two bytes of UTF-8 */
			ret_bytes[n++] = 0xc2;
			ret_bytes[n] = (unsigned char)code;
		} else {
			ret_bytes[n] = (unsigned char)(code >= 0xdc80 ? code - 0xdc00 : code);
		}
	}
	return n;
}

/* Every string of three bytes out of those where the rules change comes back unchanged. */
static void test_round_trip(void **state)
{
	static const unsigned char edges[] = { 0x00, 0x0a, 0x1f, 0x22, 0x5c, 0x62, 0x6e, 0x7e,
		0x7f, 0x80, 0x8f, 0x90, 0x9b, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0,
		0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf4, 0xf5, 0xff };
	const size_t n = sizeof(edges);

	(void)state;
	for (size_t i = 0; i < n * n * n; i++) {
		const unsigned char in[3] = { edges[i / n / n], edges[i / n % n],
			edges[i % n] };
		unsigned char out[32];
		char buffer[64];
		struct json j;

		json_init(&j, buffer, sizeof(buffer), NULL, NULL);
		json_bytes(&j, in, sizeof(in));
		assert_int_equal(json_finish(&j), 0);
		assert_int_equal(unescape(buffer + 1, out), sizeof(in));
		assert_memory_equal(out, in, sizeof(in));
	}
}

/* --- what is refused -------------------------------------------------------------------------- */

static void open_object(struct json *j)
{
	json_object_begin(j);
}

static void object_closed_as_array(struct json *j)
{
	json_object_begin(j);
	json_array_end(j);
}

static void array_closed_as_object(struct json *j)
{
	json_array_begin(j);
	json_object_end(j);
}

static void end_of_nothing(struct json *j)
{
	json_array_end(j);
	json_null(j);
}

static void value_without_key(struct json *j)
{
	json_object_begin(j);
	json_number(j, 1);
	json_object_end(j);
}

static void object_without_key(struct json *j)
{
	json_object_begin(j);
	json_object_begin(j);
	json_object_end(j);
	json_object_end(j);
}

static void key_without_value(struct json *j)
{
	json_object_begin(j);
	json_key(j, "a");
	json_object_end(j);
}

static void two_keys(struct json *j)
{
	json_object_begin(j);
	json_key(j, "a");
	json_key(j, "b");
	json_null(j);
	json_object_end(j);
}

static void key_in_array(struct json *j)
{
	json_array_begin(j);
	json_key(j, "a");
	json_array_end(j);
}

static void key_at_top(struct json *j)
{
	json_key(j, "a");
	json_null(j);
}

static void two_documents(struct json *j)
{
	json_null(j);
	json_array_begin(j);
	json_array_end(j);
}

static void nothing(struct json *j)
{
	(void)j;
}

static void too_deep(struct json *j)
{
	for (unsigned i = 0; i < JSON_DEPTH_MAX + 1; i++)
		json_array_begin(j);
	for (unsigned i = 0; i < JSON_DEPTH_MAX + 1; i++)
		json_array_end(j);
}

static void test_misuse(void **state)
{
	static void (*const cases[])(struct json *) = { open_object, object_closed_as_array,
		array_closed_as_object, end_of_nothing, value_without_key, object_without_key,
		key_without_value, two_keys, key_in_array, key_at_top, two_documents, nothing,
		too_deep };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char buffer[256];
		struct json j;

		json_init(&j, buffer, sizeof(buffer), NULL, NULL);
		cases[i](&j);
		assert_int_equal(json_finish(&j), -EINVAL);
	}
}

static void test_deepest(void **state)
{
	char buffer[256], expected[2 * JSON_DEPTH_MAX + 1];
	struct json j;

	(void)state;
	json_init(&j, buffer, sizeof(buffer), NULL, NULL);
	for (unsigned i = 0; i < JSON_DEPTH_MAX; i++)
		json_array_begin(&j);
	for (unsigned i = 0; i < JSON_DEPTH_MAX; i++)
		json_array_end(&j);
	assert_int_equal(json_finish(&j), 0);
	memset(expected, '[', JSON_DEPTH_MAX);
	memset(expected + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	expected[2 * JSON_DEPTH_MAX] = '\n';
	assert_int_equal(j.out.used, sizeof(expected));
	assert_memory_equal(buffer, expected, sizeof(expected));
}

/* The first failure is the one that is told, and nothing is written after it. */
static void test_write_failure(void **state)
{
	struct sink s = { .limit = 10 };
	char buffer[4];
	struct json j;

	(void)state;
	json_init(&j, buffer, sizeof(buffer), sink_write, &s);
	write_everything(&j);
	json_array_end(&j);
	assert_int_equal(json_finish(&j), -ENOSPC);
	assert_int_equal(s.used, 8);
	assert_int_equal(s.calls, 3);
	assert_memory_equal(s.text, everything, 8);
}

static void test_descriptor(void **state)
{
	char buffer[16];
	struct json j;
	autofd int fd = fd_open_at(AT_FDCWD, "/dev/full", O_WRONLY, 0);

	(void)state;
	assert_true(fd >= 0);
	json_init(&j, buffer, sizeof(buffer), fd_write_to, &fd);
	json_null(&j);
	assert_int_equal(json_finish(&j), -ENOSPC);
	fd_close(&fd);
	fd = fd_open_at(AT_FDCWD, "/dev/null", O_WRONLY, 0);
	assert_true(fd >= 0);
	json_init(&j, buffer, sizeof(buffer), fd_write_to, &fd);
	json_null(&j);
	assert_int_equal(json_finish(&j), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_buffer_size),
		cmocka_unit_test(test_in_memory),
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_valid_utf8_is_kept),
		cmocka_unit_test(test_other_bytes_survive),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_misuse),
		cmocka_unit_test(test_deepest),
		cmocka_unit_test(test_write_failure),
		cmocka_unit_test(test_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

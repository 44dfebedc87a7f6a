/*
 * harmless_test.c - text of tools made harmless, pictures known by their bytes, base64.
 */
/* ctest: as=any */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/harmless.h"
#include "agent/image.h"
#include "base/text.h"

static void becomes(const char *data, size_t size, const char *expected)
{
	autobuffer struct buffer b = { 0 };

	harmless_add(&b, data, size);
	assert_false(b.failed);
	assert_string_equal(b.data ? b.data : "", expected);
}

#define BECOMES(text, expected) becomes(text, sizeof(text) - 1, expected)

static void controls_are_shown(void **state)
{
	(void)state;
	BECOMES("plain\ttext\n", "plain\ttext\n");
	BECOMES("äöü € 𝄞 👩‍👧", "äöü € 𝄞 👩‍👧");
	BECOMES("\033[31mred\033[0m", "␛[31mred␛[0m");
	BECOMES("\033]0;title\a", "␛]0;title␇");
	BECOMES("a\0b", "a␀b");
	BECOMES("\x7f", "␡");
	BECOMES("one\r\ntwo\rthree\r", "one\r\ntwo␍three␍");
	BECOMES("\xc2\x9b"
		"31m",
		"<U+009B>31m");
	BECOMES("\xe2\x80\xae"
		"evil",
		"<U+202E>evil");
	BECOMES("\xf3\xa0\x81\x81", "<U+E0041>");
	BECOMES("\xef\xbb\xbf", "<U+FEFF>");
	BECOMES("", "");
}

static void what_is_no_utf8_is_replaced(void **state)
{
	(void)state;
	BECOMES("\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd");
	BECOMES("a\xc3", "a\xef\xbf\xbd");
	BECOMES("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	BECOMES("\x9b", "\xef\xbf\xbd"); /* a C1 control in Latin-1 */
}

/* Whatever goes in: UTF-8 comes out, with no control but tab, newline, and returns before those. */
static void nothing_gets_through(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		autobuffer struct buffer b = { 0 };
		char data[64];

		for (size_t i = 0; i < sizeof(data); i++) {
			seed = seed * 1103515245u + 12345u;
			data[i] = (char)(seed >> 16);
		}
		harmless_add(&b, data, sizeof(data));
		assert_true(text_is_utf8(b.data, b.used));
		for (size_t i = 0; i < b.used; i++) {
			unsigned char c = (unsigned char)b.data[i];

			assert_true(c >= ' ' || c == '\n' || c == '\t' ||
				(c == '\r' && b.data[i + 1] == '\n'));
			assert_true(c != 0x7f);
			assert_false(c == 0xc2 && (unsigned char)b.data[i + 1] < 0xa0);
		}
	}
}

static void pictures_are_known_by_their_bytes(void **state)
{
	(void)state;
	assert_string_equal(image_type("\x89PNG\r\n\x1a\n", 8), "image/png");
	assert_string_equal(image_type("\xff\xd8\xff\xe0", 4), "image/jpeg");
	assert_string_equal(image_type("GIF87a", 6), "image/gif");
	assert_string_equal(image_type("GIF89a", 6), "image/gif");
	assert_string_equal(image_type("RIFF\1\2\3\4WEBPVP8 ", 16), "image/webp");
	assert_null(image_type("RIFF\1\2\3\4WAVEfmt ", 16));
	assert_null(image_type("\x89PNG\r\n\x1a", 7));
	assert_null(image_type("<svg xmlns=", 11));
	assert_null(image_type("", 0));
}

static void base64_both_ways(void **state)
{
	static const char *const pairs[][2] = { { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" },
		{ "foo", "Zm9v" }, { "foob", "Zm9vYg==" }, { "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" } }; /* RFC 4648, section 10 */
	static const char *const wrong[] = { "Z", "Zg",
		"Zg=", "Zg===", "Zh==", "Zm9=", "Zg==Zg==", "=Zg=", "Zm\1v", "Zm-v",
		"====", "Zg==x" };

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		autobuffer struct buffer there = { 0 }, back = { 0 };

		image_base64(&there, pairs[i][0], strlen(pairs[i][0]));
		assert_string_equal(there.data ? there.data : "", pairs[i][1]);
		assert_true(image_from_base64(&back, pairs[i][1], strlen(pairs[i][1])));
		assert_string_equal(back.data ? back.data : "", pairs[i][0]);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		autobuffer struct buffer back = { 0 };

		assert_false(image_from_base64(&back, wrong[i], strlen(wrong[i])));
	}
	autobuffer struct buffer broken = { 0 };

	assert_true(image_from_base64(&broken, "Zm9v\r\nYmFy\n", 11));
	assert_string_equal(broken.data, "foobar");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(controls_are_shown),
		cmocka_unit_test(what_is_no_utf8_is_replaced),
		cmocka_unit_test(nothing_gets_through),
		cmocka_unit_test(pictures_are_known_by_their_bytes),
		cmocka_unit_test(base64_both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

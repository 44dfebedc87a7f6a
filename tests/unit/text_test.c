/*
 * text_test.c - base/text: sizes, durations, counts, nearest words, UTF-8.
 *
 * Runs in: the tests; no privileges.
 */
/* ctest: as=any */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

struct number_case {
	const char *text;
	int result;
	uint64_t value;
};

#define KIB UINT64_C(1024)

static const struct number_case sizes[] = {
	{ "1", 0, 1 },
	{ "4096", 0, 4096 },
	{ "007", 0, 7 },
	{ "1K", 0, KIB },
	{ "512M", 0, 512 * KIB *KIB },
	{ "2G", 0, 2 * KIB *KIB *KIB },
	{ "3T", 0, 3 * KIB *KIB *KIB *KIB },
	{ "1KiB", 0, KIB },
	{ "1MiB", 0, KIB *KIB },
	{ "1GiB", 0, KIB *KIB *KIB },
	{ "1TiB", 0, KIB *KIB *KIB *KIB },
	{ "18446744073709551615", 0, UINT64_MAX },
	{ "18446744073709551616", -ERANGE, 0 },
	{ "184467440737095516150", -ERANGE, 0 },
	{ "16777216T", -ERANGE, 0 },
	{ "16777215T", 0, UINT64_C(16777215) << 40 },
	{ "", -EINVAL, 0 },
	{ "0", -EINVAL, 0 },
	{ "0K", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "+1", -EINVAL, 0 },
	{ "12x", -EINVAL, 0 },
	{ "123bogus", -EINVAL, 0 },
	{ "1 K", -EINVAL, 0 },
	{ " 1", -EINVAL, 0 },
	{ "1 ", -EINVAL, 0 },
	{ "1k", -EINVAL, 0 },
	{ "1KB", -EINVAL, 0 },
	{ "1Ki", -EINVAL, 0 },
	{ "1.5G", -EINVAL, 0 },
	{ "0x10", -EINVAL, 0 },
	{ "1e3", -EINVAL, 0 },
	{ "K", -EINVAL, 0 },
};

static const struct number_case durations[] = {
	{ "1", 0, 1000 },
	{ "500ms", 0, 500 },
	{ "10s", 0, 10000 },
	{ "5m", 0, 300000 },
	{ "2h", 0, 7200000 },
	{ "1d", 0, 86400000 },
	{ "0.5s", 0, 500 },
	{ "1.5", 0, 1500 },
	{ "0.001", 0, 1 },
	{ "2.25h", 0, 8100000 },
	{ "1.5ms", 0, 1 },
	{ "0.3333s", 0, 333 },
	{ "", -EINVAL, 0 },
	{ "0", -EINVAL, 0 },
	{ "0.0", -EINVAL, 0 },
	{ "0.0001s", -EINVAL, 0 },
	{ "0.9ms", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "1.", -EINVAL, 0 },
	{ ".5", -EINVAL, 0 },
	{ "1.2.3", -EINVAL, 0 },
	{ "1.0000000001", -EINVAL, 0 },
	{ "12x", -EINVAL, 0 },
	{ "5 m", -EINVAL, 0 },
	{ "5M", -EINVAL, 0 },
	{ "1h30m", -EINVAL, 0 },
	{ "18446744073709551616", -ERANGE, 0 },
	{ "18446744073709551615d", -ERANGE, 0 },
	{ "36501d", 0, UINT64_C(36501) * 86400000 },
	{ "36601d", -ERANGE, 0 },
};

static const struct number_case counts[] = {
	{ "1", 0, 1 },
	{ "1024", 0, 1024 },
	{ "18446744073709551615", 0, UINT64_MAX },
	{ "18446744073709551616", -ERANGE, 0 },
	{ "0", -EINVAL, 0 },
	{ "", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "1K", -EINVAL, 0 },
	{ "1 ", -EINVAL, 0 },
};

static const struct number_case thousandths[] = {
	{ "1", 0, 1000 },
	{ "0.5", 0, 500 },
	{ "1.25", 0, 1250 },
	{ "0.001", 0, 1 },
	{ "2.0", 0, 2000 },
	{ "18446744073709551", 0, UINT64_C(18446744073709551000) },
	{ "18446744073709551.615", 0, UINT64_MAX },
	{ "18446744073709551.616", -ERANGE, 0 },
	{ "18446744073709552", -ERANGE, 0 },
	{ "", -EINVAL, 0 },
	{ "0", -EINVAL, 0 },
	{ "0.000", -EINVAL, 0 },
	{ "0.0001", -EINVAL, 0 },
	{ ".5", -EINVAL, 0 },
	{ "1.", -EINVAL, 0 },
	{ "1,5", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "50%", -EINVAL, 0 },
	{ "1.5 ", -EINVAL, 0 },
};

static void check_cases(const struct number_case *cases, size_t count,
	int (*parse)(const char *text, uint64_t *ret))
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = 77;
		int r = parse(cases[i].text, &value);

		if (r != cases[i].result || value != (r == 0 ? cases[i].value : 77))
			fail_msg("'%s': %d, %llu", cases[i].text, r, (unsigned long long)value);
	}
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void test_sizes(void **state)
{
	(void)state;
	check_cases(sizes, COUNT(sizes), text_parse_size);
}

static void test_durations(void **state)
{
	(void)state;
	check_cases(durations, COUNT(durations), text_parse_duration);
}

static void test_counts(void **state)
{
	(void)state;
	check_cases(counts, COUNT(counts), text_parse_count);
}

static void test_thousandths(void **state)
{
	(void)state;
	check_cases(thousandths, COUNT(thousandths), text_parse_thousandths);
}

/* What is printed reads back as the same number. */
static void test_round_trip(void **state)
{
	static const uint64_t values[] = { 1, 1023, 1024, 1536, 1 << 20, UINT64_C(3) << 30, 999,
		1000, 1001, 60000, 90000, 3600000, 86400000, 100000000 };
	char text[32];
	uint64_t back;

	(void)state;
	for (size_t i = 0; i < COUNT(values); i++) {
		text_format_size(values[i], text, sizeof(text));
		assert_int_equal(text_parse_size(text, &back), 0);
		assert_int_equal(back, values[i]);
		text_format_duration(values[i], text, sizeof(text));
		assert_int_equal(text_parse_duration(text, &back), 0);
		assert_int_equal(back, values[i]);
		text_format_thousandths(values[i], text, sizeof(text));
		assert_int_equal(text_parse_thousandths(text, &back), 0);
		assert_int_equal(back, values[i]);
	}
	text_format_thousandths(500, text, sizeof(text));
	assert_string_equal(text, "0.5");
	text_format_thousandths(2005, text, sizeof(text));
	assert_string_equal(text, "2.005");
	text_format_duration(90000, text, sizeof(text));
	assert_string_equal(text, "90s");
	text_format_size(3 * KIB, text, sizeof(text));
	assert_string_equal(text, "3K");
}

static void test_distance(void **state)
{
	char longest[65];

	(void)state;
	assert_int_equal(text_distance("hide", "hide", 3), 0);
	assert_int_equal(text_distance("hid", "hide", 3), 1);
	assert_int_equal(text_distance("hidee", "hide", 3), 1);
	assert_int_equal(text_distance("hode", "hide", 3), 1);
	assert_int_equal(text_distance("hdie", "hide", 3), 1);
	assert_int_equal(text_distance("kitten", "sitting", 5), 3);
	assert_int_equal(text_distance("kitten", "sitting", 2), 3);
	assert_int_equal(text_distance("", "abc", 5), 3);
	memset(longest, 'a', 64);
	longest[64] = '\0';
	assert_int_equal(text_distance(longest, longest, 5), 6);
	assert_int_equal(text_distance(longest + 1, longest + 1, 5), 0);
}

static void test_nearest(void **state)
{
	static const char *const words[] = { "read", "write", "hide", "workspace",
		"workspace-mode" };

	(void)state;
	assert_string_equal(text_nearest("raed", words, 5), "read");
	assert_string_equal(text_nearest("wrte", words, 5), "write");
	assert_string_equal(text_nearest("work", words, 5), "workspace");
	assert_string_equal(text_nearest("workspace-mod", words, 5), "workspace-mode");
	assert_string_equal(text_nearest("hide", words, 5), "hide");
	assert_null(text_nearest("xyzzy", words, 5));
	assert_null(text_nearest("", words, 5));
	assert_null(text_nearest("hide", words, 0));
}

struct utf8_case {
	const char *text;
	size_t size;
	size_t length;
};

static void test_utf8(void **state)
{
	static const struct utf8_case cases[] = {
		{ "a", 1, 1 },
		{ "\xc3\xa9", 2, 2 },
		{ "\xe2\x82\xac", 3, 3 },
		{ "\xf0\x9f\x93\x9a", 4, 4 },
		{ "\xf4\x8f\xbf\xbf", 4, 4 },
		{ "\xf4\x90\x80\x80", 4, 0 }, /* beyond U+10FFFF */
		{ "\xf5\x80\x80\x80", 4, 0 },
		{ "\xc0\x80", 2, 0 }, /* overlong */
		{ "\xc1\xbf", 2, 0 },
		{ "\xe0\x9f\xbf", 3, 0 },
		{ "\xf0\x8f\xbf\xbf", 4, 0 },
		{ "\xed\xa0\x80", 3, 0 }, /* surrogate */
		{ "\x80", 1, 0 },
		{ "\xff", 1, 0 },
		{ "\xc3", 1, 0 }, /* cut */
		{ "\xe2\x82", 2, 0 },
		{ "\xc3\x28", 2, 0 },
		{ "", 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (text_utf8_length(cases[i].text, cases[i].size) != cases[i].length)
			fail_msg("case %zu", i);
	assert_true(text_is_utf8("", 0));
	assert_true(text_is_utf8("caf\xc3\xa9 \xe2\x82\xac", 9));
	assert_false(text_is_utf8("caf\xe9", 4));
	assert_false(text_is_utf8("caf\xc3", 4));
}

static void test_visible(void **state)
{
	static const struct {
		const char *text, *special, *shown;
	} cases[] = {
		{ "", "", "" },
		{ "plain \\ caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "",
			"plain \\ caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80" },
		{ "a\\b", "\\", "a\\x5cb" },
		{ "\x1b[2J\n\x7f", "", "\\x1b[2J\\x0a\\x7f" },
		{ "\xc2\x9b"
		  "31m\xc2\xa0",
			"", "\\xc2\\x9b31m\\xc2\\xa0" },
		{ "\xef\xbb\xbf\xc2\xad\xe1\x9a\x80\xe1\xa0\x8e\xe2\x80\xa8", "",
			"\\xef\\xbb\\xbf\\xc2\\xad\\xe1\\x9a\\x80\\xe1\\xa0\\x8e\\xe2\\x80\\xa8" },
		{ "\xe2\x80\x8b\xe2\x80\xaf\xe2\x81\xa0\xe3\x80\x80", "",
			"\\xe2\\x80\\x8b\\xe2\\x80\\xaf\\xe2\\x81\\xa0\\xe3\\x80\\x80" },
		/* Their neighbours, and the joiners. */
		{ "\xc2\xa1\xc2\xae\xe1\x9a\x81\xe2\x80\x8c\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xb0",
			"",
			"\xc2\xa1\xc2\xae\xe1\x9a\x81\xe2\x80\x8c\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xb0" },
		{ "\xe2\x81\x9e\xe3\x80\x81\xef\xbb\xbe", "",
			"\xe2\x81\x9e\xe3\x80\x81\xef\xbb\xbe" },
		{ "\x9b"
		  "31m",
			"", "\\x9b31m" },
		{ "\xe2\x80\xaetxt.\xe2\x81\xa6\xd8\x9c", "",
			"\\xe2\\x80\\xaetxt.\\xe2\\x81\\xa6\\xd8\\x9c" },
	};
	char shown[96];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *at = cases[i].text;

		assert_int_equal(text_visible(&at, cases[i].special, shown, sizeof(shown)),
			strlen(cases[i].shown));
		assert_string_equal(shown, cases[i].shown);
		assert_string_equal(at, "");
	}
	/* As far as it fits, and never a part of something. */
	const char *at = "abc\n\xe2\x82\xac";
	assert_int_equal(text_visible(&at, "", shown, 8), 7);
	assert_string_equal(shown, "abc\\x0a");
	assert_int_equal(text_visible(&at, "", shown, 5), 3);
	assert_string_equal(shown, "\xe2\x82\xac");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_thousandths),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_distance),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_visible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

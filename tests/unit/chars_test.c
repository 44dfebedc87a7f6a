/*
 * chars_test.c - counting characters, held against a decoder that was written to be read: it goes
 * from byte to byte through the table of well-formed sequences of the Unicode standard (table 3-7).
 */
/* ctest: as=any */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/chars.h"

struct form {
	unsigned char low[4], high[4]; /* of each byte */
	size_t length;
};

static const struct form forms[] = {
	{ { 0x00 }, { 0x7f }, 1 },
	{ { 0xc2, 0x80 }, { 0xdf, 0xbf }, 2 },
	{ { 0xe0, 0xa0, 0x80 }, { 0xe0, 0xbf, 0xbf }, 3 },
	{ { 0xe1, 0x80, 0x80 }, { 0xec, 0xbf, 0xbf }, 3 },
	{ { 0xed, 0x80, 0x80 }, { 0xed, 0x9f, 0xbf }, 3 },
	{ { 0xee, 0x80, 0x80 }, { 0xef, 0xbf, 0xbf }, 3 },
	{ { 0xf0, 0x90, 0x80, 0x80 }, { 0xf0, 0xbf, 0xbf, 0xbf }, 4 },
	{ { 0xf1, 0x80, 0x80, 0x80 }, { 0xf3, 0xbf, 0xbf, 0xbf }, 4 },
	{ { 0xf4, 0x80, 0x80, 0x80 }, { 0xf4, 0x8f, 0xbf, 0xbf }, 4 },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Whether the first @size bytes agree with @f as far as both go. */
static bool agrees(const struct form *f, const unsigned char *data, size_t size)
{
	for (size_t i = 0; i < size && i < f->length; i++)
		if (data[i] < f->low[i] || data[i] > f->high[i])
			return false;
	return true;
}

/* Bytes of the character at @data: those of a valid sequence, or one. */
static size_t length_at(const unsigned char *data, size_t size)
{
	for (size_t i = 0; i < COUNT(forms); i++)
		if (forms[i].length <= size && agrees(&forms[i], data, size))
			return forms[i].length;
	return 1;
}

static size_t reference_offset(const char *data, size_t size, uint64_t count)
{
	size_t at = 0;

	for (; count > 0 && at < size; count--)
		at += length_at((const unsigned char *)data + at, size - at);
	return at;
}

static size_t reference_count(const char *data, size_t size)
{
	size_t count = 0;

	for (size_t at = 0; at < size; count++)
		at += length_at((const unsigned char *)data + at, size - at);
	return count;
}

/* The longest end that is a proper beginning of a valid sequence. */
static size_t reference_open(const char *data, size_t size)
{
	for (size_t open = size < 3 ? size : 3; open > 0; open--)
		for (size_t i = 0; i < COUNT(forms); i++)
			if (forms[i].length > open &&
				agrees(&forms[i], (const unsigned char *)data + size - open,
					open))
				return open;
	return 0;
}

static void check(const char *data, size_t size)
{
	size_t count = reference_count(data, size), at = 0;

	assert_int_equal(chars_count(data, size), count);
	assert_int_equal(chars_open(data, size), reference_open(data, size));
	for (size_t i = 0; i <= count; i++) {
		size_t end = reference_offset(data, size, i);

		assert_int_equal(chars_offset(data, size, i), end);
		/* every place up to the boundary belongs to the character before it */
		for (; at < end; at++)
			assert_int_equal(chars_boundary(data, size, at),
				reference_offset(data, size, i - 1));
		if (i > 0)
			assert_int_equal(chars_last_length(data, end),
				end - reference_offset(data, size, i - 1));
	}
	assert_int_equal(chars_boundary(data, size, size), size);
	assert_int_equal(chars_offset(data, size, count + 1), size);
}

/* Bytes that stand at the edges of the table. */
static const unsigned char edges[] = { 0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
	0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4,
	0xf5, 0xf8, 0xff };

static void test_every_pair(void **state)
{
	(void)state;
	for (unsigned first = 0; first < 256; first++)
		for (unsigned second = 0; second < 256; second++) {
			const char data[] = { (char)first, (char)second };

			check(data, 1);
			check(data, 2);
		}
}

static void test_every_edge(void **state)
{
	char data[5];

	(void)state;
	for (size_t a = 0; a < COUNT(edges); a++)
		for (size_t b = 0; b < COUNT(edges); b++)
			for (size_t c = 0; c < COUNT(edges); c++)
				for (size_t d = 0; d < COUNT(edges); d++) {
					data[0] = (char)edges[a];
					data[1] = (char)edges[b];
					data[2] = (char)edges[c];
					data[3] = (char)edges[d];
					data[4] = '.';
					assert_int_equal(
						chars_count(data, 5), reference_count(data, 5));
					assert_int_equal(
						chars_open(data, 4), reference_open(data, 4));
				}
}

/* Always the same numbers: a failure can be repeated. */
static uint32_t next(uint32_t *state)
{
	*state = *state * 1664525U + 1013904223U;
	return *state >> 8;
}

/* Runs of one kind of text, of which some are cut or spoilt. */
static size_t make_text(char *data, size_t size, uint32_t *seed)
{
	static const char *const pieces[] = { "plain words, ", "\xc3\xa9", "\xe2\x82\xac",
		"\xf0\x9f\x98\x80", "\xed\xa0\x80", "\xe0\x80\x80", "\xf4\x90\x80\x80",
		"\xc0\xaf", "\xe2\x82", "\xf0\x9f\x98", "\x80\xbf", "\xff" };
	size_t used = 0;

	while (used < size) {
		const char *piece = pieces[next(seed) % COUNT(pieces)];

		for (uint32_t runs = next(seed) % 40 + 1; runs > 0; runs--) {
			size_t length = strlen(piece);

			length = length < size - used ? length : size - used;
			memcpy(data + used, piece, length);
			used += length;
		}
		if (used > 2 && next(seed) % 4 == 0)
			data[used - 1 - next(seed) % 2] =
				(char)edges[next(seed) % COUNT(edges)];
	}
	return used;
}

/* At the end of a mapping: a byte too far is a fault. */
static void test_long_texts(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	enum {
		SIZE = 3 * 4096,
		ROUNDS = 600
	}; /* each is ten times as slow; the others run without */
#else
	enum { SIZE = 3 * 4096, ROUNDS = 3000 };
#endif
	uint32_t seed = 1;

	(void)state;
	char *pages = mmap(
		NULL, SIZE + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(pages != MAP_FAILED);
	assert_int_equal(mprotect(pages + SIZE, 4096, PROT_NONE), 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		size_t size = next(&seed) % (round % 10 ? 300 : SIZE);
		char *data = pages + SIZE - size;
		size_t count;

		(void)make_text(data, size, &seed);
		count = reference_count(data, size);
		assert_int_equal(chars_count(data, size), count);
		for (unsigned i = 0; i < 5; i++) {
			uint64_t some = next(&seed) % (count + 2);
			size_t end = reference_offset(data, size, some);

			assert_int_equal(chars_offset(data, size, some), end);
			/* both sides of a boundary can be counted alone */
			assert_int_equal(
				chars_count(data, end) + chars_count(data + end, size - end),
				count);
		}
		if (size > 0 && size < 300)
			check(data, size);
	}
	assert_int_equal(munmap(pages, SIZE + 4096), 0);
}

/* Texts of one kind of character alone, cut anywhere. */
static void test_runs(void **state)
{
	static const char *const runs[] = { "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
		"\x80", "\xf4\x90\x80\x80" };
	static char data[70000];

	(void)state;
	for (size_t i = 0; i < COUNT(runs); i++) {
		size_t length = strlen(runs[i]), size = 0;

		while (size + length <= sizeof(data)) {
			memcpy(data + size, runs[i], length);
			size += length;
		}
		for (size_t cut = 0; cut < 40; cut++) {
			assert_int_equal(chars_count(data, size - cut),
				reference_count(data, size - cut));
			assert_int_equal(chars_offset(data, size - cut, 9000),
				reference_offset(data, size - cut, 9000));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_pair),
		cmocka_unit_test(test_every_edge),
		cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

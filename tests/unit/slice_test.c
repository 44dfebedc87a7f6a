/*
 * slice_test.c - slices of files, held against a reference that has the whole file and a list of where
 * its units begin: every range of small files, random ones of files larger than a block.
 */
/* ctest: as=any */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "host/tree/slice.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int make_file(const char *data, size_t size)
{
	int fd = memfd_create("slice", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, size), 0);
	return fd;
}

/* --- the reference ---------------------------------------------------------------------------- */

struct units {
	size_t *start; /* of each, and at [count] the size */
	size_t count;
};

static size_t unit_length(enum slice_unit unit, const char *data, size_t size)
{
	const char *newline;
	size_t length;

	switch (unit) {
	case SLICE_LINES:
		newline = memchr(data, '\n', size);
		return newline ? (size_t)(newline - data) + 1 : size;
	case SLICE_CHARS:
		length = text_utf8_length(data, size);
		return length ? length : 1;
	case SLICE_BYTES:
		break;
	}
	return 1;
}

static struct units find_units(enum slice_unit unit, const char *data, size_t size)
{
	struct units u = { .start = calloc(size + 1, sizeof(size_t)) };
	size_t at = 0;

	assert_non_null(u.start);
	while (at < size) {
		u.start[u.count++] = at;
		at += unit_length(unit, data + at, size - at);
	}
	u.start[u.count] = size;
	return u;
}

/* Index of the unit that @number names, perhaps before the first (-1) or behind the last. */
static int64_t index_of(const struct units *u, int64_t number)
{
	int64_t index = number > 0 ? number - 1 : (int64_t)u->count + number;

	if (index < -1)
		return -1;
	return index > (int64_t)u->count ? (int64_t)u->count : index;
}

static void check(
	int fd, enum slice_unit unit, const struct units *u, int64_t first, int64_t last)
{
	const struct slice s = { .unit = unit, .first = first, .last = last };
	int64_t from = first ? index_of(u, first) : 0;
	int64_t to = last ? index_of(u, last) + 1 : (int64_t)u->count;
	struct slice_found found;

	from = from < 0 ? 0 : from;
	to = to > (int64_t)u->count ? (int64_t)u->count : to;
	to = to < from ? from : to;
	assert_int_equal(slice_find(fd, &s, &found), 0);
	if (from < to || found.start < found.end) {
		assert_int_equal(found.start, u->start[from]);
		assert_int_equal(found.end, u->start[to]);
		assert_int_equal(found.more, to < (int64_t)u->count);
	} else {
		assert_int_equal(found.start, found.end);
	}
}

static void check_all(const char *data, size_t size)
{
	autofd int fd = make_file(data, size);

	for (int unit = SLICE_LINES; unit <= SLICE_BYTES; unit++) {
		struct units u = find_units((enum slice_unit)unit, data, size);
		int64_t most = (int64_t)u.count + 2;

		for (int64_t first = -most; first <= most; first++)
			for (int64_t last = -most; last <= most; last++)
				check(fd, (enum slice_unit)unit, &u, first, last);
		free(u.start);
	}
}

static void test_small(void **state)
{
	static const char *const texts[] = { "", "a", "\n", "\n\n", "a\n", "a\nb", "a\n\nb\n",
		"\xc3\xa9\xe2\x82\xac\n\xf0\x9f\x98\x80", "\xe2\x82\n\xff\xf0\x9f\x98",
		"\x80\x80\x80\x80\x80", "x\xed\xa0\x80y\n\n" };

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		check_all(texts[i], strlen(texts[i]));
	check_all("a\0b\n\0", 5);
}

static uint32_t next(uint32_t *state)
{
	*state = *state * 1664525U + 1013904223U;
	return *state >> 8;
}

static int64_t some_number(uint32_t *seed, size_t count)
{
	int64_t number = (int64_t)(next(seed) % (count + 3));

	return next(seed) % 2 ? number : -number;
}

/* Files of several blocks, of which the borders lie within characters and lines. */
static void test_large(void **state)
{
	static const char *const pieces[] = { "a line of text\n", "\xc3\xa9", "\xe2\x82\xac",
		"\xf0\x9f\x98\x80", "\xff", "\xe2\x82", "\n",
		"a much longer piece of text without an end" };
	static char data[1200000];
	uint32_t seed = 3;

	(void)state;
	for (unsigned round = 0; round < 6; round++) {
		size_t size = 0, most = sizeof(data) - 100 - next(&seed) % 400000;

		while (size < most) {
			const char *piece = pieces[next(&seed) % COUNT(pieces)];

			for (uint32_t runs = next(&seed) % 400; runs > 0 && size < most;
				runs--) {
				memcpy(data + size, piece, strlen(piece));
				size += strlen(piece);
			}
		}
		autofd int fd = make_file(data, size);
		for (int unit = SLICE_LINES; unit <= SLICE_BYTES; unit++) {
			struct units u = find_units((enum slice_unit)unit, data, size);

			for (unsigned i = 0; i < 60; i++)
				check(fd, (enum slice_unit)unit, &u,
					some_number(&seed, u.count),
					some_number(&seed, u.count));
			free(u.start);
		}
	}
}

/* --- words ------------------------------------------------------------------------------------ */

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		int result;
		int64_t first, last;
	} cases[] = { { "1:5", 0, 1, 5 }, { "7", 0, 7, 7 }, { "-1", 0, -1, -1 },
		{ ":", 0, 0, 0 }, { "3:", 0, 3, 0 }, { ":9", 0, 0, 9 }, { "-100:", 0, -100, 0 },
		{ ":-2", 0, 0, -2 }, { "5:2", 0, 5, 2 },
		{ "9223372036854775806:", 0, INT64_MAX - 1, 0 }, { "", -EINVAL, 0, 0 },
		{ "0", -EINVAL, 0, 0 }, { "0:5", -EINVAL, 0, 0 }, { "1:0", -EINVAL, 0, 0 },
		{ "-0:", -EINVAL, 0, 0 }, { "1-5", -EINVAL, 0, 0 }, { "1:5:7", -EINVAL, 0, 0 },
		{ "a:b", -EINVAL, 0, 0 }, { "1: 5", -EINVAL, 0, 0 }, { " 1:5", -EINVAL, 0, 0 },
		{ "+1", -EINVAL, 0, 0 }, { "--1", -EINVAL, 0, 0 }, { "1K", -EINVAL, 0, 0 },
		{ "9223372036854775807", -ERANGE, 0, 0 },
		{ ":18446744073709551616", -ERANGE, 0, 0 },
		{ "99999999999999999999999999:", -ERANGE, 0, 0 } };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct slice s = { .unit = SLICE_BYTES, .first = 77, .last = 77 };

		assert_int_equal(slice_parse(SLICE_LINES, cases[i].text, &s), cases[i].result);
		if (cases[i].result < 0) {
			assert_int_equal(s.first, 77);
			continue;
		}
		assert_int_equal(s.unit, SLICE_LINES);
		assert_int_equal(s.first, cases[i].first);
		assert_int_equal(s.last, cases[i].last);
	}
}

/* --- files ------------------------------------------------------------------------------------ */

static void test_copy(void **state)
{
	const struct slice s = { .unit = SLICE_LINES, .first = 2, .last = 3 };
	struct slice_found found;
	uint64_t written = 77;
	char got[64];
	autofd int fd = make_file("one\ntwo\nthree\nfour\n", 19);
	autofd int out = make_file("", 0);

	(void)state;
	assert_int_equal(slice_find(fd, &s, &found), 0);
	assert_int_equal(slice_copy(fd, &found, out, &written), 0);
	assert_int_equal(written, 10);
	assert_int_equal(pread(out, got, sizeof(got), 0), 10);
	assert_memory_equal(got, "two\nthree\n", 10);
	/* the descriptor may be shared: its place is not touched */
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 19);
	/* a file that has become shorter meanwhile */
	assert_int_equal(ftruncate(fd, 6), 0);
	assert_int_equal(slice_copy(fd, &found, out, &written), 0);
	assert_int_equal(written, 2);
}

/* Bytes that nobody has written: 2 TiB of a hole, where only the ends may be read. */
static void test_sparse(void **state)
{
	const struct slice last = { .unit = SLICE_LINES, .first = -2 };
	const struct slice head = { .unit = SLICE_LINES, .first = 1, .last = 1 };
	const struct slice tail = { .unit = SLICE_CHARS, .first = -4, .last = -3 };
	const struct slice middle = {
		.unit = SLICE_BYTES, .first = INT64_C(1) << 40, .last = (INT64_C(1) << 40) + 4
	};
	const off_t size = (off_t)1 << 41;
	struct slice_found found;
	autofd int fd = make_file("first\n", 6);

	(void)state;
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(pwrite(fd, "\nab\nc\xc3\xa9", 7, size), 7);
	assert_int_equal(slice_find(fd, &last, &found), 0);
	assert_int_equal(found.start, size + 1);
	assert_int_equal(found.end, size + 7);
	assert_false(found.more);
	assert_int_equal(slice_find(fd, &head, &found), 0);
	assert_true(found.start == 0 && found.end == 6 && found.more);
	assert_int_equal(slice_find(fd, &tail, &found), 0);
	assert_int_equal(found.start, size + 2); /* b, newline, c, é */
	assert_int_equal(found.end, size + 4);
	assert_int_equal(slice_find(fd, &middle, &found), 0);
	assert_int_equal(found.start, (UINT64_C(1) << 40) - 1);
	assert_int_equal(found.end - found.start, 5);
}

/* Files that say they are empty, and things that are none. */
static void test_kinds(void **state)
{
	const struct slice all = { .unit = SLICE_LINES },
			   last = { .unit = SLICE_LINES, .first = -1 };
	struct slice_found found;
	int ends[2];
	autofd int proc = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	autofd int endless = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	autofd int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autofd int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(proc >= 0 && dir >= 0 && null >= 0);
	assert_int_equal(slice_find(proc, &all, &found), 0);
	assert_true(found.end > 100);
	assert_int_equal(slice_find(proc, &last, &found), 0);
	assert_true(found.start > 0 && found.end > found.start);
	assert_true(endless >= 0);
	assert_int_equal(slice_find(endless, &all, &found), -EFBIG);
	assert_int_equal(slice_find(dir, &all, &found), -EISDIR);
	assert_int_equal(slice_find(null, &all, &found), -ESPIPE);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(slice_find(ends[0], &all, &found), -ESPIPE);
	assert_int_equal(close(ends[0]), 0);
	assert_int_equal(close(ends[1]), 0);
	assert_int_equal(slice_find(-1, &all, &found), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_sparse),
		cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

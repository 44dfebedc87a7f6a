/*
 * budget_test.c - the budget of a stream, held against a simple reference that has all of the output
 * before it: cut at every place into two reads, at random into many; budgets around every length.
 */
/* ctest: as=any */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/chars.h"
#include "base/fd.h"
#include "base/text.h"
#include "host/stdio/budget.h"
#include "host/stdio/budget_marker.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { ROOM = 1 << 20 };

struct place { /* where full outputs are saved */
	char path[64];
	int dir;
};

static int make_place(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	if (!p)
		return -1;
	(void)snprintf(p->path, sizeof(p->path), "/tmp/budget-test-XXXXXX");
	*state = p;
	if (!mkdtemp(p->path))
		return -1;
	p->dir = open(p->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return p->dir < 0 ? -1 : 0;
}

static int remove_place(void **state)
{
	struct place *p = *state;
	int r = rmdir(p->path); /* each test has removed what it made */

	(void)close(p->dir);
	free(p);
	return r;
}

/* What a stream made of its input. */
struct result {
	char *out; /* ROOM bytes */
	size_t size;
	size_t streamed; /* bytes of it that came before the end */
	size_t kept;     /* bytes of the buffer that were not taken yet */
	char buffer[60016];
};

/* One read of @size bytes as a pump makes it; 0: the end of the stream. */
static void feed(struct budget *b, struct result *r, const char *data, size_t size)
{
	struct pump_filter f = budget_filter(b);
	struct pump_range pass = { 0 };

	memcpy(r->buffer + r->kept, data, size);
	size_t all = r->kept + size,
	       taken = f.take(f.context, r->buffer, all, size == 0, &pass);
	assert_true(taken <= all && all - taken < (size ? CHARS_LENGTH_MAX : 1));
	assert_true(pass.start <= pass.end && pass.end <= all);
	memcpy(r->out + r->size, r->buffer + pass.start, pass.end - pass.start);
	r->size += pass.end - pass.start;
	r->kept = all - taken;
	memmove(r->buffer, r->buffer + taken, r->kept);
	if (size > 0)
		return;
	r->streamed = r->size;
	for (size_t n; (n = f.rest(f.context, r->out + r->size, PUMP_BUFFER_BYTES)) > 0;)
		r->size += n;
}

/* --- the reference ---------------------------------------------------------------------------- */

static size_t length_at(const char *data, size_t size)
{
	size_t length = text_utf8_length(data, size);

	return length ? length : 1;
}

static size_t count_of(const char *data, size_t size)
{
	size_t count = 0;

	for (size_t at = 0; at < size; count++)
		at += length_at(data + at, size - at);
	return count;
}

static size_t offset_of(const char *data, size_t size, size_t count)
{
	size_t at = 0;

	for (; count > 0 && at < size; count--)
		at += length_at(data + at, size - at);
	return at;
}

/* What must come out of @data under a budget of @limit, with the file at @path. */
static size_t expected(const char *data, size_t size, size_t limit, const char *path, char *ret)
{
	size_t count = count_of(data, size);

	if (count <= limit) {
		memcpy(ret, data, size);
		return size;
	}
	size_t head = offset_of(data, size, limit - limit / 2);
	size_t tail = offset_of(data, size, count - limit / 2);
	char figure[BUDGET_FIGURE_SIZE];
	char *at = ret;

	budget_figure(count - limit, figure);
	memcpy(at, data, head);
	at += head;
	if (head > 0 && data[head - 1] != '\n')
		*at++ = '\n';
	at += snprintf(at, 4096,
		"... [%s chars omitted \xe2\x80\x94 full output saved to %s/1.stdout.txt]\n",
		figure, path);
	memcpy(at, data + tail, size - tail);
	return (size_t)(at - ret) + size - tail;
}

static void assert_file(const struct place *p, const char *data, size_t size)
{
	static char got[ROOM];
	struct stat st;
	autofd int fd = openat(p->dir, "1.stdout.txt", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	ssize_t n = read(fd, got, sizeof(got));
	assert_int_equal(n, size);
	assert_memory_equal(got, data, size);
	assert_int_equal(unlinkat(p->dir, "1.stdout.txt", 0), 0);
}

static void assert_no_file(const struct place *p)
{
	struct stat st;

	assert_int_equal(fstatat(p->dir, "1.stdout.txt", &st, 0), -1);
	assert_int_equal(errno, ENOENT);
}

/* Runs @data through a budget in pieces; @cuts ends each. Compares everything. */
static void check(const struct place *p, const char *data, size_t size, size_t limit,
	const size_t *cuts, size_t cut_count)
{
	static char want[ROOM], out[ROOM];
	struct result r = { .out = out };
	struct budget b;
	size_t at = 0, length = expected(data, size, limit, p->path, want);

	assert_int_equal(budget_init(&b, limit, UINT64_MAX), 0);
	budget_save_in(&b, p->dir, p->path, "1.stdout.txt", false);
	for (size_t i = 0; i < cut_count; i++) {
		if (cuts[i] > at)
			feed(&b, &r, data + at, cuts[i] - at);
		at = cuts[i];
	}
	if (size > at)
		feed(&b, &r, data + at, size - at);
	feed(&b, &r, data, 0);
	assert_int_equal(b.bytes, size);
	assert_int_equal(b.chars, count_of(data, size));
	assert_int_equal(r.size, length);
	assert_memory_equal(out, want, length);
	if (b.chars > limit)
		assert_file(p, data, size);
	else
		assert_no_file(p);
	assert_int_equal(budget_omitted(&b), b.chars > limit ? b.chars - limit : 0);
	budget_free(&b);
	budget_free(&b);
}

/* --- cases ------------------------------------------------------------------------------------ */

static const char mixed[] = "ab\xc3\xa9\n\xe2\x82\xac\xe2\x82x\xf0\x9f\x98\x80\xf0\x9f\x98"
			    "\xed\xa0\x80\xc0\xafyz\n\xff\xe2\x82\xac";

/* Every budget, and every place to cut the output into two reads and into three. */
static void test_every_split(void **state)
{
	const size_t size = sizeof(mixed) - 1;

	for (size_t limit = 0; limit < size + 2; limit++)
		for (size_t first = 0; first <= size; first++)
			for (size_t second = first; second <= size; second++)
				check(*state, mixed, size, limit,
					(const size_t[]){ first, second }, 2);
}

static void test_byte_by_byte(void **state)
{
	size_t cuts[sizeof(mixed)];

	for (size_t i = 0; i < COUNT(cuts); i++)
		cuts[i] = i < sizeof(mixed) - 1 ? i : sizeof(mixed) - 1;
	for (size_t limit = 0; limit < sizeof(mixed) + 2; limit++)
		check(*state, mixed, sizeof(mixed) - 1, limit, cuts, COUNT(cuts));
}

static uint32_t next(uint32_t *state)
{
	*state = *state * 1664525U + 1013904223U;
	return *state >> 8;
}

static int compare_sizes(const void *a, const void *b)
{
	const size_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Long outputs: the ring goes round many times. */
static void test_random(void **state)
{
	static const char *const pieces[] = { "a line of text\n", "\xc3\xa9", "\xe2\x82\xac",
		"\xf0\x9f\x98\x80", "\xff", "\xe2\x82", "\xf0\x9f", "\n" };
	static char data[60000];
	uint32_t seed = 7;

	for (unsigned round = 0; round < 400; round++) {
		size_t size = 0, cuts[8], limit = next(&seed) % (round % 2 ? 50 : 20000);
		size_t most = next(&seed) % (sizeof(data) - 100);

		while (size < most) {
			const char *piece = pieces[next(&seed) % COUNT(pieces)];

			for (uint32_t runs = next(&seed) % 30; runs > 0 && size < most;
				runs--) {
				memcpy(data + size, piece, strlen(piece));
				size += strlen(piece);
			}
		}
		for (size_t i = 0; i < COUNT(cuts); i++)
			cuts[i] = next(&seed) % (size + 1);
		qsort(cuts, COUNT(cuts), sizeof(cuts[0]), compare_sizes);
		check(*state, data, size, limit, cuts, COUNT(cuts));
	}
}

static void test_exact(void **state)
{
	static const size_t limits[] = { 0, 1, 2, 3, 10, 11, 4096, 20000 };
	static char data[20002];

	memset(data, 'x', sizeof(data));
	for (size_t i = 0; i < COUNT(limits); i++) {
		check(*state, data, limits[i], limits[i], NULL, 0);
		check(*state, data, limits[i] + 1, limits[i], NULL, 0);
	}
	check(*state, data, 0, 5, NULL, 0);
}

/* The head goes out as it comes, half a character included where that can do no harm. */
static void test_streams(void **state)
{
	const struct place *p = *state;
	static char out[ROOM];
	struct result r = { .out = out };
	struct budget b;

	assert_int_equal(budget_init(&b, 20, UINT64_MAX), 0);
	budget_save_in(&b, p->dir, p->path, "1.stdout.txt", false);
	feed(&b, &r, "ab", 2);
	assert_int_equal(r.size, 2);
	feed(&b, &r, "\xe2", 1);
	assert_int_equal(r.size, 3);
	feed(&b, &r, "\x82", 1);
	assert_int_equal(r.size, 4);
	feed(&b, &r,
		"\xac"
		"cdef",
		5);
	assert_int_equal(r.size, 9); /* 7 characters */
	feed(&b, &r, "\xe2", 1);
	assert_int_equal(r.size, 9); /* 3 are left: it could become 3 */
	feed(&b, &r, "\x82", 1);
	assert_int_equal(r.size, 9);
	feed(&b, &r, "xyzzy", 5);
	assert_int_equal(r.size, 12); /* 10 characters: e2, 82, x */
	feed(&b, &r, "12345", 5);
	assert_int_equal(r.size, 12);
	feed(&b, &r, "", 0);
	assert_int_equal(r.streamed, 12);
	assert_memory_equal(out,
		"ab\xe2\x82\xac"
		"cdef\xe2\x82xyzzy12345",
		21);
	assert_int_equal(r.size, 21);
	assert_no_file(p);
	budget_free(&b);
}

static void test_figure(void **state)
{
	static const struct {
		uint64_t number;
		const char *text;
	} cases[] = { { 0, "0" }, { 7, "7" }, { 999, "999" }, { 1000, "1,000" },
		{ 83450, "83,450" }, { 123456, "123,456" }, { 1234567, "1,234,567" },
		{ UINT64_MAX, "18,446,744,073,709,551,615" } };
	char text[BUDGET_FIGURE_SIZE];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		budget_figure(cases[i].number, text);
		assert_string_equal(text, cases[i].text);
	}
}

/* --- what is saved ---------------------------------------------------------------------------- */

static void begin(struct budget *b, const struct place *p, uint64_t limit, uint64_t max)
{
	assert_int_equal(budget_init(b, limit, max), 0);
	budget_save_in(b, p->dir, p->path, "1.stdout.txt", false);
}

static void assert_says(const struct result *r, const char *text)
{
	r->out[r->size] = '\0';
	if (!strstr(r->out, text))
		fail_msg("no \"%s\" in \"%s\"", text, r->out);
}

static void test_max(void **state)
{
	const struct place *p = *state;
	static char out[ROOM];
	struct result r = { .out = out };
	struct budget b;

	begin(&b, p, 4, 10);
	feed(&b, &r, "0123456789", 10);
	assert_false(budget_is_over(&b));
	feed(&b, &r, "abc", 3);
	assert_true(budget_is_over(&b));
	feed(&b, &r, "", 0);
	assert_says(&r,
		"01\n... [9 chars omitted \xe2\x80\x94 first 10 of 13 bytes saved to /tmp/");
	assert_says(&r, "/1.stdout.txt: output-max]\nbc");
	assert_int_equal(b.in_file, 10);
	assert_file(p, "0123456789", 10);
	budget_free(&b);
}

/* Less than the budget, and yet too much: nothing is missing, and the command is to be ended. */
static void test_max_within_budget(void **state)
{
	const struct place *p = *state;
	static char out[ROOM];
	struct result r = { .out = out };
	struct budget b;

	begin(&b, p, 100, 3);
	feed(&b, &r, "12345", 5);
	assert_true(budget_is_over(&b));
	feed(&b, &r, "", 0);
	assert_int_equal(r.size, 5);
	assert_int_equal(budget_omitted(&b), 0);
	assert_no_file(p);
	budget_free(&b);
}

/* Without a budget the bound alone cuts, at a boundary, wherever the reads end. */
static void test_max_alone(void **state)
{
	static const char text[] = "ab\xe2\x82\xac\xe2\x82\xac"
				   "cd";
	static const size_t want[] = { 0, 1, 2, 2, 2, 5, 5, 5, 8, 9, 10, 10 };
	static char out[ROOM];

	(void)state;
	for (size_t max = 1; max < COUNT(want); max++)
		for (size_t cut = 0; cut < sizeof(text); cut++) {
			struct result r = { .out = out };
			struct budget b;

			assert_int_equal(budget_init(&b, BUDGET_NONE, max), 0);
			if (cut > 0)
				feed(&b, &r, text, cut);
			if (cut < 10)
				feed(&b, &r, text + cut, 10 - cut);
			feed(&b, &r, "", 0);
			assert_int_equal(r.size, want[max]);
			assert_memory_equal(out, text, want[max]);
			assert_int_equal(budget_is_over(&b), max < 10);
			assert_int_equal(
				budget_omitted(&b), count_of(text + want[max], 10 - want[max]));
			budget_free(&b);
		}
}

static void test_no_directory(void **state)
{
	static char out[ROOM];
	struct result r = { .out = out };
	struct budget b;

	(void)state;
	assert_int_equal(budget_init(&b, 2, UINT64_MAX), 0);
	feed(&b, &r, "12345", 5);
	feed(&b, &r, "", 0);
	out[r.size] = '\0';
	assert_string_equal(
		out, "1\n... [3 chars omitted \xe2\x80\x94 full output not saved]\n5");
	budget_free(&b);
}

/* Something that is there already is neither followed nor written. */
static void test_name_is_taken(void **state)
{
	const struct place *p = *state;
	static char out[ROOM];
	struct result r = { .out = out };
	struct budget b;

	assert_int_equal(symlinkat("elsewhere", p->dir, "1.stdout.txt"), 0);
	begin(&b, p, 2, UINT64_MAX);
	feed(&b, &r, "12345", 5);
	feed(&b, &r, "", 0);
	assert_says(&r, "full output not saved: File exists]");
	assert_int_equal(b.file_error, EEXIST);
	assert_int_equal(unlinkat(p->dir, "1.stdout.txt", 0), 0);
	assert_no_file(p);
	budget_free(&b);
}

/* A disk that is full in the middle: what there is of the file is said, and the tail comes. */
static void test_full_disk(void **state)
{
	const struct place *p = *state;
	static char out[ROOM], data[5000];
	struct result r = { .out = out };
	struct rlimit old, low;
	struct budget b;

	memset(data, 'x', sizeof(data));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low = old;
	low.rlim_cur = 3000;
	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	begin(&b, p, 100, UINT64_MAX);
	feed(&b, &r, data, 2000);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	feed(&b, &r, data, 2000);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_true(signal(SIGXFSZ, SIG_DFL) != SIG_ERR);
	feed(&b, &r, "and more", 8); /* goes nowhere: what is saved is a beginning */
	feed(&b, &r, "", 0);
	assert_says(&r,
		"[3,908 chars omitted \xe2\x80\x94 first 3,000 of 4,008 bytes saved to /tmp/");
	assert_says(&r, ": File too large]\nxxx");
	assert_memory_equal(out + r.size - 8, "and more", 8);
	assert_int_equal(b.file_error, EFBIG);
	assert_file(p, data, 3000);
	budget_free(&b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_every_split),
		TEST(test_byte_by_byte),
		TEST(test_random),
		TEST(test_exact),
		TEST(test_streams),
		TEST(test_figure),
		TEST(test_max),
		TEST(test_max_within_budget),
		TEST(test_max_alone),
		TEST(test_no_directory),
		TEST(test_name_is_taken),
		TEST(test_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * egress_hello_test.c - egress/hello: which first bytes are let through for which name.
 *
 * Runs in: the tests; no privileges.
 */
/* ctest: as=any */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "egress/hello.h"

struct bytes {
	uint8_t data[40000];
	size_t size;
};

static void add(struct bytes *b, const void *data, size_t size)
{
	assert_true(b->size + size <= sizeof(b->data));
	memcpy(b->data + b->size, data, size);
	b->size += size;
}

static void add_number(struct bytes *b, size_t value, unsigned width)
{
	while (width-- > 0) {
		const uint8_t byte = (uint8_t)(value >> 8 * width);

		add(b, &byte, 1);
	}
}

static void add_extension(struct bytes *b, unsigned type, const void *data, size_t size)
{
	add_number(b, type, 2);
	add_number(b, size, 2);
	add(b, data, size);
}

static void add_name(struct bytes *b, const char *name)
{
	struct bytes e = { .size = 0 };

	add_number(&e, strlen(name) + 3, 2);
	add_number(&e, 0, 1);
	add_number(&e, strlen(name), 2);
	add(&e, name, strlen(name));
	add_extension(b, 0, e.data, e.size);
}

/* The handshake message with these extensions. */
static struct bytes message_of(const struct bytes *extensions)
{
	struct bytes body = { .size = 0 }, message = { .size = 0 };
	static const uint8_t random[32] = { 7 };

	add_number(&body, 0x0303, 2);
	add(&body, random, sizeof(random));
	add_number(&body, 0, 1);
	add(&body, "\0\2\x13\1\1\0", 6);
	add_number(&body, extensions->size, 2);
	add(&body, extensions->data, extensions->size);
	add_number(&message, 1, 1);
	add_number(&message, body.size, 3);
	add(&message, body.data, body.size);
	return message;
}

static void add_record(struct bytes *b, unsigned type, const void *data, size_t size)
{
	add_number(b, type, 1);
	add_number(b, 0x0303, 2);
	add_number(b, size, 2);
	add(b, data, size);
}

static struct bytes hello_for(const char *name)
{
	struct bytes extensions = { .size = 0 }, out = { .size = 0 };

	add_extension(&extensions, 43, "\2\3\4", 3);
	if (name)
		add_name(&extensions, name);
	struct bytes message = message_of(&extensions);
	add_record(&out, 22, message.data, message.size);
	return out;
}

/* The exact bytes, so that one behind them is found. */
static enum hello_verdict check(
	struct hello *h, const void *data, size_t size, size_t *ret_cleared)
{
	uint8_t *copy = malloc(size ? size : 1), *work = malloc(HELLO_SIZE_MAX);
	size_t cleared = 0;

	assert_non_null(copy);
	assert_non_null(work);
	memcpy(copy, data, size);
	enum hello_verdict verdict = hello_check(h, "good.example", copy, size, work, &cleared);
	free(copy);
	free(work);
	assert_true(cleared <= size);
	if (verdict != HELLO_GOOD && verdict != HELLO_ENCRYPTED)
		assert_int_equal(cleared, 0);
	if (ret_cleared)
		*ret_cleared = cleared;
	return verdict;
}

static enum hello_verdict check_new(const struct bytes *b)
{
	struct hello h = { 0 };

	return check(&h, b->data, b->size, NULL);
}

static void test_names(void **state)
{
	static const struct {
		const char *name;
		enum hello_verdict verdict;
	} cases[] = {
		{ "good.example", HELLO_GOOD },
		{ "GOOD.Example", HELLO_GOOD },
		{ "good.example.", HELLO_GOOD },
		{ "good.example..", HELLO_OTHER_NAME },
		{ "evil.example", HELLO_OTHER_NAME },
		{ "good.example.evil", HELLO_OTHER_NAME },
		{ "good.exampl", HELLO_OTHER_NAME },
		{ "ood.example", HELLO_OTHER_NAME },
		{ "", HELLO_NO_NAME },
		{ NULL, HELLO_NO_NAME },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes b = hello_for(cases[i].name);
		struct hello h = { 0 };
		size_t cleared;

		assert_int_equal(check(&h, b.data, b.size, &cleared), cases[i].verdict);
		assert_int_equal(cleared, cases[i].verdict == HELLO_GOOD ? b.size : 0);
		if (cases[i].verdict == HELLO_OTHER_NAME)
			assert_memory_equal(h.name, cases[i].name, strlen(cases[i].name) - 1);
	}
}

/* Cut anywhere it is not known yet, and never refused. */
static void test_cut(void **state)
{
	struct bytes good = hello_for("good.example"), evil = hello_for("evil.example");

	(void)state;
	for (size_t size = 1; size < good.size; size++) {
		struct hello h = { 0 };

		assert_int_equal(check(&h, good.data, size, NULL), HELLO_MORE);
		assert_int_equal(check(&h, good.data, good.size, NULL), HELLO_GOOD);
	}
	for (size_t size = 1; size < evil.size; size++) {
		struct hello h = { 0 };

		assert_int_equal(check(&h, evil.data, size, NULL), HELLO_MORE);
	}
}

static void test_extensions(void **state)
{
	struct bytes twice = { .size = 0 }, hidden = { .size = 0 }, draft = { .size = 0 };
	struct bytes list = { .size = 0 }, nul = { .size = 0 }, cut = { .size = 0 }, out;

	(void)state;
	add_name(&twice, "good.example");
	add_name(&twice, "good.example");
	add_name(&hidden, "good.example");
	add_extension(&hidden, 0xfe0d, "\0", 1);
	add_name(&draft, "good.example");
	add_extension(&draft, 0xffce, "\0", 1);
	/* Two names in one list. */
	add_extension(&list, 0, "\0\x08\0\0\1a\0\0\1b", 10);
	add_extension(&nul, 0, "\0\x0f\0\0\x0cgood\0example", 17);
	add_number(&cut, 0, 2);
	add_number(&cut, 99, 2);
	const struct {
		struct bytes *extensions;
		enum hello_verdict verdict;
	} cases[] = { { &twice, HELLO_NO_NAME }, { &hidden, HELLO_HIDDEN },
		{ &draft, HELLO_HIDDEN }, { &list, HELLO_NO_NAME }, { &nul, HELLO_NO_NAME },
		{ &cut, HELLO_NO_TLS } };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes message = message_of(cases[i].extensions);

		out.size = 0;
		add_record(&out, 22, message.data, message.size);
		assert_int_equal(check_new(&out), cases[i].verdict);
	}
}

/* The message in records of @piece bytes each. */
static struct bytes in_records(const struct bytes *hello, size_t piece)
{
	struct bytes out = { .size = 0 };

	for (size_t at = 5; at < hello->size; at += piece) {
		size_t left = hello->size - at;

		add_record(&out, 22, hello->data + at, left < piece ? left : piece);
	}
	return out;
}

static void test_records(void **state)
{
	struct bytes good = hello_for("good.example"), evil = hello_for("evil.example");

	(void)state;
	for (size_t piece = 1; piece < good.size; piece++) {
		struct bytes g = in_records(&good, piece), e = in_records(&evil, piece);
		bool many = (good.size - 5 + piece - 1) / piece > 64;

		assert_int_equal(check_new(&g), many ? HELLO_NO_TLS : HELLO_GOOD);
		assert_int_equal(check_new(&e), many ? HELLO_NO_TLS : HELLO_OTHER_NAME);
	}
}

/* The message is there, its record is not: what is missing would be a second message. */
static void test_record_not_whole(void **state)
{
	struct bytes good = hello_for("good.example"), out = { .size = 0 };
	struct hello h = { 0 };

	(void)state;
	add_record(&out, 22, good.data + 5, good.size - 5);
	out.data[4] = (uint8_t)(out.data[4] + 20);
	assert_int_equal(check(&h, out.data, out.size, NULL), HELLO_MORE);
	add(&out, good.data + 5, 20);
	assert_int_equal(check(&h, out.data, out.size, NULL), HELLO_NO_TLS);
}

static void test_no_tls(void **state)
{
	static const struct {
		const char *data;
		size_t size;
	} cases[] = { { "GET / HTTP/1.1\r\n", 16 }, { "\x80\x2e\1\3\1", 5 }, { "\0", 1 },
		{ "\x16\2\0\0\5hello", 10 }, { "\x16\3\1\0\0", 5 }, { "\x16\3\1\xff\xff", 5 },
		{ "\x16\3\1\0\4\2\0\0\0", 9 }, { "\x17\3\3\0\5hello", 10 },
		{ "\x14\3\3\0\1\1", 6 }, { "\x15\3\3\0\2\1\0", 7 },
		{ "\x16\3\1\0\4\1\0\0\0", 9 }, { "\x16\3\1\0\6\1\xff\0\0\3\3", 11 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hello h = { 0 };

		assert_int_equal(check(&h, cases[i].data, cases[i].size, NULL), HELLO_NO_TLS);
	}
}

/* Bytes that make it longer and longer are not waited for without end. */
static void test_endless(void **state)
{
	struct bytes out = { .size = 0 };
	static uint8_t filler[16000];
	struct hello h = { 0 };

	(void)state;
	memcpy(filler, "\1\0\x4e\0", 4);
	add_record(&out, 22, filler, sizeof(filler));
	assert_int_equal(check(&h, out.data, out.size, NULL), HELLO_MORE);
	add_record(&out, 22, filler, sizeof(filler));
	assert_true(check(&h, out.data, out.size, NULL) == HELLO_NO_TLS);
}

static void test_later(void **state)
{
	struct bytes good = hello_for("good.example"), evil = hello_for("evil.example");
	struct hello h = { 0 };
	size_t cleared;

	(void)state;
	assert_int_equal(check(&h, good.data, good.size, &cleared), HELLO_GOOD);
	/* A second one that nobody asked for, whichever name it has. */
	struct hello unasked = h;
	assert_int_equal(check(&unasked, good.data, good.size, NULL), HELLO_NO_TLS);
	/* The answer to a HelloRetryRequest. */
	struct hello retried = h;
	retried.answered = true;
	assert_int_equal(check(&retried, good.data, good.size, NULL), HELLO_GOOD);
	retried = h;
	retried.answered = true;
	assert_int_equal(check(&retried, evil.data, evil.size, NULL), HELLO_OTHER_NAME);
	/* Behind a ChangeCipherSpec, as TLS 1.3 has it for middleboxes. */
	struct bytes changed = { .size = 0 };
	add_record(&changed, 20, "\1", 1);
	add(&changed, evil.data, evil.size);
	retried = h;
	retried.answered = true;
	assert_int_equal(check(&retried, changed.data, changed.size, NULL), HELLO_OTHER_NAME);
	/* An encrypted record of TLS 1.2 ends the looking. */
	changed.size = 0;
	add_record(&changed, 22, "\x10\0\0\5\4abcd", 9);
	add_record(&changed, 20, "\1", 1);
	add_record(&changed, 22, "\0\0\0\0\0\0\0\0encrypted", 17);
	assert_int_equal(check(&h, changed.data, changed.size, &cleared), HELLO_ENCRYPTED);
	assert_int_equal(cleared, changed.size);
}

static void test_application_data(void **state)
{
	struct bytes out = hello_for("good.example");
	struct hello h = { 0 };
	size_t cleared;

	(void)state;
	add_record(&out, 20, "\1", 1);
	add_record(&out, 23, "early", 5);
	assert_int_equal(check(&h, out.data, out.size, &cleared), HELLO_ENCRYPTED);
	assert_int_equal(cleared, out.size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_extensions),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_record_not_whole),
		cmocka_unit_test(test_no_tls),
		cmocka_unit_test(test_endless),
		cmocka_unit_test(test_later),
		cmocka_unit_test(test_application_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

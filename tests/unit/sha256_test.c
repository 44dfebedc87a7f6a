/*
 * sha256_test.c - SHA-256 against the published examples, in every way to cut the input.
 *
 * Runs in: the unit tests. The vectors are those of FIPS 180-4 (the examples of NIST and the
 * million letters of FIPS 180-2) and of the NIST byte-oriented short messages.
 */
/* ctest: as=any */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/sha256.h"

static void expect(const void *data, size_t size, const char *expected)
{
	uint8_t digest[SHA256_SIZE];
	char text[SHA256_HEX_SIZE];

	sha256(data, size, digest);
	sha256_hex(digest, text);
	assert_string_equal(text, expected);
}

static void test_published(void **state)
{
	static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	static const char four[] = "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
				   "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu";

	(void)state;
	expect("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	expect("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	expect(two, sizeof(two) - 1,
		"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	expect(four, sizeof(four) - 1,
		"cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
	expect("\xbd", 1, "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b");
	expect("\xc9\x8c\x8e\x55", 4,
		"7abc22c0ae5af26ce93dbb94433a0e0b2e119d014f8e7f65bd56c61ccccd9504");
}

/* Zeros around the place where the padding needs one more block. */
static void test_padding(void **state)
{
	static const uint8_t zeros[1000];

	(void)state;
	expect(zeros, 55, "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7");
	expect(zeros, 56, "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb");
	expect(zeros, 57, "65a16cb7861335d5ace3c60718b5052e44660726da4cd13bb745381b235a1785");
	expect(zeros, 64, "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b");
	expect(zeros, 1000, "541b3e9daa09b20bf85fa273e5cbd3e80185aa4ec298e765db87742b70138a53");
}

static void test_million(void **state)
{
	struct sha256 s;
	uint8_t digest[SHA256_SIZE];
	char text[SHA256_HEX_SIZE], letters[1000];

	(void)state;
	memset(letters, 'a', sizeof(letters));
	sha256_init(&s);
	for (int i = 0; i < 1000; i++)
		sha256_update(&s, letters, sizeof(letters));
	sha256_final(&s, digest);
	sha256_hex(digest, text);
	assert_string_equal(
		text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Three pieces, cut anywhere, give what one piece gives. */
static void test_pieces(void **state)
{
	uint8_t data[150], whole[SHA256_SIZE], pieces[SHA256_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + 1);
	sha256(data, sizeof(data), whole);
	for (size_t a = 0; a <= sizeof(data); a++)
		for (size_t b = a; b <= sizeof(data); b++) {
			struct sha256 s;

			sha256_init(&s);
			sha256_update(&s, data, a);
			sha256_update(&s, data + a, b - a);
			sha256_update(&s, data + b, sizeof(data) - b);
			sha256_final(&s, pieces);
			assert_memory_equal(pieces, whole, sizeof(whole));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published),
		cmocka_unit_test(test_padding),
		cmocka_unit_test(test_million),
		cmocka_unit_test(test_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

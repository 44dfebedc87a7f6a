/*
 * netrule_test.c - plan/netrule: what is a rule and what is none, how it is written, and what a set of them answers.
 *
 * Runs in: the tests; no privileges.
 */
/* ctest: as=any */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/netrule.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { MANY = 10000, ARENA_SIZE = 1 << 24 };

static struct arena arena;

static int set_up(void **state)
{
	(void)state;
	return arena_init(&arena, ARENA_SIZE);
}

static int tear_down(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

/* A text with @c so often. */
static const char *of(char c, size_t count)
{
	char *text = arena_alloc(&arena, count + 1);

	assert_non_null(text);
	memset(text, c, count);
	return text;
}

static const char *labels(size_t count, size_t last)
{
	const char *text = of('a', last);

	while (count-- > 0)
		text = arena_join(&arena, of('a', 63), '.', text);
	assert_non_null(text);
	return text;
}

/* --- reading ---------------------------------------------------------------------------------- */

static void expect_text(bool deny, const char *text, const char *expected)
{
	struct netrule rule, again;
	struct error e = { 0 };
	char written[NETRULE_TEXT_MAX], twice[NETRULE_TEXT_MAX];

	if (netrule_parse(&rule, &arena, deny, text, "allow", &e) != 0)
		fail_msg("%s: %s", text, e.what);
	assert_true(netrule_format(&rule, written, sizeof(written)) > 0);
	assert_string_equal(written, expected);
	/* What is written is read as the same. */
	assert_int_equal(netrule_parse(&again, &arena, deny, written, "allow", &e), 0);
	assert_int_equal(netrule_format(&again, twice, sizeof(twice)), (int)strlen(expected));
	assert_string_equal(twice, expected);
	assert_int_equal(again.deny, deny);
}

static void test_good(void **state)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{ "example.org", "example.org:80,443" },
		{ "Registry.NPMjs.org.", "registry.npmjs.org:80,443" },
		{ "example.org:443", "example.org:443" },
		{ "example.org:8443,443,8443,22", "example.org:22,443,8443" },
		{ "example.org:1,65535", "example.org:1,65535" },
		{ "*.example.org", "*.example.org:80,443" },
		{ "*.EXAMPLE.org.:25", "*.example.org:25" },
		{ "intranet", "intranet:80,443" },
		{ "_dmarc.a-b.example", "_dmarc.a-b.example:80,443" },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example:80,443" },
		{ "0x7g.example", "0x7g.example:80,443" },
		{ "1.2.3.4.example", "1.2.3.4.example:80,443" },
		{ "3com", "3com:80,443" },
		{ "localhost:5432", "localhost:5432" },
		{ "LocalHost", "localhost:80,443" },
		{ "192.0.2.1:22", "192.0.2.1:22" },
		{ "192.0.2.0/24:22", "192.0.2.0/24:22" },
		{ "192.0.2.1/32", "192.0.2.1:80,443" },
		{ "128.0.0.0/1", "128.0.0.0/1:80,443" },
		{ "127.0.0.1:8080", "127.0.0.1:8080" },
		{ "[2001:DB8::1]:443", "[2001:db8::1]:443" },
		{ "[2001:db8::]/32", "[2001:db8::]/32:80,443" },
		{ "[2001:db8::]/32:25", "[2001:db8::]/32:25" },
		{ "[::1]:80", "[::1]:80" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		expect_text(false, cases[i].text, cases[i].expected);
	expect_text(true, "example.org", "example.org");
	expect_text(true, "example.org:443", "example.org:443");
	expect_text(true, "0.0.0.0/0", "0.0.0.0/0");
	expect_text(true, "[::]/0", "[::]/0");
	const char *longest = labels(3, 253 - 3 * 64);
	assert_int_equal(strlen(longest), NETRULE_NAME_MAX);
	expect_text(true, longest, longest);
	expect_text(true, arena_join(&arena, longest, '.', ""), longest);
}

static void expect_refused(const char *text, const char *why)
{
	struct netrule rule, untouched;
	struct error e = { 0 };

	memset(&rule, 0x5a, sizeof(rule));
	untouched = rule;
	assert_int_equal(netrule_parse(&rule, &arena, false, text, "allow", &e), -EINVAL);
	if (!strstr(e.what, why))
		fail_msg("%s: \"%s\", not \"%s\"", text, e.what, why);
	assert_int_equal(e.code, ERROR_POLICY);
	assert_memory_equal(&rule, &untouched, sizeof(rule));
}

static void test_bad(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "", "no host" },
		{ ":443", "no host" },
		{ ".", "empty label" },
		{ "example..org", "empty label" },
		{ ".example.org", "empty label" },
		{ "example.org..", "empty label" },
		{ "*.", "every name" },
		{ "*..", "empty label" },
		{ "*", "every name" },
		{ "a.*.example.org", "wildcard elsewhere" },
		{ "*.*.org", "wildcard elsewhere" },
		{ "*a.example.org", "wildcard elsewhere" },
		{ "**.example.org", "wildcard elsewhere" },
		{ "example.*", "wildcard elsewhere" },
		{ "-a.example", "'-' at its end" },
		{ "a-.example", "'-' at its end" },
		{ "exa mple.org", "a blank" },
		{ "example.org\n", "a blank" },
		{ "example.org\x7f", "a blank" },
		{ "exa$mple.org", "no name" },
		{ "user@example.org", "no name" },
		{ "https://example.org/", "a URL" },
		{ "b\xc3\xbc"
		  "cher.example",
			"not ASCII" },
		{ "example.org:0", "the port '0'" },
		{ "example.org:65536", "the port '65536'" },
		{ "example.org:99999999999", "the port '99999999999'" },
		{ "example.org:-1", "the port '-1'" },
		{ "example.org:+1", "the port '+1'" },
		{ "example.org:080", "the port '080'" },
		{ "example.org:", "the port ''" },
		{ "example.org:80,", "the port ''" },
		{ "example.org:,80", "the port ''" },
		{ "example.org:http", "the port 'http'" },
		{ "example.org:80-90", "the port '80-90'" },
		{ "example.org:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "more than 16" },
		{ "127.1", "looks like an address" },
		{ "0x7f.1", "looks like an address" },
		{ "0x7f000001", "looks like an address" },
		{ "0x", "looks like an address" },
		{ "2130706433", "looks like an address" },
		{ "010.0.0.1", "looks like an address" },
		{ "127.0.0.1.", "looks like an address" },
		{ "1.2.3.256", "looks like an address" },
		{ "1.2.3.4.5", "looks like an address" },
		{ "example.1", "looks like an address" },
		{ "*.1.2.3", "looks like an address" },
		{ "0.0.0.0/0", "every address of IPv4" },
		{ "[::]/0", "every address of IPv6" },
		{ "0.0.0.0", "no host's address" },
		{ "0.0.0.0/8", "no host's address" },
		{ "[::]", "no host's address" },
		{ "192.0.2.1/24", "bits set behind" },
		{ "192.0.2.0/33", "number of bits" },
		{ "192.0.2.0/", "number of bits" },
		{ "192.0.2.0/08", "number of bits" },
		{ "192.0.2.0/a", "number of bits" },
		{ "example.org/24", "no address of IPv4" },
		{ "127.1/24", "no address of IPv4" },
		{ "[2001:db8::1]/32", "bits set behind" },
		{ "[2001:db8::]/129", "number of bits" },
		{ "[::ffff:192.0.2.1]", "IPv4 in IPv6" },
		{ "[::ffff:0:0]/96", "IPv4 in IPv6" },
		{ "2001:db8::1", "more than one ':'" },
		{ "example.org:80:90", "more than one ':'" },
		{ "[2001:db8::1", "no address in brackets" },
		{ "[2001:db8::1]x", "no address in brackets" },
		{ "[192.0.2.1]", "no address of IPv6" },
		{ "[fe80::1%eth0]", "no address of IPv6" },
		{ "[]", "no address of IPv6" },
		{ "[example.org]", "no address of IPv6" },
		{ "a.localhost", "below localhost" },
		{ "*.localhost", "below localhost" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		expect_refused(cases[i].text, cases[i].why);
	expect_refused(labels(0, 64), "more than 63 bytes");
	expect_refused(labels(3, 254 - 3 * 64), "more than 253 bytes");
	expect_refused(of('a', NETRULE_TEXT_MAX), "more than 511 bytes");
}

static void test_every_byte(void **state)
{
	(void)state;
	for (int c = 1; c < 256; c++) {
		char text[] = { 'a', (char)c, 'b', '.', 'o', 'r', 'g', '\0' };
		struct netrule rule;
		struct error e = { 0 };
		bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			(c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';

		assert_int_equal(netrule_parse(&rule, &arena, false, text, "allow", &e),
			good ? 0 : -EINVAL);
	}
}

/* Any text of pieces that a name can have, or nearly: what is said of it must not depend on which of two ways it is read. */
static const char *random_name(uint32_t *seed)
{
	static const char *const pieces[] = { "a", "Z", "0", "9", "-", "_", ".", "*.", "*",
		"localhost", "0x", "f", "1.2.3.4", "example", "xn--", "%", "\x01", "\xc3" };
	const char *text = *seed & 1 << 20 ? "" : labels(*seed >> 24 & 3, 60 + (*seed >> 28));

	for (unsigned count = *seed >> 16 & 7; count > 0; count--) {
		*seed = *seed * 1664525 + 1013904223;
		text = arena_format(&arena, "%s%s", text,
			pieces[(*seed >> 16) % (sizeof(pieces) / sizeof(pieces[0]))]);
		assert_non_null(text);
	}
	*seed = *seed * 1664525 + 1013904223;
	return text;
}

/* A plain name is read in one pass; with a dot at its end it is none, and the others read it. */
static void test_two_ways(void **state)
{
	uint32_t seed = 1;
	unsigned read = 0;

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		struct arena before = arena;
		struct netrule plain, other;
		struct error e = { 0 };
		const char *name = random_name(&seed);
		size_t length = strlen(name);
		bool deny = i & 1;

		if (length > 0 && name[length - 1] != '.' && strcmp(name, "*") != 0) {
			int r = netrule_parse(&plain, &arena, deny, name, "allow", &e);
			int o = netrule_parse(&other, &arena, deny,
				arena_join(&arena, name, '.', ""), "allow", &e);

			/* An address with a dot at its end is none. */
			if (r == 0 && plain.kind == NETRULE_BLOCK)
				continue;
			if (r != o || (r == 0 && !netrule_same(&plain, &other)))
				fail_msg("%s: %d, and with a dot %d", name, r, o);
			read += r == 0;
		}
		memset(before.base + before.used, 0, arena.used - before.used);
		arena.used = before.used;
	}
	assert_in_range(read, 1000, 90000);
}

static void test_same(void **state)
{
	static const char *const texts[] = { "a.example", "b.example", "*.a.example",
		"a.example:80", "a.example:80,444", "192.0.2.1", "192.0.2.0/31",
		"[2001:db8::1]", "[2001:db8::2]", "localhost" };
	enum { COUNT = sizeof(texts) / sizeof(texts[0]) };
	struct netrule rules[2 * COUNT];
	struct error e;

	(void)state;
	for (size_t i = 0; i < 2 * COUNT; i++)
		assert_int_equal(netrule_parse(&rules[i], &arena, i >= COUNT, texts[i % COUNT],
					 "allow", &e),
			0);
	for (size_t i = 0; i < 2 * COUNT; i++)
		for (size_t k = 0; k < 2 * COUNT; k++)
			assert_int_equal(netrule_same(&rules[i], &rules[k]), i == k);
	assert_int_equal(netrule_hash(&rules[3]), netrule_hash(&rules[COUNT + 3]));
	assert_int_not_equal(netrule_hash(&rules[0]), netrule_hash(&rules[1]));
}

static void test_format_room(void **state)
{
	struct netrule rule;
	struct error e = { 0 };
	char text[32];

	(void)state;
	assert_int_equal(
		netrule_parse(&rule, &arena, false, "example.org:80,443", "allow", &e), 0);
	for (size_t size = 1; size < sizeof("example.org:80,443"); size++)
		assert_int_equal(netrule_format(&rule, text, size), -ENOBUFS);
	assert_int_equal(netrule_format(&rule, text, sizeof("example.org:80,443")), 18);
}

/* --- asking ----------------------------------------------------------------------------------- */

/* Lines "allow RULE" and "deny RULE". */
static struct netrules *set_of(const char *const *lines, size_t count)
{
	struct netrule *rules = arena_array(&arena, count + 1, sizeof(*rules));
	struct netrules *set = NULL;
	struct error e = { 0 };

	assert_non_null(rules);
	for (size_t i = 0; i < count; i++) {
		const char *blank = strchr(lines[i], ' ');

		if (netrule_parse(
			    &rules[i], &arena, lines[i][0] == 'd', blank + 1, "allow", &e) != 0)
			fail_msg("%s: %s", lines[i], e.what);
	}
	assert_int_equal(netrules_make(&set, &arena, rules, count), 0);
	return set;
}

/* @rule: the number of the one that decides. */
static void expect_name(
	const struct netrules *set, const char *name, uint16_t port, bool expected, int rule)
{
	int decided = -2;
	bool got = netrules_name(set, name, port, &decided);

	if (got != expected || decided != rule)
		fail_msg("%s:%u: %d by %d, not %d by %d", name, port, got, decided, expected,
			rule);
}

static void expect_address(
	const struct netrules *set, const char *text, uint16_t port, bool expected, int rule)
{
	uint8_t address[16] = { 0 };
	bool six = strchr(text, ':') != NULL;
	int decided = -2;

	assert_int_equal(inet_pton(six ? AF_INET6 : AF_INET, text, address), 1);
	bool got = netrules_address(set, six ? 6 : 4, address, port, &decided);
	if (got != expected || decided != rule)
		fail_msg("%s:%u: %d by %d, not %d by %d", text, port, got, decided, expected,
			rule);
}

static void test_nothing(void **state)
{
	struct netrules *set = set_of(NULL, 0);

	(void)state;
	expect_name(set, "example.org", 443, false, -1);
	expect_name(set, "example.org", 0, false, -1);
	expect_address(set, "192.0.2.1", 443, false, -1);
	expect_address(set, "127.0.0.1", 443, false, -1);
}

static void test_names(void **state)
{
	static const char *const lines[] = { "allow example.org", "allow *.example.org:443",
		"allow a.example.org:22", "deny b.example.org", "deny *.c.example.org:443",
		"allow b.example.org:8080", "deny only.example", "allow d.example:25",
		"deny d.example:25", "allow *.example:7" };
	struct netrules *set = set_of(lines, COUNT(lines));

	(void)state;
	expect_name(set, "example.org", 443, true, 0);
	expect_name(set, "example.org", 80, true, 0);
	expect_name(set, "example.org", 22, false, -1);
	expect_name(set, "x.example.org", 443, true, 1);
	expect_name(set, "x.y.example.org", 443, true, 1);
	expect_name(set, "x.example.org", 80, false, -1);
	expect_name(set, "a.example.org", 22, true, 2);
	expect_name(set, "a.example.org", 443, true, 1);
	expect_name(set, "b.example.org", 443, false, 3);
	expect_name(set, "b.example.org", 8080, false, 3);
	expect_name(set, "b.example.org", 0, false, 3);
	expect_name(set, "x.b.example.org", 443, true, 1);
	expect_name(set, "x.c.example.org", 443, false, 4);
	expect_name(set, "x.c.example.org", 0, false, 4);
	expect_name(set, "c.example.org", 443, true, 1);
	expect_name(set, "a.example.org", 0, true, 1);
	expect_name(set, "only.example", 0, false, 6);
	expect_name(set, "only.example", 7, false, 6);
	expect_name(set, "d.example", 0, true, 9);
	expect_name(set, "d.example", 25, false, 8);
	expect_name(set, "xexample.org", 443, false, -1);
	expect_name(set, "org", 443, false, -1);
	expect_name(set, "example.org.evil", 443, false, -1);
	expect_name(set, "", 443, false, -1);
	expect_name(set, ".example.org", 443, true, 1); /* no name: who asks has checked that */
}

static void test_deny_alone(void **state)
{
	static const char *const lines[] = { "deny example.org", "deny *.example.net:443" };
	struct netrules *set = set_of(lines, COUNT(lines));

	(void)state;
	expect_name(set, "example.org", 0, false, 0);
	expect_name(set, "a.example.net", 443, false, 1);
	expect_name(set, "a.example.net", 0, false, -1);
}

static void test_addresses(void **state)
{
	static const char *const lines[] = { "allow 8.8.8.0/24:53", "allow 8.8.8.8:443",
		"deny 8.8.8.9", "allow localhost:5432", "allow 10.1.0.0/16:443",
		"allow 128.0.0.0/1:22", "allow [2001:4860::]/32:443", "allow 0.0.0.0/1:23",
		"allow [::]/1:9", "allow [fd00::]/8:9", "deny 9.9.9.9" };
	struct netrules *set = set_of(lines, COUNT(lines));

	(void)state;
	expect_address(set, "8.8.8.8", 53, true, 0);
	expect_address(set, "8.8.8.8", 443, true, 1);
	expect_address(set, "8.8.8.9", 53, false, 2);
	expect_address(set, "8.8.9.8", 53, false, -1);
	expect_address(set, "::ffff:8.8.8.8", 53, true, 0);
	expect_address(set, "::ffff:8.8.8.9", 53, false, 2);
	expect_address(set, "127.0.0.1", 5432, true, 3);
	expect_address(set, "127.0.0.53", 5432, true, 3);
	expect_address(set, "::1", 5432, true, 3);
	expect_address(set, "127.0.0.1", 5433, false, -1);
	expect_address(set, "::ffff:127.0.0.1", 5432, true, 3);
	expect_address(set, "10.1.2.3", 443, true, 4);
	expect_address(set, "10.2.2.3", 443, false, -1);
	/* A wide block opens no special range that is not the whole of it. */
	expect_address(set, "130.1.1.1", 22, true, 5);
	expect_address(set, "169.254.169.254", 22, false, -1);
	expect_address(set, "192.168.1.1", 22, false, -1);
	expect_address(set, "4.4.4.4", 23, true, 7);
	expect_address(set, "127.0.0.1", 23, false, -1);
	expect_address(set, "0.0.0.0", 23, false, -1);
	expect_address(set, "10.0.0.1", 23, false, -1);
	expect_address(set, "2001:4860::1", 443, true, 6);
	expect_address(set, "2001:4861::1", 443, false, -1);
	expect_address(set, "2600::1", 9, true, 8);
	expect_address(set, "::1", 9, false, -1);
	expect_address(set, "fd00::1", 9, true, 9);
	/* An address of IPv4 that is denied is so in IPv6 as well; one that is allowed is not. */
	expect_address(set, "64:ff9b::9.9.9.9", 9, false, 10);
	expect_address(set, "2002:909:909::1", 9, false, 10);
	expect_address(set, "64:ff9b::8.8.8.8", 443, false, -1);
	expect_address(set, "64:ff9b::127.0.0.1", 5432, false, -1);
}

static void test_public(void **state)
{
	static const struct {
		const char *text;
		bool is;
	} cases[] = {
		{ "8.8.8.8", true },
		{ "1.1.1.1", true },
		{ "9.255.255.255", true },
		{ "11.0.0.0", true },
		{ "100.63.255.255", true },
		{ "100.128.0.0", true },
		{ "172.15.255.255", true },
		{ "172.32.0.0", true },
		{ "192.167.255.255", true },
		{ "198.17.255.255", true },
		{ "198.20.0.0", true },
		{ "223.255.255.255", true },
		{ "0.0.0.0", false },
		{ "0.1.2.3", false },
		{ "10.0.0.1", false },
		{ "100.64.0.1", false },
		{ "100.127.255.255", false },
		{ "127.0.0.1", false },
		{ "127.255.255.255", false },
		{ "169.254.169.254", false },
		{ "172.16.0.1", false },
		{ "172.31.255.255", false },
		{ "192.0.0.1", false },
		{ "192.0.2.1", false },
		{ "192.88.99.1", false },
		{ "192.168.0.1", false },
		{ "198.18.0.1", false },
		{ "198.19.255.255", false },
		{ "198.51.100.1", false },
		{ "203.0.113.1", false },
		{ "224.0.0.1", false },
		{ "240.0.0.1", false },
		{ "255.255.255.255", false },
		{ "2600::1", true },
		{ "2a00:1450::1", true },
		{ "2001:200::1", true },
		{ "::", false },
		{ "::1", false },
		{ "::8.8.8.8", false },
		{ "100::1", false },
		{ "fc00::1", false },
		{ "fd12::1", false },
		{ "fd00:ec2::254", false },
		{ "fe80::1", false },
		{ "fec0::1", false },
		{ "ff02::1", false },
		{ "4000::1", false },
		{ "2001::1", false },
		{ "2001:1ff::1", false },
		{ "2001:db8::1", false },
		{ "3fff::1", false },
		{ "::ffff:8.8.8.8", true },
		{ "::ffff:127.0.0.1", false },
		{ "::ffff:169.254.169.254", false },
		{ "64:ff9b::8.8.8.8", true },
		{ "64:ff9b::10.0.0.1", false },
		{ "64:ff9b:1::8.8.8.8", false },
		{ "2002:808:808::1", true },
		{ "2002:7f00:1::1", false },
		{ "2002:a9fe:a9fe::1", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint8_t address[16] = { 0 };
		bool six = strchr(cases[i].text, ':') != NULL;

		assert_int_equal(
			inet_pton(six ? AF_INET6 : AF_INET, cases[i].text, address), 1);
		if (netrules_is_public(six ? 6 : 4, address) != cases[i].is)
			fail_msg(
				"%s: %s", cases[i].text, cases[i].is ? "not public" : "public");
	}
}

/* As many rules as anybody has: each is found, and one that is added later has the next number. */
static void test_many(void **state)
{
	struct netrule *rules = arena_array(&arena, MANY + 1, sizeof(*rules)), more, *added;
	struct netrules *set = NULL;
	struct error e = { 0 };
	char text[64];

	(void)state;
	assert_non_null(rules);
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(text, sizeof(text),
			i % 2 ? "10.%d.%d.0/24:443" : "n%d.x%d.example:443", i / 256, i % 256);
		assert_int_equal(netrule_parse(&rules[i], &arena, false, text, "allow", &e), 0);
	}
	assert_int_equal(netrules_make(&set, &arena, rules, MANY), 0);
	for (int round = 0; round < 20; round++)
		for (int i = 0; i < MANY; i++) {
			if (i % 2) {
				uint8_t address[4] = { 10, (uint8_t)(i / 256), (uint8_t)i, 7 };
				int rule;

				assert_true(netrules_address(set, 4, address, 443, &rule));
				assert_int_equal(rule, i);
				continue;
			}
			(void)snprintf(text, sizeof(text), "n%d.x%d.example", i / 256, i % 256);
			expect_name(set, text, 443, true, i);
		}
	for (int i = 0; i < 100; i++) {
		added = arena_alloc(&arena, sizeof(*added));
		(void)snprintf(text, sizeof(text), "added%d.example", i);
		assert_int_equal(netrule_parse(&more, &arena, false, text, "allow", &e), 0);
		*added = more;
		assert_int_equal(netrules_add(set, added), 0);
		expect_name(set, more.name, 443, true, MANY + i);
	}
	expect_name(set, "n0.x0.example", 443, true, 0);
	/* One that is taken back is asked no more, at its port or at any; the others keep their numbers. */
	assert_int_equal(netrules_remove(set, MANY + 7), 0);
	assert_int_equal(netrules_remove(set, MANY + 7), -ENOENT);
	assert_int_equal(netrules_remove(set, MANY + 100), -ENOENT);
	expect_name(set, "added7.example", 443, false, -1);
	expect_name(set, "added7.example", 0, false, -1);
	expect_name(set, "added8.example", 443, true, MANY + 8);
}

/* Where the arena is full it is said. */
static void test_full(void **state)
{
	struct arena small;
	struct netrules *set = NULL;
	struct netrule rule;
	struct error e = { 0 };
	int added = 0, r;

	(void)state;
	assert_int_equal(arena_init(&small, 4096), 0);
	assert_int_equal(netrule_parse(&rule, &arena, false, "example.org", "allow", &e), 0);
	assert_int_equal(netrules_make(&set, &small, &rule, 1), 0);
	while ((r = netrules_add(set, &rule)) == 0 && added < MANY)
		added++;
	assert_int_equal(r, -ENOMEM);
	expect_name(set, "example.org", 443, true, 0);
	arena_free(&small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_two_ways),
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_format_room),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_deny_alone),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_public),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

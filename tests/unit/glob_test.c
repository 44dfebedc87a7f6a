/*
 * glob_test.c - base/glob.h against the C library's fnmatch, on every short pattern and on many longer ones.
 *
 * Runs in: the tests.
 */
/* ctest: as=any */
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/glob.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { SHORT = 5, NAMES = 3, LONG = 12, TRIES = 2000000 };

static void check(const char *pattern, const char *name)
{
	/* Behind "*?" glibc takes a later period for a leading one, so the rule about that one is applied here. */
	bool expected = fnmatch(pattern, name, 0) == 0 &&
		(name[0] != '.' || pattern[0] == '.' || !strncmp(pattern, "\\.", 2));
	bool got = glob_name_fits(pattern, strlen(pattern), name, strlen(name));

	if (got != expected)
		fail_msg("pattern '%s', name '%s': %d, not %d", pattern, name, got, expected);
}

/* What fnmatch(3) leaves open, or gives a meaning of its own: an open bracket, "[.x.]", "[=x=]". */
static bool is_left_open(const char *pattern)
{
	bool inside = false;
	const char *first = pattern;

	for (const char *p = pattern; *p; p++) {
		if (*p == '\\') {
			if (!p[1])
				return true;
			p++;
		} else if (inside && *p == '[' && p[1] && strchr(".=:", p[1])) {
			return true;
		} else if (inside && *p == ']' && p != first) {
			inside = false;
		} else if (!inside && *p == '[') {
			inside = true;
			first = p + 1 + (p[1] == '!' || p[1] == '^');
			p = first - 1;
		}
	}
	return inside;
}

/* The @n-th text of @letters, in the order of its length. */
static void text_of(uint32_t n, const char *letters, char *ret)
{
	size_t base = strlen(letters), length = 0;

	for (; n > 0; n = (uint32_t)((n - 1) / base))
		ret[length++] = letters[(n - 1) % base];
	ret[length] = '\0';
}

static uint32_t count_of(const char *letters, size_t longest)
{
	uint32_t count = 1;

	for (size_t i = 0; i < longest; i++)
		count = count * (uint32_t)strlen(letters) + 1;
	return count;
}

static void test_every_short_pattern(void **state)
{
	static const char letters[] = "ab*?[]-!.\\";
	static const char name_letters[] = "ab.-";
	char pattern[SHORT + 1], name[NAMES + 1];
	uint32_t patterns = count_of(letters, SHORT), names = count_of(name_letters, NAMES);

	(void)state;
	for (uint32_t i = 0; i < patterns; i++) {
		text_of(i, letters, pattern);
		if (is_left_open(pattern))
			continue;
		for (uint32_t k = 1; k<names; k += patterns> 10000 ? 3 : 1) {
			text_of(k, name_letters, name);
			check(pattern, name);
		}
	}
}

/* @count of @parts, chosen by @seed, one after the other. */
static void chain(uint32_t *seed, const char *const *parts, size_t part_count, size_t count,
	char *ret, size_t size)
{
	size_t at = 0;

	for (ret[0] = '\0'; count > 0; count--) {
		*seed = *seed * 1664525 + 1013904223;
		int n = snprintf(ret + at, size - at, "%s", parts[(*seed >> 8) % part_count]);

		at += (size_t)n;
	}
}

static void test_many_longer_patterns(void **state)
{
	static const char *const parts[] = { "a", "b", ".", "*", "?", "[ab]", "[!a]", "[^b.]",
		"[a-c]", "[[:alpha:]]", "[![:digit:]_]", "[[:upper:]-]", "[]a]", "[!]b]", "\\*",
		"\\[", "\\\\", "[\\]x]", "[a\\-c]", "-", "]", "\xc3\xa9", "[\xc3\xa9]" };
	static const char *const bytes[] = { "a", "b", "c", ".", "*", "[", "]", "\\", "-", "A",
		"1", "_", "\xc3", "\xa9", "\xff", " " };
	uint32_t seed = 1;

	(void)state;
	for (size_t i = 0; i < TRIES; i++) {
		char pattern[LONG * 16], name[LONG * 2];

		chain(&seed, parts, COUNT(parts), (seed >> 8) % 6 + 1, pattern,
			sizeof(pattern));
		chain(&seed, bytes, COUNT(bytes), (seed >> 12) % 6 + 1, name, sizeof(name));
		check(pattern, name);
	}
}

static void test_classes(void **state)
{
	static const char *const classes[] = { "alnum", "alpha", "blank", "cntrl", "digit",
		"graph", "lower", "print", "punct", "space", "upper", "xdigit", "nothing", "" };

	(void)state;
	for (size_t i = 0; i < COUNT(classes); i++)
		for (int c = 1; c < 256; c++) {
			char pattern[32], name[] = { (char)c, '\0' };

			(void)snprintf(pattern, sizeof(pattern), "[[:%s:]]", classes[i]);
			if (classes[i][0] && strcmp(classes[i], "nothing") != 0)
				check(pattern, name);
			else
				assert_false(glob_name_fits(pattern, strlen(pattern), name, 1));
		}
}

/* What is left open by others is not here. */
static void test_left_open(void **state)
{
	(void)state;
	assert_true(glob_name_fits("[a", 2, "[a", 2));
	assert_false(glob_name_fits("[a", 2, "a", 1));
	assert_true(glob_name_fits("*[", 2, "x[", 2));
	assert_false(glob_name_fits("a\\", 2, "a", 1));
	assert_false(glob_name_fits("a\\", 2, "a\\", 2));
	assert_true(glob_name_fits("", 0, "", 0));
	assert_false(glob_name_fits("", 0, "a", 1));
	assert_true(glob_name_fits("**", 2, "a", 1));
}

static void test_paths(void **state)
{
	(void)state;
	assert_true(glob_path_fits("/home/*/.ssh", "/home/me/.ssh"));
	assert_true(glob_path_fits("/home/*/.ssh", "/home/me/.ssh/id"));
	assert_false(glob_path_fits("/home/*/.ssh", "/home/me"));
	assert_false(glob_path_fits("/home/*/.ssh", "/home/me/x/.ssh"));
	assert_false(glob_path_fits("/home/*", "/home/.hidden"));
	assert_true(glob_path_fits("/home/.*", "/home/.hidden/x"));
	assert_false(glob_path_fits("/home/[a/b]", "/home/a"));
	assert_false(glob_path_fits("/home?me", "/home/me"));
	assert_true(glob_path_fits("/", "/anything"));
}

static void test_stars(void **state)
{
	(void)state;
	assert_true(glob_star_fits("LC_*", "LC_ALL", 6));
	assert_true(glob_star_fits("*", "", 0));
	assert_true(glob_star_fits("A*B*C", "AxBByC", 6));
	assert_false(glob_star_fits("A?C", "ABC", 3));
	assert_false(glob_star_fits("LC_*", "LC", 2));
	assert_true(glob_star_fits("LC", "LC=x", 2));
}

/* Half a million steps would not be noticed, 2^40 would. */
static void test_cost(void **state)
{
	char pattern[512], name[512];

	(void)state;
	for (size_t i = 0; i + 2 < sizeof(pattern); i += 2) {
		pattern[i] = '*';
		pattern[i + 1] = 'a';
	}
	pattern[sizeof(pattern) - 2] = 'b';
	pattern[sizeof(pattern) - 1] = '\0';
	memset(name, 'a', sizeof(name));
	assert_false(glob_name_fits(pattern, strlen(pattern), name, sizeof(name)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_short_pattern),
		cmocka_unit_test(test_many_longer_patterns),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_left_open),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_stars),
		cmocka_unit_test(test_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

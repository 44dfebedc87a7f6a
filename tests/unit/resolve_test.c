/*
 * resolve_test.c - where a path really is, against realpath(3) and by hand.
 *
 * Runs in: the unit tests, in a directory of its own.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/facts/resolve.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ODD "odd \xff\xc3\n*\\"

struct fixture {
	char root[64]; /* canonical */
	struct arena arena;
	struct resolver resolver;
};

static int fixture_open(void **state)
{
	struct fixture *d = calloc(1, sizeof(*d));

	*state = d;
	if (!d || arena_init(&d->arena, 64 << 20) < 0)
		return -1;
	(void)snprintf(d->root, sizeof(d->root), "/tmp/carrel-resolve-test-XXXXXX");
	d->resolver.arena = &d->arena;
	return mkdtemp(d->root) && chdir(d->root) == 0 ? 0 : -1;
}

/* Every test removes by name what it made: rmdir(2) shows that nothing else is there. */
static int fixture_close(void **state)
{
	struct fixture *d = *state;
	int r = chdir("/") == 0 ? rmdir(d->root) : -1;

	arena_free(&d->arena);
	free(d);
	return r;
}

static const char *at(struct fixture *d, const char *relative)
{
	const char *path = arena_format(&d->arena, "%s/%s", d->root, relative);

	assert_non_null(path);
	return path;
}

static void make_file(const char *name)
{
	autofd int fd = fd_open_at(AT_FDCWD, name, O_WRONLY | O_CREAT | O_EXCL, 0644);

	assert_true(fd >= 0);
}

static void make_link(const char *name, const char *target)
{
	assert_int_equal(symlink(target, name), 0);
}

static void make_dir(const char *name)
{
	assert_int_equal(mkdir(name, 0755), 0);
}

static struct resolved resolve(struct fixture *d, const char *path, unsigned flags)
{
	struct resolved found = { .path = "untouched" };
	int r = resolve_path(&d->resolver, path, flags, &found);

	if (r < 0)
		fail_msg("%s: %s", path, strerror(-r));
	return found;
}

static void check_error(struct fixture *d, const char *path, int expected)
{
	struct resolved found = { .path = "untouched" };

	assert_int_equal(resolve_path(&d->resolver, path, 0, &found), -expected);
	assert_string_equal(found.path, "untouched");
}

/* It exists, lies at @expected, and the kernel and libc say the same. */
static void check_real(struct fixture *d, const char *path, const char *expected)
{
	struct resolved found = resolve(d, path, 0);
	char real[PATH_MAX];
	struct stat st;

	assert_true(found.exists);
	assert_string_equal(found.path, expected);
	assert_int_equal(found.existing, strlen(expected));
	assert_non_null(realpath(path, real));
	assert_string_equal(found.path, real);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_dev == found.st.st_dev && st.st_ino == found.st.st_ino);
}

static void test_plain(void **state)
{
	struct fixture *d = *state;

	check_real(d, "/", "/");
	check_real(d, d->root, d->root);
	make_dir("a");
	make_file("a/f");
	check_real(d, at(d, "a/f"), at(d, "a/f"));
	assert_int_equal(d->resolver.link_count, 0);
	check_error(d, "a/f", EINVAL);
	check_error(d, "", EINVAL);
	assert_int_equal(unlink("a/f") | rmdir("a"), 0);
}

static void test_unclean(void **state)
{
	static const char *const ways[] = { "a/b/f", "a//b///f", "./a/./b/./f", "a/../a/b/f",
		"a/b/../../a/b/f", "../../../../../../../..%s/a/b/f", "x/../b/f", "x/f", "y/f",
		"x/../../a/b/f" };
	struct fixture *d = *state;

	make_dir("a");
	make_dir("a/b");
	make_file("a/b/f");
	make_link("x", "a/b"); /* x/.. is a, not the root */
	make_link("y", "x/.././b//");
	for (size_t i = 0; i < COUNT(ways); i++) {
		const char *way = strstr(ways[i], "%s")
			? at(d,
				  arena_format(&d->arena, "../../../../../../../..%s/a/b/f",
					  d->root))
			: at(d, ways[i]);

		check_real(d, way, at(d, "a/b/f"));
	}
	check_real(d, at(d, "a/b/"), at(d, "a/b"));
	check_real(d, at(d, "x/"), at(d, "a/b"));
	check_real(d, at(d, "a/b/.."), at(d, "a"));
	check_real(d, "/..", "/");
	check_real(d, "//", "/");
	check_real(d, "/../../.", "/");
	assert_int_equal(unlink("x") | unlink("y") | unlink("a/b/f"), 0);
	assert_int_equal(rmdir("a/b") | rmdir("a"), 0);
}

static void test_missing(void **state)
{
	static const struct {
		const char *path;
		const char *existing;
	} cases[] = { { "none", "" }, { "none/x/y", "" }, { "none/x", "" }, { "nonesuch", "" },
		{ "a/none", "a" }, { "a/none/b/c", "a" }, { "a/f/below", "a/f" },
		{ "a/f/below/it", "a/f" } };
	struct fixture *d = *state;

	make_dir("a");
	make_file("a/f");
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *path = at(d, cases[i].path);
		struct resolved found = resolve(d, path, RESOLVE_PREFIX);
		size_t expected = strlen(d->root) +
			(*cases[i].existing ? 1 + strlen(cases[i].existing) : 0);

		assert_false(found.exists);
		assert_string_equal(found.path, path);
		assert_int_equal(found.existing, expected);
		found = resolve(d, path, 0);
		assert_false(found.exists);
	}
	/* What is known to be absent is asked for once; what appears later is another resolver's. */
	struct resolved found = resolve(d, "/carrel-none-such/x", RESOLVE_PREFIX);
	assert_int_equal(found.existing, 1);
	assert_int_equal(unlink("a/f") | rmdir("a"), 0);
}

static void test_links(void **state)
{
	struct fixture *d = *state;

	make_dir("a");
	make_file("a/f");
	make_link("relative", "a");
	make_link("absolute", at(d, "a"));
	make_link("a/up", "../relative");
	make_link("dangling", "a/none");
	check_real(d, at(d, "relative/f"), at(d, "a/f"));
	check_real(d, at(d, "absolute/up/up/f"), at(d, "a/f"));
	/* Each link on the way, once, where it lies and as it is written. */
	assert_int_equal(d->resolver.link_count, 3);
	assert_string_equal(d->resolver.links[0].path, at(d, "relative"));
	assert_string_equal(d->resolver.links[0].target, "a");
	assert_string_equal(d->resolver.links[1].path, at(d, "absolute"));
	assert_string_equal(d->resolver.links[1].target, at(d, "a"));
	assert_string_equal(d->resolver.links[2].path, at(d, "a/up"));
	struct resolved found = resolve(d, at(d, "dangling"), RESOLVE_PREFIX);
	assert_false(found.exists);
	assert_string_equal(found.path, at(d, "a/none"));
	assert_int_equal(found.existing, strlen(at(d, "a")));
	found = resolve(d, at(d, "dangling/x"), RESOLVE_PREFIX);
	assert_string_equal(found.path, at(d, "a/none/x"));
	assert_int_equal(unlink("dangling") | unlink("absolute") | unlink("relative"), 0);
	assert_int_equal(unlink("a/up") | unlink("a/f") | rmdir("a"), 0);
}

static void test_keep_last(void **state)
{
	struct fixture *d = *state;
	struct resolved found;

	make_dir("a");
	make_link("a/end", "nowhere");
	make_link("way", "a");
	make_link("self", "self");
	found = resolve(d, at(d, "way/end"), RESOLVE_KEEP_LAST);
	assert_true(found.exists && S_ISLNK(found.st.st_mode));
	assert_string_equal(found.path, at(d, "a/end"));
	found = resolve(d, at(d, "a/end"), RESOLVE_KEEP_LAST);
	assert_true(found.exists && S_ISLNK(found.st.st_mode));
	found = resolve(d, at(d, "self"), RESOLVE_KEEP_LAST);
	assert_true(found.exists && S_ISLNK(found.st.st_mode));
	found = resolve(d, at(d, "a"), RESOLVE_KEEP_LAST);
	assert_true(found.exists && S_ISDIR(found.st.st_mode));
	found = resolve(d, at(d, "way/none"), RESOLVE_KEEP_LAST | RESOLVE_PREFIX);
	assert_false(found.exists);
	assert_string_equal(found.path, at(d, "a/none"));
	assert_int_equal(found.existing, strlen(at(d, "a")));
	assert_int_equal(unlink("a/end") | unlink("way") | unlink("self") | rmdir("a"), 0);
}

static void test_loops(void **state)
{
	struct fixture *d = *state;
	char name[16], target[16];

	make_link("self", "self");
	make_link("ping", "pong/x");
	make_link("pong", "ping");
	check_error(d, at(d, "self"), ELOOP);
	check_error(d, at(d, "self/below"), ELOOP);
	check_error(d, at(d, "ping"), ELOOP);
	/* As many as the kernel follows, and one more. */
	make_file("l0");
	for (int i = 1; i <= 41; i++) {
		(void)snprintf(name, sizeof(name), "l%d", i);
		(void)snprintf(target, sizeof(target), "l%d", i - 1);
		make_link(name, target);
	}
	check_real(d, at(d, "l40"), at(d, "l0"));
	check_error(d, at(d, "l41"), ELOOP);
	assert_int_equal(stat("l41", &(struct stat){ 0 }), -1);
	assert_int_equal(errno, ELOOP);
	for (int i = 0; i <= 41; i++) {
		(void)snprintf(name, sizeof(name), "l%d", i);
		assert_int_equal(unlink(name), 0);
	}
	assert_int_equal(unlink("self") | unlink("ping") | unlink("pong"), 0);
}

static void test_odd_names(void **state)
{
	char longest[256] = "";
	struct fixture *d = *state;

	memset(longest, '\xe9', sizeof(longest) - 1);
	make_dir(ODD);
	make_dir(longest);
	make_link(ODD "/" ODD, longest);
	make_link("to", ODD);
	check_real(d, at(d, ODD), at(d, ODD));
	check_real(d, at(d, longest), at(d, longest));
	check_real(d, at(d, "to"), at(d, ODD));
	struct resolved found = resolve(d, at(d, "to/" ODD), RESOLVE_PREFIX);
	assert_false(found.exists); /* the link is relative to where it lies */
	check_real(d, at(d, "to/../to//."), at(d, ODD));
	assert_int_equal(unlink(ODD "/" ODD) | unlink("to") | rmdir(ODD) | rmdir(longest), 0);
}

static void test_too_long(void **state)
{
	struct fixture *d = *state;
	char path[PATH_MAX + 64], part[302];
	struct resolved found;

	/* A name that no file system takes. */
	memset(part, 'n', sizeof(part));
	part[0] = '/';
	part[sizeof(part) - 1] = '\0';
	int r = resolve_path(&d->resolver, part, 0, &found);
	assert_int_equal(r, -ENAMETOOLONG);
	/* More than there is memory for on the way. */
	memset(path, '/', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(resolve_path(&d->resolver, path, 0, &found), -ENAMETOOLONG);
	for (size_t i = 1; i < sizeof(path) - 1; i += 2)
		path[i] = 'a';
	assert_int_equal(resolve_path(&d->resolver, path, 0, &found), -ENAMETOOLONG);
	/* Links that grow on the way. */
	char target[1000];
	memset(target, '/', sizeof(target));
	memcpy(target, ".", 1);
	memcpy(target + sizeof(target) - 5, "grow", 5);
	make_link("grow", target);
	r = resolve_path(&d->resolver, at(d, "grow/x"), 0, &found);
	assert_true(r == -ELOOP || r == -ENAMETOOLONG);
	assert_int_equal(unlink("grow"), 0);
}

static void test_closed_directory(void **state)
{
	struct fixture *d = *state;
	struct resolved found;

	make_dir("closed");
	make_file("closed/f");
	make_link("way", "closed/f");
	assert_int_equal(chmod("closed", 0), 0);
	if (geteuid() == 0) {
		check_real(d, at(d, "way"), at(d, "closed/f"));
	} else {
		check_error(d, at(d, "way"), EACCES);
		check_error(d, at(d, "closed/f"), EACCES);
		found = resolve(d, at(d, "closed"), 0);
		assert_true(found.exists);
		assert_int_equal(resolve_path(&d->resolver, at(d, "closed/none/x"),
					 RESOLVE_PREFIX, &found),
			-EACCES);
	}
	assert_int_equal(chmod("closed", 0700), 0);
	assert_int_equal(unlink("way") | unlink("closed/f") | rmdir("closed"), 0);
}

/* Asked often enough a directory is listed: what it has is still found, what it lacks still missing. */
static void test_many_in_one(void **state)
{
	struct fixture *d = *state;
	struct resolved found;
	char name[32];

	make_dir("a");
	make_dir("a/b");
	make_file("a/b/f");
	make_link("a/link", "b/f");
	for (int i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof(name), "a/missing-%d", i);
		assert_true(resolve_is_absent(&d->resolver, at(d, name)));
		assert_int_equal(
			resolve_path(&d->resolver, at(d, name), RESOLVE_PREFIX, &found), 0);
		assert_false(found.exists);
		assert_int_equal(found.existing, strlen(at(d, "a")));
		assert_false(resolve_is_absent(&d->resolver, at(d, "a/b")));
		assert_false(resolve_is_absent(&d->resolver, at(d, "a/b/f")));
		assert_false(resolve_is_absent(&d->resolver, at(d, "a/link")));
		(void)snprintf(name, sizeof(name), "a/none-%d/deep/er", i);
		assert_true(resolve_is_absent(&d->resolver, at(d, name)));
		assert_int_equal(
			resolve_path(&d->resolver, at(d, name), RESOLVE_PREFIX, &found), 0);
		assert_int_equal(found.existing, strlen(at(d, "a")));
		assert_true(resolve_is_absent(&d->resolver, at(d, "a/b/f/below-a-file")));
		assert_int_equal(resolve_path(&d->resolver, at(d, "a/link"), 0, &found), 0);
		assert_true(found.exists);
		assert_string_equal(found.path, at(d, "a/b/f"));
	}
	resolve_done(&d->resolver);
	assert_int_equal(unlink("a/b/f") | unlink("a/link"), 0);
	assert_int_equal(rmdir("a/b") | rmdir("a"), 0);
}

static void test_no_memory(void **state)
{
	struct fixture *d = *state;
	struct resolved found = { .path = "untouched" };
	size_t used = d->arena.used;

	make_dir("a");
	make_link("way", "a");
	const char *path = at(d, "way/x");
	d->arena.used = d->arena.size;
	assert_int_equal(resolve_path(&d->resolver, path, 0, &found), -ENOMEM);
	assert_string_equal(found.path, "untouched");
	d->arena.used = used;
	assert_int_equal(unlink("way") | rmdir("a"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_plain),
		TEST(test_unclean),
		TEST(test_missing),
		TEST(test_links),
		TEST(test_keep_last),
		TEST(test_loops),
		TEST(test_odd_names),
		TEST(test_too_long),
		TEST(test_closed_directory),
		TEST(test_many_in_one),
		TEST(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

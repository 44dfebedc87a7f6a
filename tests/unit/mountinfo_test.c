/*
 * mountinfo_test.c - tables of mounts that were made up: escapes, stacks, damage, thousands of lines.
 *
 * Runs in: the unit tests. Nothing is mounted.
 */
/* ctest: as=any */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/facts/mountinfo.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ROOT "26 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"

struct table {
	struct arena arena;
	struct mountinfo info;
};

static int parse(struct table *t, const char *text)
{
	size_t size = strlen(text);

	assert_int_equal(arena_init(&t->arena, 64 << 20), 0);
	char *copy = arena_copy(&t->arena, text, size);
	assert_non_null(copy);
	return mountinfo_parse(&t->info, &t->arena, copy, size);
}

/* The id of the mount that @path lies on; 0: none. */
static unsigned id_at(const struct table *t, const char *path)
{
	const struct mount_entry *m = mountinfo_find(&t->info, path);

	return m ? m->id : 0;
}

static void test_fields(void **state)
{
	struct table t;

	(void)state;
	assert_int_equal(
		parse(&t,
			ROOT
			"30 26 0:21 /home /else\\040where rw shared:1 master:2 - ext4 /dev/vda rw\n"
			"31 26 0:22 / /proc rw - proc proc rw\n"
			"32 26 0:23 net:[4026531840] /run/ns rw - nsfs nsfs rw\n"
			"33 26 0:24 / /a\\134b\\011c\\012d\\043 rw - tmpfs  rw\n"),
		0);
	assert_int_equal(t.info.count, 5);
	assert_ptr_equal(t.info.root, &t.info.mounts[0]);
	assert_int_equal(t.info.mounts[0].device, UINT64_C(254) << 32);
	assert_string_equal(t.info.mounts[1].root, "/home");
	assert_string_equal(t.info.mounts[1].point, "/else where");
	assert_false(t.info.mounts[1].is_proc);
	assert_true(t.info.mounts[2].is_proc);
	assert_string_equal(t.info.mounts[3].root, "net:[4026531840]");
	assert_string_equal(t.info.mounts[4].point, "/a\\b\tc\nd#");
	arena_free(&t.arena);
}

static void test_find(void **state)
{
	static const struct {
		const char *path;
		unsigned id;
	} rows[] = {
		{ "/", 26 },
		{ "/x", 26 },
		{ "/home", 30 },
		{ "/home/me/.ssh", 30 },
		{ "/homely", 26 },
		{ "/stack", 42 },
		{ "/stack/x", 42 },
		{ "/a", 51 },
		{ "/a/b", 51 }, /* what was mounted there is covered */
		{ "/a/b/c", 51 },
		{ "/d/e", 61 },
		{ "/d/e/f", 62 },
	};
	struct table t;

	(void)state;
	assert_int_equal(parse(&t,
				 "40 26 0:40 / /stack rw - tmpfs x rw\n"
				 "30 26 0:30 / /home rw - tmpfs x rw\n"
				 "42 41 0:42 / /stack rw - tmpfs x rw\n"
				 "41 40 0:41 / /stack rw - tmpfs x rw\n"
				 "50 26 0:50 / /a/b rw - tmpfs x rw\n" ROOT
				 "51 26 0:51 / /a rw - tmpfs x rw\n"
				 "62 61 0:62 / /d/e/f rw - tmpfs x rw\n"
				 "60 26 0:60 / /d rw - tmpfs x rw\n"
				 "61 60 0:61 / /d/e rw - tmpfs x rw\n"),
		0);
	for (size_t i = 0; i < COUNT(rows); i++)
		if (id_at(&t, rows[i].path) != rows[i].id)
			fail_msg("%s: on %u", rows[i].path, id_at(&t, rows[i].path));
	arena_free(&t.arena);
}

/* Over "/" as well: what is in sight is on top. */
static void test_roots(void **state)
{
	struct table t;

	(void)state;
	assert_int_equal(parse(&t,
				 "27 26 0:2 / / rw - tmpfs x rw\n"
				 "28 26 0:3 / /home rw - tmpfs x rw\n"
				 "26 26 0:1 / / rw - rootfs x rw\n"),
		0);
	assert_int_equal(id_at(&t, "/"), 27);
	assert_int_equal(id_at(&t, "/home/me"), 27);
	arena_free(&t.arena);
	/* As after chroot(2): the mount that "/" lies on is not told of. */
	assert_int_equal(parse(&t, "28 26 0:3 / /home rw - tmpfs x rw\n"), 0);
	assert_null(t.info.root);
	assert_int_equal(id_at(&t, "/home"), 0);
	arena_free(&t.arena);
	assert_int_equal(parse(&t, ""), 0);
	assert_int_equal(id_at(&t, "/home"), 0);
	arena_free(&t.arena);
}

static void test_circles(void **state)
{
	struct table t;

	(void)state;
	assert_int_equal(parse(&t,
				 ROOT "30 26 0:3 / /a rw - tmpfs x rw\n"
				      "31 30 0:3 / /a rw - tmpfs x rw\n"
				      "30 31 0:3 / /a rw - tmpfs x rw\n"),
		0);
	assert_int_equal(id_at(&t, "/a/b"), 0);
	assert_int_equal(id_at(&t, "/b"), 26);
	arena_free(&t.arena);
}

static void test_layers(void **state)
{
	static const struct mount_layer rows[] = {
		{ 1, "/low" },
		{ 1, "/o:ther,one" },
		{ 1, "/up" },
		{ 2, "/a:b" },
		{ 2, "/c" },
	};
	struct table t;

	(void)state;
	assert_int_equal(
		parse(&t,
			ROOT
			"30 26 0:3 / /m rw - overlay overlay "
			"rw,lowerdir=/low:l/ABC:/o\\134:ther\\054one,upperdir=/up,workdir=/work,xino=on\n"
			"31 26 0:4 / /n rw - overlay overlay ro,lowerdir+=/a:b,datadir+=/c,index\n"
			"32 26 0:5 / /o rw - tmpfs lowerdir=/x rw,lowerdir=/y\n"),
		0);
	assert_int_equal(t.info.layer_count, COUNT(rows));
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(t.info.layers[i].overlay, rows[i].overlay);
		assert_string_equal(t.info.layers[i].path, rows[i].path);
	}
	arena_free(&t.arena);
}

static void test_damage(void **state)
{
	static const char *const texts[] = {
		"26 1 254:0 / / rw,relatime - ext4 /dev/vda rw", /* cut */
		"\n",
		ROOT "\n",
		"26\n",
		"26 1 254:0 / /\n",
		"26 1 254:0 / / rw,relatime\n",
		"26 1 254:0 / / rw,relatime -\n",
		"26 1 254:0 / / rw,relatime - ext4\n",
		"26 1 254:0 / / rw,relatime ext4 /dev/vda rw\n",
		"26 1 254 / / rw - ext4 /dev/vda rw\n",
		"26 1 254:0:1 / / rw - ext4 /dev/vda rw\n",
		"26 1 :0 / / rw - ext4 /dev/vda rw\n",
		"26 x 254:0 / / rw - ext4 /dev/vda rw\n",
		"-26 1 254:0 / / rw - ext4 /dev/vda rw\n",
		"99999999999 1 254:0 / / rw - ext4 /dev/vda rw\n",
		"26 1 254:0 / home rw - ext4 /dev/vda rw\n",
		"26 1 254:0 / /a\\ rw - ext4 /dev/vda rw\n",
		"26 1 254:0 / /a\\04 rw - ext4 /dev/vda rw\n",
		"26 1 254:0 / /a\\049 rw - ext4 /dev/vda rw\n",
		"26 1 254:0 / /a\\400 rw - ext4 /dev/vda rw\n",
		"26 1 254:0 / /a\\000b rw - ext4 /dev/vda rw\n",
		"26 1 254:0 /a\\x / rw - ext4 /dev/vda rw\n",
		"26 1 0:3 / /m rw - overlay overlay rw,lowerdir=/a\\9\n",
	};
	char nul[] = ROOT;
	struct table t;

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		if (parse(&t, texts[i]) != -EBADMSG)
			fail_msg("taken for whole: %s", texts[i]);
		arena_free(&t.arena);
	}
	nul[12] = '\0';
	assert_int_equal(arena_init(&t.arena, 1 << 20), 0);
	assert_int_equal(mountinfo_parse(&t.info, &t.arena, nul, sizeof(nul) - 1), -EBADMSG);
	arena_free(&t.arena);
}

static void test_no_room(void **state)
{
	char text[] = ROOT ROOT;
	struct arena small;
	struct mountinfo info;

	(void)state;
	assert_int_equal(arena_init(&small, 256), 0);
	assert_int_equal(mountinfo_parse(&info, &small, text, sizeof(text) - 1), -ENOMEM);
	arena_free(&small);
}

static void test_many_and_long(void **state)
{
	enum { MOUNTS = 20000, LONG = 60000, BYTES = MOUNTS * 96 + LONG * 2 };
	struct table t;
	char *text = calloc(1, BYTES), *path = calloc(1, LONG + 2);
	size_t at;

	(void)state;
	assert_non_null(text);
	assert_non_null(path);
	memset(path, 'x', LONG);
	path[0] = '/';
	at = (size_t)snprintf(text, BYTES, ROOT "7 26 0:7 %s %s rw - tmpfs x rw\n", path, path);
	for (unsigned i = 0; i < MOUNTS; i++)
		at += (size_t)snprintf(text + at, BYTES - at,
			"%u 26 254:0 /srv/%u /srv/%u rw - ext4 /dev/vda rw\n", i + 100, i, i);
	assert_true(at < BYTES - 1);
	assert_int_equal(parse(&t, text), 0);
	assert_int_equal(t.info.count, MOUNTS + 2);
	assert_int_equal(id_at(&t, path), 7);
	assert_int_equal(id_at(&t, "/srv/19999/x"), 20099);
	assert_int_equal(id_at(&t, "/srv/20000/x"), 26);
	arena_free(&t.arena);
	free(path);
	free(text);
}

static void test_heads(void **state)
{
	static const struct {
		const char *dir, *path;
		bool may;
	} rows[] = {
		{ "/", "/home", true },
		{ "/home", "/home/me", true },
		{ "/home", "/homely", true }, /* not sure */
		{ "/home/me", "/home", false },
		{ "/home/me/a", "/home/mr/a", false },
		{ "/home/me/a", "/home/me/b", true },
		{ "/srv", "/home", false },
		{ "/\xff", "/\xff/x", true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (mountinfo_may_lead(mountinfo_head(rows[i].dir),
			    mountinfo_head(rows[i].path)) != rows[i].may)
			fail_msg("%s, %s", rows[i].dir, rows[i].path);
}

static void test_own(void **state)
{
	struct table t;

	(void)state;
	assert_int_equal(arena_init(&t.arena, 64 << 20), 0);
	assert_int_equal(mountinfo_read(&t.info, &t.arena), 0);
	assert_true(t.info.count > 0);
	assert_non_null(mountinfo_find(&t.info, "/proc"));
	assert_true(mountinfo_find(&t.info, "/proc")->is_proc);
	arena_free(&t.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_roots),
		cmocka_unit_test(test_circles),
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_many_and_long),
		cmocka_unit_test(test_heads),
		cmocka_unit_test(test_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

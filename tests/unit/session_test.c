/*
 * session_test.c - session_sweep() and record.c: what a sweep takes for dead, what it leaves alone, and what
 * happens where a session begins or ends between two calls of it.
 *
 * Runs in: a test program, as root and as an ordinary user.
 */
#include "tree_fixture.h"

#include <stdio.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "base/error.h"
#include "host/session/record.h"
#include "host/session/session_sweep.h"

#define ID "aaaaaaaaaaaaaaaaaaaa"
#define NAME "carrel-" ID
#define OTHER "carrel-bbbbbbbbbbbbbbbbbbbb"

static struct {
	int records, base;
	const char *
		ends; /* a record removed before the next lock is taken, as by its session; or NULL */
	unsigned told;
} world;

/* In place of the C library's, for record.c: between its look at the record and its lock. */
int flock(int fd, int operation)
{
	if (world.ends) {
		autofd int record =
			fd_open_at(world.records, world.ends, O_RDONLY | O_DIRECTORY, 0);
		(void)unlinkat(record, "where", 0);
		(void)unlinkat(record, "inode", 0);
		assert_int_equal(unlinkat(world.records, world.ends, AT_REMOVEDIR), 0);
	}
	world.ends = NULL;
	return (int)syscall(SYS_flock, fd, operation);
}

static void tell(void *context, const char *name)
{
	(void)context;
	assert_string_equal(name, NAME);
	world.told++;
}

static struct session_sweep sweep_in(const char *base, bool dry_run)
{
	const struct session_sweep_how how = {
		.flags = dry_run ? SWEEP_DRY_RUN : 0, .base = base, .each = tell
	};
	struct session_sweep found;
	struct error e = { 0 };

	world.told = 0;
	assert_int_equal(session_sweep(world.records, &how, &found, &e), 0);
	assert_int_equal(found.removed, world.told);
	assert_int_equal(found.failed ? ERROR_TEARDOWN : ERROR_NONE, e.code);
	assert_null(world.ends); /* a lock was asked for: it had been seen */
	return found;
}

static struct session_sweep sweep(bool dry_run)
{
	return sweep_in(NULL, dry_run);
}

static void set_up(struct tree *t)
{
	assert_int_equal(mkdirat(t->fd, "sessions", 0700), 0);
	assert_int_equal(mkdirat(t->fd, "base", 0700), 0);
	world.records = fd_open_at(t->fd, "sessions", O_RDONLY | O_DIRECTORY, 0);
	world.base = fd_open_at(t->fd, "base", O_RDONLY | O_DIRECTORY, 0);
	assert_true(world.records >= 0 && world.base >= 0);
}

static void tear_down(void)
{
	fd_close(&world.records);
	fd_close(&world.base);
}

/* A session: its record, whose lock is returned, and the directory @name with a file in it. */
static int make(const struct tree *t, const char *name)
{
	char path[4096];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/base/%s", t->path, name);
	int record = record_make(world.records, ID, path);
	assert_true(record >= 0);
	assert_int_equal(mkdirat(world.base, name, 0700), 0);
	assert_int_equal(fstatat(world.base, name, &st, 0), 0);
	assert_int_equal(record_note_inode(record, st.st_dev, st.st_ino), 0);
	autofd int dir = fd_open_at(world.base, name, O_RDONLY | O_DIRECTORY, 0);
	autofd int file = fd_open_at(dir, "file", O_WRONLY | O_CREAT, 0600);
	assert_true(file >= 0);
	return record;
}

static void make_dead(const struct tree *t)
{
	int record = make(t, NAME);

	fd_close(&record);
}

static bool is_there(int at, const char *name)
{
	return faccessat(at, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The control arm of those below. */
static void test_dead(void **state)
{
	set_up(*state);
	make_dead(*state);
	assert_true(session_sweep_needed(world.records, "bbbbbbbbbbbbbbbbbbbb"));
	assert_false(session_sweep_needed(world.records, ID));
	assert_int_equal(sweep(true).removed, 1);
	assert_true(is_there(world.base, NAME));
	assert_int_equal(sweep(false).removed, 1);
	assert_false(is_there(world.base, NAME));
	assert_false(is_there(world.records, ID));
	assert_false(session_sweep_needed(world.records, "bbbbbbbbbbbbbbbbbbbb"));
	tear_down();
}

static void test_live(void **state)
{
	set_up(*state);
	int held = make(*state, NAME);
	assert_false(session_sweep_needed(world.records, "bbbbbbbbbbbbbbbbbbbb"));
	struct session_sweep found = sweep(false);
	assert_int_equal(found.removed, 0);
	assert_int_equal(found.live, 1);
	assert_true(is_there(world.base, NAME));
	fd_close(&held);
	tear_down();
}

/* What has no record is nobody's, whatever it is called, and whoever owns it. */
static void test_no_record(void **state)
{
	set_up(*state);
	assert_int_equal(mkdirat(world.base, NAME, 0700), 0);
	assert_int_equal(sweep(false).removed, 0);
	assert_true(is_there(world.base, NAME));
	tear_down();
}

/* Another directory at the path of the dead session's is not the session's. */
static void test_replaced(void **state)
{
	set_up(*state);
	make_dead(*state);
	assert_int_equal(renameat(world.base, NAME, world.base, OTHER), 0);
	assert_int_equal(mkdirat(world.base, NAME, 0700), 0);
	assert_int_equal(sweep(false).removed, 1);
	assert_true(is_there(world.base, NAME));
	assert_true(is_there(world.base, OTHER));
	assert_false(is_there(world.records, ID));
	tear_down();
}

/* A link in its place, or in the place of the base, leads nowhere. */
static void test_link(void **state)
{
	struct tree *t = *state;

	set_up(t);
	make_dead(t);
	assert_int_equal(renameat(t->fd, "base", t->fd, "moved"), 0);
	assert_int_equal(symlinkat("moved", t->fd, "base"), 0);
	assert_int_equal(sweep(false).removed, 1);
	assert_true(is_there(world.base, NAME));
	tear_down();
}

/* Killed before anything was put into the directory: an empty one goes, another's tree stays. */
static void test_unmade(void **state)
{
	struct tree *t = *state;
	char path[4096];

	set_up(t);
	(void)snprintf(path, sizeof(path), "%s/base/" NAME, t->path);
	for (int full = 0; full < 2; full++) {
		int record = record_make(world.records, ID, path);

		assert_true(record >= 0);
		fd_close(&record);
		assert_int_equal(mkdirat(world.base, NAME, 0700), 0);
		autofd int dir = fd_open_at(world.base, NAME, O_RDONLY | O_DIRECTORY, 0);
		if (full)
			assert_int_equal(mkdirat(dir, "theirs", 0700), 0);
		assert_int_equal(sweep(false).removed, 1);
		assert_int_equal(is_there(world.base, NAME), full);
		assert_false(is_there(world.records, ID));
	}
	/* Before it had a path, and without a directory. */
	assert_int_equal(mkdirat(world.records, ID, 0700), 0);
	assert_int_equal(mkdirat(world.records, ID ".3", 0700), 0);
	assert_int_equal(mkdirat(world.records, ".3", 0700), 0);
	assert_int_equal(sweep(false).removed, 0);
	assert_false(is_there(world.records, ID));
	assert_false(is_there(world.records, ID ".3"));
	assert_true(is_there(world.records, ".3"));
	tear_down();
}

static void keep(const char *text)
{
	autofd int record = fd_open_at(world.records, ID, O_RDONLY | O_DIRECTORY, 0);
	autofd int fd = fd_open_at(record, "keep", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

/* Kept until its time is over, or until somebody removed it. */
static void test_kept(void **state)
{
	static const char *const kept[] = { "0\n", "99999999999\n", "", "what" };

	set_up(*state);
	make_dead(*state);
	for (size_t i = 1; i < sizeof(kept) / sizeof(*kept); i++) {
		keep(kept[i]);
		assert_int_equal(sweep(false).kept, 1);
	}
	keep("1\n");
	assert_int_equal(sweep(false).removed, 1);
	make_dead(*state);
	keep(kept[1]);
	assert_int_equal(sweep(false).kept, 1);
	assert_int_equal(renameat(world.base, NAME, world.base, OTHER), 0);
	assert_int_equal(sweep(false).removed, 1);
	tear_down();
}

/* Only what lies in the base that was named. */
static void test_base(void **state)
{
	struct tree *t = *state;
	char path[4096];

	set_up(t);
	make_dead(t);
	assert_int_equal(sweep_in(t->path, false).removed, 0);
	assert_true(is_there(world.base, NAME));
	(void)snprintf(path, sizeof(path), "%s/base/../base", t->path);
	assert_int_equal(sweep_in(path, false).removed, 1);
	tear_down();
}

/* A record that nobody ever writes is a failure, and nothing is touched. */
static void test_damaged(void **state)
{
	static const char *const where[] = { ("base/" NAME), ("/" ID), "/carrel-",
		"/etc/passwd", "//" };
	static const char *const inode[] = { "1", "1:", ":1", "1:1x", "-1:1", "1:2:3", "" };

	set_up(*state);
	for (size_t i = 0; i < sizeof(where) / sizeof(*where); i++) {
		int record = record_make(world.records, ID, where[i]);

		assert_true(record >= 0);
		fd_close(&record);
		assert_int_equal(sweep(false).failed, 1);
		record = fd_open_at(world.records, ID, O_RDONLY | O_DIRECTORY, 0);
		assert_int_equal(record_remove(world.records, ID, record), 0);
		fd_close(&record);
	}
	for (size_t i = 0; inode[i][0]; i++) {
		int record = record_make(world.records, ID, "/base/" NAME);

		assert_int_equal(symlinkat(inode[i], record, "inode"), 0);
		fd_close(&record);
		assert_int_equal(sweep(false).failed, 1);
		record = fd_open_at(world.records, ID, O_RDONLY | O_DIRECTORY, 0);
		assert_int_equal(record_remove(world.records, ID, record), 0);
		fd_close(&record);
	}
	for (size_t i = 0; inode[i][0]; i++) {
		int record = record_make(world.records, ID, "/base/" NAME);
		char text[64];
		int n = snprintf(text, sizeof(text), "%s /base/" NAME, inode[i]);

		if (fsetxattr(record, "user.carrel.where", text, (size_t)n, 0) < 0)
			break; /* a file system without them */
		fd_close(&record);
		assert_int_equal(sweep(false).failed, 1);
		record = fd_open_at(world.records, ID, O_RDONLY | O_DIRECTORY, 0);
		assert_int_equal(record_remove(world.records, ID, record), 0);
		fd_close(&record);
	}
	/* A link or a file in the place of a record is none. */
	assert_int_equal(symlinkat("/tmp", world.records, ID), 0);
	assert_int_equal(sweep(false).failed, 1);
	tear_down();
}

/* A path too long for an attribute is a link; both are read. */
static void test_long_path(void **state)
{
	static struct record_where where;
	char path[400] = "/";

	set_up(*state);
	for (size_t length = 2; length < sizeof(path) - sizeof("/" NAME); length += 7) {
		memset(path + 1, 'x', length - 1);
		(void)snprintf(path + length, sizeof(path) - length, "/" NAME);
		int record = record_make(world.records, ID, path);
		assert_true(record >= 0);
		assert_true(length < 60 || is_there(record, "where"));
		assert_int_equal(record_note_inode(record, 12, 345), 0);
		assert_int_equal(record_read_where(record, &where), 0);
		path[length] = '\0';
		assert_string_equal(where.base, path);
		assert_string_equal(where.name, NAME);
		assert_true(where.made);
		assert_int_equal(where.dev, 12);
		assert_int_equal(where.ino, 345);
		assert_int_equal(record_remove(world.records, ID, record), 0);
		assert_false(is_there(world.records, ID));
		fd_close(&record);
	}
	tear_down();
}

static int make_and_leave(const char *file)
{
	struct stat st;
	int record = record_make(world.records, ID, "/base/" NAME);

	assert_true(record >= 0);
	assert_int_equal(fstat(record, &st), 0);
	assert_int_equal(record_note_inode(record, 12, 345), 0);
	if (file)
		assert_int_equal(mkdirat(record, file, 0700), 0);
	assert_int_equal(record_leave(world.records, ID, record), 0);
	assert_false(is_there(world.records, ID));
	fd_close(&record);
	return (int)st.st_ino;
}

/* The directory of a session that ended serves the next one, with nothing in it that the first one wrote. */
static void test_spare(void **state)
{
	static struct record_where where;

	set_up(*state);
	int first = make_and_leave(NULL);
	assert_true(is_there(world.records, ".spare"));
	assert_int_equal(make_and_leave(NULL), first);
	int one = record_make(world.records, ID, "/base/" NAME);
	assert_false(is_there(world.records, ".spare"));
	assert_int_equal(record_read_where(one, &where), 0);
	assert_false(where.made);
	assert_int_equal(record_leave(world.records, ID, one), 0);
	/* Its lock is still held: the next session makes a directory of its own. */
	int two = record_make(world.records, ID, "/base/" NAME);
	assert_true(two >= 0);
	fd_close(&one);
	assert_int_equal(record_leave(world.records, ID, two), 0);
	assert_false(is_there(world.records, ID ".0"));
	fd_close(&two);
	/* What has anything else in it is removed as ever. */
	assert_int_equal(unlinkat(world.records, ".spare", AT_REMOVEDIR), 0);
	(void)make_and_leave("more");
	assert_false(is_there(world.records, ".spare"));
	tear_down();
}

/* It is no news, and nobody's but the session's own: neither removed nor live, nor a failure. */
static void test_ended_meanwhile(void **state)
{
	set_up(*state);
	for (int dry_run = 0; dry_run < 2; dry_run++) {
		char path[64] = "/" NAME;
		int record = record_make(world.records, ID, path);

		fd_close(&record);
		world.ends = ID;
		struct session_sweep found = sweep(dry_run != 0);
		assert_int_equal(found.removed, 0);
		assert_int_equal(found.live, 0);
		assert_int_equal(found.kept, 0);
	}
	tear_down();
}

/* A sweep that takes a new record for one that was given up: its maker makes it once more. */
static void test_made_again(void **state)
{
	static struct record_where where;

	set_up(*state);
	world.ends = ID ".0";
	int record = record_make(world.records, ID, "/" NAME);
	assert_true(record >= 0);
	assert_null(world.ends);
	assert_int_equal(record_read_where(record, &where), 0);
	assert_string_equal(where.base, "/");
	assert_string_equal(where.name, NAME);
	assert_true(is_there(world.records, ID));
	fd_close(&record);
	tear_down();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_dead),
		TEST(test_live),
		TEST(test_no_record),
		TEST(test_replaced),
		TEST(test_link),
		TEST(test_unmade),
		TEST(test_kept),
		TEST(test_base),
		TEST(test_damaged),
		TEST(test_long_path),
		TEST(test_spare),
		TEST(test_ended_meanwhile),
		TEST(test_made_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

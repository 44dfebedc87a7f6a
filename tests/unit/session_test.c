/*
 * session_test.c - session_sweep(): what a sweep takes for dead, also where the session ends by itself between
 * the look at its directory and the lock on it.
 *
 * Runs in: a test program, as root and as an ordinary user.
 */
#include "tree_fixture.h"

#include <sys/file.h>
#include <sys/syscall.h>

#include "base/error.h"
#include "host/session.h"

#define NAME "carrel-aaaaaaaaaaaaaaaaaaaa"

static struct {
	int base; /* where @ends lies */
	const char *
		ends; /* removed before the next lock is taken, as by its own session; or NULL */
	unsigned told;
} world;

/* In place of the C library's, for session.c: between its look at the directory and its lock. */
int flock(int fd, int operation)
{
	if (world.ends)
		assert_int_equal(unlinkat(world.base, world.ends, AT_REMOVEDIR), 0);
	world.ends = NULL;
	return (int)syscall(SYS_flock, fd, operation);
}

static void tell(void *context, const char *name)
{
	(void)context;
	assert_string_equal(name, NAME);
	world.told++;
}

static struct session_sweep sweep(const struct tree *t, bool dry_run)
{
	struct session_sweep found;
	struct error e = { 0 };

	world.told = 0;
	assert_int_equal(
		session_sweep(t->path, dry_run ? SWEEP_DRY_RUN : 0, tell, NULL, &found, &e), 0);
	assert_int_equal(e.code, ERROR_NONE);
	assert_int_equal(found.removed, world.told);
	assert_int_equal(found.failed, 0);
	assert_null(world.ends); /* a lock was asked for: it had been seen */
	return found;
}

static void make(struct tree *t, const char *name)
{
	assert_int_equal(mkdirat(t->fd, name, 0700), 0);
	world.base = t->fd;
}

static bool is_there(const struct tree *t, const char *name)
{
	return faccessat(t->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The control arm of those below. */
static void test_dead(void **state)
{
	struct tree *t = *state;

	make(t, NAME);
	assert_int_equal(sweep(t, true).removed, 1);
	assert_true(is_there(t, NAME));
	assert_int_equal(sweep(t, false).removed, 1);
	assert_false(is_there(t, NAME));
}

static void test_live(void **state)
{
	struct tree *t = *state;

	make(t, NAME);
	autofd int held = fd_open_at(t->fd, NAME, O_RDONLY | O_DIRECTORY, 0);
	assert_int_equal(flock(held, LOCK_EX | LOCK_NB), 0);
	struct session_sweep found = sweep(t, false);
	assert_int_equal(found.removed, 0);
	assert_int_equal(found.live, 1);
	assert_true(is_there(t, NAME));
}

/* It is no news, and nobody's but the session's own: neither removed nor live, nor a failure. */
static void test_ended_meanwhile(void **state)
{
	struct tree *t = *state;

	for (int dry_run = 0; dry_run < 2; dry_run++) {
		make(t, NAME);
		world.ends = NAME;
		struct session_sweep found = sweep(t, dry_run != 0);
		assert_int_equal(found.removed, 0);
		assert_int_equal(found.live, 0);
		assert_int_equal(found.kept, 0);
	}
}

/* Nor is one whose maker removed it himself. */
static void test_unmade_meanwhile(void **state)
{
	struct tree *t = *state;

	make(t, "." NAME);
	world.ends = "." NAME;
	assert_int_equal(sweep(t, false).removed, 0);
	assert_false(is_there(t, "." NAME));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_dead, tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(test_live, tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(
			test_ended_meanwhile, tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(
			test_unmade_meanwhile, tree_setup, tree_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

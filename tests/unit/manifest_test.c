/*
 * manifest_test.c - manifest_settle(): which notes of dead sessions are taken for one.
 *
 * Runs in: a test program, as root and as an ordinary user.
 */
#include "tree_fixture.h"

#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "host/process/process_stat.h"
#include "host/session/manifest.h"

#define ID "aaaaaaaaaaaaaaaaaaaa"
#define BEGUN \
	"begun\0" \
	"1\0" \
	"0\0" \
	"1\0" \
	"1\0"

static int settle(struct tree *t, const char *note, size_t size)
{
	struct error e = { 0 };
	autofd int fd = fd_open_at(t->fd, "protected", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, note, size), 0);
	return manifest_settle(t->fd, ID, &e);
}

static void test_strict(void **state)
{
	struct tree *t = *state;
	char deep[5000] = "absent\0/";
	static const struct {
		const char *note;
		size_t size;
		int result;
	} cases[] = {
#define CASE(text, result) { text, sizeof(text) - 1, result }
		/* The control arms: notes, and torn ones. */
		CASE("", 0),
		CASE("absent\0/gone\0/gone/x\0"
		     "0\0",
			0),
		CASE("absent\0/gone\0/gone/x\0", 0),
		CASE(BEGUN "/gone\0absent\0/gone\0/gone/x\0"
			   "5\0protect\0/gone/y\0",
			0),
		CASE(BEGUN "/gone\0link\0/gone/y\0a/../b\0watch\0/gone/z\0write\0/w\0", 0),
		CASE(BEGUN "/gone\0link\0/gone/y\0a/../", 0),
		CASE("init\0"
		     "1073741824\0"
		     "7\0absent\0/gone\0/gone/x\0"
		     "0\0",
			0), /* over */
		CASE("init\0"
		     "1073741824\0",
			0),
		CASE("what", 0),
		/* None. */
		CASE("what\0", -EBADMSG),
		CASE("\0", -EBADMSG),
		CASE("absent\0gone\0gone/x\0"
		     "0\0",
			-EBADMSG),
		CASE("absent\0/gone\0/gone/../x\0"
		     "0\0",
			-EBADMSG),
		CASE("absent\0/gone\0/gone//x\0"
		     "0\0",
			-EBADMSG),
		CASE("absent\0/gone\0/other/x\0"
		     "0\0",
			-EBADMSG),
		CASE("absent\0/gone\0/gone\0"
		     "0\0",
			-EBADMSG),
		CASE("absent\0/gone\0/gone/x\0"
		     "99\0",
			-EBADMSG),
		CASE("absent\0/gone\0/gone/x\0"
		     "-1\0",
			-EBADMSG),
		CASE("absent\0/gone\0/gone/x\0"
		     "\0",
			-EBADMSG),
		CASE("init\0"
		     "0\0"
		     "7\0",
			-EBADMSG),
		CASE("init\0"
		     "4294967297\0"
		     "7\0",
			-EBADMSG),
		CASE("init\0"
		     "-1\0"
		     "7\0",
			-EBADMSG),
		CASE("init\0"
		     "7\0x\0",
			-EBADMSG),
		CASE("init\0"
		     "7\0"
		     "7\0init\0"
		     "7\0"
		     "7\0",
			-EBADMSG),
		CASE(BEGUN "/gone\0init\0"
			   "7\0"
			   "7\0",
			-EBADMSG),
		CASE("protect\0/gone/x\0", -EBADMSG), /* not begun */
		CASE(BEGUN "/gone\0" BEGUN "/gone\0", -EBADMSG),
		CASE(BEGUN "gone\0", -EBADMSG),
		CASE("begun\0"
		     "1\0"
		     "1000000000\0"
		     "1\0"
		     "1\0/gone\0",
			-EBADMSG),
		CASE("begun\0"
		     "x\0"
		     "0\0"
		     "1\0"
		     "1\0/gone\0",
			-EBADMSG),
		CASE(BEGUN "/gone\0protect\0x\0", -EBADMSG),
		CASE(BEGUN "/gone\0quarantine\0/gone/x\0", -EBADMSG),
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int result = settle(t, cases[i].note, cases[i].size);

		if (result != cases[i].result)
			fail_msg("case %zu: %d", i, result);
	}
	for (size_t i = 8; i < sizeof(deep) - 1; i++)
		deep[i] = 'a';
	assert_int_equal(settle(t, deep, sizeof(deep)), -EBADMSG);
}

/* Whoever still lives could put back what is moved: nothing is done then, and that is no error. */
static void test_alive(void **state)
{
	struct tree *t = *state;
	char note[256];
	size_t size = 0;
	autofd int fd = openat(t->fd, "stands", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	/* The control arm: another process that had this number is over. */
	for (int other = 0; other <= 1; other++) {
		size = (size_t)snprintf(note, sizeof(note),
			"init%c%d%c%lld%cabsent%c%s%c%s/stands%c0%c", 0, (int)getpid(), 0,
			(long long)process_started(getpid()) + other, 0, 0, t->path, 0, t->path,
			0, 0);
		assert_true(size < sizeof(note));
		assert_int_equal(settle(t, note, size), other ? 0 : -EBUSY);
		assert_int_equal(faccessat(t->fd, "stands", F_OK, 0), other ? -1 : 0);
	}
}

/* No note is followed elsewhere, and one that is too long is none. */
static void test_file(void **state)
{
	struct tree *t = *state;
	struct error e = { 0 };

	assert_int_equal(manifest_settle(t->fd, ID, &e), 0);
	assert_int_equal(symlinkat("/dev/null", t->fd, "protected"), 0);
	assert_int_equal(manifest_settle(t->fd, ID, &e), -ELOOP);
	assert_int_equal(unlinkat(t->fd, "protected", 0), 0);
	assert_int_equal(settle(t, "", 0), 0);
	autofd int fd = fd_open_at(t->fd, "protected", O_WRONLY, 0);

	assert_int_equal(ftruncate(fd, (4 << 20) + 1), 0);
	e.code = ERROR_NONE;
	assert_int_equal(manifest_settle(t->fd, ID, &e), -EFBIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_strict, tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(test_alive, tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(test_file, tree_setup, tree_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

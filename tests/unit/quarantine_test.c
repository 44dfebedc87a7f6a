/*
 * quarantine_test.c - quarantine_check(): what appeared at protected paths is moved away, by rename
 * and by copy, and nothing else is touched.
 *
 * Runs in: a test program, as root and as an ordinary user. Each test runs twice: with the
 * workspace and the scratch base on one file system, and on two.
 */
#include "tree_fixture.h"

#include <limits.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/arena.h"
#include "host/quarantine.h"

#define SESSION "carrel-0123"
#define DIRECTORY SESSION ".quarantine"

struct fixture {
	struct tree work; /* the workspace, below /tmp */
	struct tree base; /* the scratch base */
	bool crosses;     /* they are on two file systems */
	struct arena arena;
	struct quarantine_result result;
	struct error error;
};

static struct fixture *fixture_make(const char *base)
{
	static struct fixture f;

	f = (struct fixture){ .crosses = false };
	tree_make(&f.work, "/tmp");
	tree_make(&f.base, base);
	f.crosses = stat_of(f.work.fd, ".").st_dev != stat_of(f.base.fd, ".").st_dev;
	assert_int_equal(arena_init(&f.arena, 1 << 20), 0);
	make_dir(f.base.fd, SESSION);
	return &f;
}

static int setup_same(void **state)
{
	*state = fixture_make("/tmp");
	return 0;
}

static int setup_cross(void **state)
{
	*state = fixture_make("/dev/shm");
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	arena_free(&f->arena);
	tree_drop(&f->work);
	tree_drop(&f->base);
	return 0;
}

static struct quarantine_item item_of(const struct fixture *f, const char *path, size_t prefix)
{
	return (struct quarantine_item){
		.root_fd = f->work.fd,
		.root = f->work.path,
		.path = path,
		.existing_prefix_len = prefix,
	};
}

static int check(struct fixture *f, const struct quarantine_item *items, size_t count)
{
	f->error = (struct error){ .code = ERROR_NONE };
	f->result = (struct quarantine_result){ .arena = &f->arena, .session_fd = -1 };
	return quarantine_check(items, count, f->base.fd, SESSION, &f->result, &f->error);
}

/* check_one - one item whose check succeeds; @moved: whether it is to be found in quarantine. */
static const struct quarantine_move *check_one(
	struct fixture *f, const char *path, size_t prefix, bool moved)
{
	static struct quarantine_item item;

	item = item_of(f, path, prefix);
	if (check(f, &item, 1) < 0)
		fail_msg("%s: %s: %s", f->error.what, f->error.on, strerror(f->error.errnum));
	assert_int_equal(f->result.failed, 0);
	assert_int_equal(f->result.count, moved);
	if (!moved)
		return NULL;
	const struct quarantine_move *m = f->result.moves;
	assert_int_equal(m->errnum, 0);
	assert_ptr_equal(m->item, &item);
	assert_false(m->armed);
	assert_int_equal(m->copied, f->crosses);
	assert_string_equal(f->result.directory, DIRECTORY);
	assert_int_equal(stat_of(f->base.fd, DIRECTORY).st_mode & 07777, 0700);
	assert_false(exists(f->work.fd, m->from));
	return m;
}

static unsigned mode_of(int at, const char *name)
{
	return stat_of(at, name).st_mode & 07777;
}

/* --- nothing there --------------------------------------------------------------------------- */

static void test_nothing(void **state)
{
	struct fixture *f = *state;
	const struct quarantine_item items[] = {
		item_of(f, ".git/hooks", 4), item_of(f, ".envrc", 0),
		item_of(f, ".vscode/tasks.json", 0),
		item_of(f, "gone/config", 4), /* what existed is no longer there */
	};

	make_dir(f->work.fd, ".git");
	assert_int_equal(check(f, items, 4), 0);
	assert_int_equal(f->result.count, 0);
	assert_null(f->result.directory);
	assert_false(exists(f->base.fd, DIRECTORY));
	assert_int_equal(count_entries(f->work.fd, "."), 1);
}

/* --- what appears ---------------------------------------------------------------------------- */

static void test_file(void **state)
{
	struct fixture *f = *state;

	make_file(f->work.fd, ".envrc", "evil", 06755);
	const struct quarantine_move *m = check_one(f, ".envrc", 0, true);
	assert_string_equal(m->to, DIRECTORY "/.envrc");
	assert_text(f->base.fd, m->to, "evil");
	assert_int_equal(mode_of(f->base.fd, m->to), 0600);
	(void)check_one(f, ".envrc", 0, false);
}

static void test_directory(void **state)
{
	struct fixture *f = *state;

	make_dir(f->work.fd, ".git");
	make_dir(f->work.fd, ".git/hooks");
	make_dir(f->work.fd, ".git/hooks/sub");
	make_file(f->work.fd, ".git/hooks/pre-commit", "evil", 0777);
	make_file(f->work.fd, ".git/hooks/sub/helper", "too", 0555);
	make_file(f->work.fd, ".git/HEAD", "kept", 0755);
	assert_int_equal(symlinkat("/etc/passwd", f->work.fd, ".git/hooks/link"), 0);
	const struct quarantine_move *m = check_one(f, ".git/hooks", 4, true);
	assert_string_equal(m->to, DIRECTORY "/.git%2Fhooks");
	int fd = open_dir(f->base.fd, m->to);
	assert_text(fd, "pre-commit", "evil");
	assert_int_equal(mode_of(fd, "pre-commit"), 0600);
	assert_text(fd, "sub/helper", "too");
	assert_int_equal(mode_of(fd, "sub/helper"), 0400);
	assert_true(S_ISLNK(stat_of(fd, "link").st_mode));
	assert_int_equal(count_entries(fd, "."), 3);
	assert_int_equal(close(fd), 0);
	/* What is not protected stays as it is. */
	assert_text(f->work.fd, ".git/HEAD", "kept");
	assert_int_equal(mode_of(f->work.fd, ".git/HEAD"), 0755);
}

static void test_link_at_the_path(void **state)
{
	struct fixture *f = *state;

	make_dir(f->work.fd, "elsewhere");
	make_file(f->work.fd, "elsewhere/pre-commit", "x", 0755);
	make_dir(f->work.fd, ".git");
	assert_int_equal(symlinkat("../elsewhere", f->work.fd, ".git/hooks"), 0);
	const struct quarantine_move *m = check_one(f, ".git/hooks", 4, true);
	assert_true(S_ISLNK(stat_of(f->base.fd, m->to).st_mode));
	assert_text(f->work.fd, "elsewhere/pre-commit", "x");
	assert_int_equal(mode_of(f->work.fd, "elsewhere/pre-commit"), 0755);
}

/* git on the host would obey what is behind the link, so the link is what appeared. */
static void test_link_in_the_way(void **state)
{
	struct fixture *f = *state;
	const struct quarantine_item items[] = {
		item_of(f, ".git/hooks", 0),
		item_of(f, ".git/config", 0),
	};

	make_dir(f->work.fd, "elsewhere");
	make_dir(f->work.fd, "elsewhere/hooks");
	make_file(f->work.fd, "elsewhere/hooks/pre-commit", "x", 0755);
	assert_int_equal(symlinkat("elsewhere", f->work.fd, ".git"), 0);
	/* Control: by path, the hook can be reached. */
	assert_true(exists(f->work.fd, ".git/hooks/pre-commit"));
	assert_int_equal(check(f, items, 2), 0);
	assert_int_equal(f->result.count, 1);
	assert_string_equal(f->result.moves[0].from, ".git");
	assert_string_equal(f->result.moves[0].to, DIRECTORY "/.git");
	assert_true(S_ISLNK(stat_of(f->base.fd, DIRECTORY "/.git").st_mode));
	assert_false(exists(f->work.fd, ".git"));
	assert_text(f->work.fd, "elsewhere/hooks/pre-commit", "x");
	assert_int_equal(mode_of(f->work.fd, "elsewhere/hooks/pre-commit"), 0755);
}

static void test_file_in_the_way(void **state)
{
	struct fixture *f = *state;

	make_file(f->work.fd, ".git", "gitdir: /elsewhere", 0600);
	/* It was there before: the user's worktree. Nothing can be below it. */
	(void)check_one(f, ".git/hooks", 4, false);
	assert_text(f->work.fd, ".git", "gitdir: /elsewhere");
	/* It was not: a gitfile that the tools made. */
	const struct quarantine_move *m = check_one(f, ".git/hooks", 0, true);
	assert_string_equal(m->from, ".git");
	assert_text(f->base.fd, m->to, "gitdir: /elsewhere");
}

/* A link inside what existed: the directory was renamed away, and the host would look behind the link. */
static void test_link_in_what_existed(void **state)
{
	struct fixture *f = *state;

	make_dir(f->work.fd, "elsewhere");
	make_file(f->work.fd, "elsewhere/tasks.json", "evil", 0644);
	assert_int_equal(symlinkat("elsewhere", f->work.fd, ".vscode"), 0);
	const struct quarantine_move *m = check_one(f, ".vscode/tasks.json", 7, true);
	assert_string_equal(m->from, ".vscode");
	assert_true(S_ISLNK(stat_of(f->base.fd, m->to).st_mode));
	assert_text(f->work.fd, "elsewhere/tasks.json", "evil");
}

/* --- what must not be touched ------------------------------------------------------------------ */

/* The mode belongs to the other name as well: quarantine gets a copy of its own. */
static void test_hard_links(void **state)
{
	struct fixture *f = *state;

	make_file(f->work.fd, "script", "users", 0755);
	make_dir(f->work.fd, ".git");
	make_dir(f->work.fd, ".git/hooks");
	assert_int_equal(linkat(f->work.fd, "script", f->work.fd, ".envrc", 0), 0);
	assert_int_equal(
		linkat(f->work.fd, "script", f->work.fd, ".git/hooks/post-merge", 0), 0);
	const struct quarantine_move *m = check_one(f, ".envrc", 0, true);
	assert_text(f->base.fd, m->to, "users");
	assert_int_equal(mode_of(f->base.fd, m->to), 0600);
	m = check_one(f, ".git/hooks", 4, true);
	assert_text(f->base.fd, DIRECTORY "/.git%2Fhooks/post-merge", "users");
	assert_int_equal(mode_of(f->base.fd, DIRECTORY "/.git%2Fhooks/post-merge"), 0600);
	assert_int_equal(count_entries(f->base.fd, m->to), 1);
	assert_int_equal(mode_of(f->work.fd, "script"), 0755);
	assert_int_equal(stat_of(f->work.fd, "script").st_nlink, 1);
	assert_text(f->work.fd, "script", "users");
}

/* Directories that hide what is in them are opened for the check and closed again. */
static void test_locked_directories(void **state)
{
	struct fixture *f = *state;

	make_dir(f->work.fd, "a");
	make_dir(f->work.fd, "a/b");
	make_dir(f->work.fd, "a/b/hooks");
	make_file(f->work.fd, "a/b/hooks/hook", "evil", 0);
	assert_int_equal(fchmodat(f->work.fd, "a/b/hooks", 0, 0), 0);
	assert_int_equal(fchmodat(f->work.fd, "a/b", 0, 0), 0);
	assert_int_equal(fchmodat(f->work.fd, "a", 0400, 0), 0);
	const struct quarantine_item item = item_of(f, "a/b/hooks", 1);
	assert_int_equal(check(f, &item, 1), 0);
	assert_int_equal(f->result.count, 1);
	assert_int_equal(mode_of(f->work.fd, "a"), 0400);
	assert_int_equal(fchmodat(f->work.fd, "a", 0700, 0), 0);
	assert_int_equal(mode_of(f->work.fd, "a/b"), 0);
	assert_int_equal(fchmodat(f->work.fd, "a/b", 0700, 0), 0);
	assert_false(exists(f->work.fd, "a/b/hooks"));
	assert_true(exists(f->base.fd, DIRECTORY "/a%2Fb%2Fhooks/hook"));
}

/* A directory that may be searched but not written. */
static void test_read_only_parent(void **state)
{
	struct fixture *f = *state;

	make_dir(f->work.fd, ".git");
	make_dir(f->work.fd, ".git/hooks");
	make_file(f->work.fd, ".git/hooks/hook", "evil", 0700);
	assert_int_equal(fchmodat(f->work.fd, ".git/hooks", 0500, 0), 0);
	assert_int_equal(fchmodat(f->work.fd, ".git", 0500, 0), 0);
	const struct quarantine_item item = item_of(f, ".git/hooks", 0);
	int status = check(f, &item, 1);
	unsigned mode = mode_of(f->work.fd, ".git");
	assert_int_equal(fchmodat(f->work.fd, ".git", 0700, 0), 0);
	assert_int_equal(status, 0);
	assert_int_equal(mode, 0500);
	assert_false(exists(f->work.fd, ".git/hooks"));
	assert_text(f->base.fd, DIRECTORY "/.git%2Fhooks/hook", "evil");
}

/* --- two file systems -------------------------------------------------------------------------- */

static void test_copied_tree(void **state)
{
	struct fixture *f = *state;
	const struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 2000 } };

	make_dir(f->work.fd, "d");
	make_dir(f->work.fd, "d/sub");
	make_file(f->work.fd, "d/sub/old", "x", 0644);
	assert_int_equal(utimensat(f->work.fd, "d/sub/old", times, 0), 0);
	assert_int_equal(symlinkat("../../nowhere", f->work.fd, "d/link"), 0);
	assert_int_equal(mkfifoat(f->work.fd, "d/fifo", 0600), 0);
	int fd = openat(f->work.fd, "d/sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(pwrite(fd, "data", 4, (off_t)1 << 32), 4);
	assert_int_equal(ftruncate(fd, (off_t)1 << 33), 0);
	assert_int_equal(close(fd), 0);

	const struct quarantine_move *m = check_one(f, "d", 0, true);
	assert_int_equal(m->dropped, f->crosses ? 1 : 0);
	fd = open_dir(f->base.fd, m->to);
	assert_int_equal(exists(fd, "fifo"), !f->crosses);
	struct stat st = stat_of(fd, "sparse");
	assert_true(st.st_size == (off_t)1 << 33);
	assert_true(st.st_blocks < 4096);
	char got[5] = "", link[64] = "";
	int sparse = openat(fd, "sparse", O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(sparse, got, 4, (off_t)1 << 32), 4);
	assert_string_equal(got, "data");
	assert_int_equal(close(sparse), 0);
	assert_true(readlinkat(fd, "link", link, sizeof(link) - 1) > 0);
	assert_string_equal(link, "../../nowhere");
	assert_int_equal(stat_of(fd, "sub/old").st_mtim.tv_sec, 2000);
	assert_int_equal(close(fd), 0);
}

/* It stands no more where the host would obey it, and no half copy is left. */
static void assert_set_aside(struct fixture *f, int status)
{
	const struct quarantine_move *m = f->result.moves;

	assert_int_equal(status, 0);
	assert_int_equal(f->result.failed, 0);
	assert_false(exists(f->work.fd, m->from));
	assert_int_equal(m->aside, f->crosses);
	assert_int_equal(m->errnum, 0);
	assert_true(exists(f->crosses ? f->work.fd : f->base.fd, m->to));
	if (f->crosses) {
		assert_true(strncmp(m->to, ".carrel-quarantined-", 20) == 0);
		assert_int_equal(count_entries(f->base.fd, DIRECTORY), 0);
	}
}

/* Too deep to be copied. A rename knows no depth; that the far end kept its modes is said. */
static void test_too_deep(void **state)
{
	struct fixture *f = *state;
	const struct quarantine_item item = item_of(f, ".git/hooks", 4);

	make_dir(f->work.fd, ".git");
	make_chain(f->work.fd, ".git/hooks", 60, 0755);
	make_file(f->work.fd, ".git/hooks/pre-commit", "evil", 0755);
	assert_set_aside(f, check(f, &item, 1));
	assert_true(f->result.moves[0].armed);
	assert_int_equal(count_entries(f->work.fd, ".git"), 0);
}

/* What cannot be read cannot be copied: a mode that belongs to two names is not changed. */
static void test_unreadable(void **state)
{
	struct fixture *f = *state;
	const struct quarantine_item item = item_of(f, ".vscode", 0);

	if (geteuid() == 0)
		return; /* root reads it */
	make_dir(f->work.fd, ".vscode");
	make_file(f->work.fd, ".vscode/tasks.json", "evil", 0644);
	make_file(f->work.fd, ".vscode/z", "", 0);
	assert_int_equal(linkat(f->work.fd, ".vscode/z", f->work.fd, "other", 0), 0);
	assert_set_aside(f, check(f, &item, 1));
}

static void test_fifo(void **state)
{
	struct fixture *f = *state;

	/* Opening it would wait for a writer for ever. */
	assert_int_equal(mkfifoat(f->work.fd, ".envrc", 0600), 0);
	const struct quarantine_move *m = check_one(f, ".envrc", 0, true);
	assert_int_equal(m->dropped, f->crosses ? 1 : 0);
	assert_int_equal(m->to == NULL, f->crosses);
}

/* --- names ------------------------------------------------------------------------------------- */

static void test_same_path_twice(void **state)
{
	struct fixture *f = *state;
	struct quarantine_item items[2];

	make_dir(f->work.fd, "one");
	make_dir(f->work.fd, "two");
	make_file(f->work.fd, "one/.envrc", "first", 0600);
	make_file(f->work.fd, "two/.envrc", "second", 0600);
	items[0] = items[1] = item_of(f, ".envrc", 0);
	items[0].root_fd = open_dir(f->work.fd, "one");
	items[1].root_fd = open_dir(f->work.fd, "two");
	assert_int_equal(check(f, items, 2), 0);
	assert_int_equal(f->result.count, 2);
	assert_string_equal(f->result.moves[0].to, DIRECTORY "/.envrc");
	assert_string_equal(f->result.moves[1].to, DIRECTORY "/.envrc~2");
	assert_text(f->base.fd, DIRECTORY "/.envrc", "first");
	assert_text(f->base.fd, DIRECTORY "/.envrc~2", "second");
	assert_int_equal(close(items[0].root_fd) | close(items[1].root_fd), 0);
}

/* The session's name is known to who made it; somebody else's directory is not used. */
static void test_planted_directory(void **state)
{
	struct fixture *f = *state;
	const struct quarantine_item item = item_of(f, ".envrc", 0);

	for (int link = 0; link < 2; link++) {
		make_file(f->work.fd, ".envrc", "x", 0700);
		make_dir(f->base.fd, link ? "victim" : DIRECTORY);
		if (link)
			assert_int_equal(symlinkat("victim", f->base.fd, DIRECTORY), 0);
		else
			assert_int_equal(fchmodat(f->base.fd, DIRECTORY, 0777, 0), 0);
		assert_int_equal(check(f, &item, 1), 0);
		assert_int_equal(count_entries(f->base.fd, link ? "victim" : DIRECTORY), 0);
		assert_false(exists(f->work.fd, ".envrc"));
		assert_true(f->result.moves[0].aside);
		assert_text(f->work.fd, f->result.moves[0].to, "x");
		if (!link)
			assert_int_equal(unlinkat(f->base.fd, DIRECTORY, AT_REMOVEDIR), 0);
	}
}

static void assert_name(const char *path, const char *name)
{
	char got[256];

	quarantine_name(path, strlen(path), got);
	assert_string_equal(got, name);
}

static void test_names(void **state)
{
	char path[PATH_MAX], one[256], two[256];

	(void)state;
	assert_name(".git/hooks", ".git%2Fhooks");
	assert_name(".git%2Fhooks", ".git%252Fhooks");
	assert_name("a~2", "a%7E2");
	assert_name("a b\n\xff", "a%20b%0A%FF");
	for (size_t length = 1; length < 1000; length++) {
		memset(path, '\xe4', length);
		quarantine_name(path, length, one);
		assert_true(strlen(one) <= 200);
		path[length - 1] = '\xe5';
		quarantine_name(path, length, two);
		assert_string_not_equal(one, two);
	}
	memset(path, 'a', 200);
	quarantine_name(path, 200, one);
	assert_int_equal(strlen(one), 200);
	assert_null(strchr(one, '~'));
	quarantine_name(path, 199, two);
	assert_string_not_equal(one, two);
}

int main(void)
{
#define BOTH(name) \
	{ #name " (one file system)", name, setup_same, teardown, NULL }, \
	{ \
#name " (two file systems)", name, setup_cross, teardown, NULL \
	}
	const struct CMUnitTest tests[] = {
		BOTH(test_nothing),
		BOTH(test_file),
		BOTH(test_directory),
		BOTH(test_link_at_the_path),
		BOTH(test_link_in_the_way),
		BOTH(test_file_in_the_way),
		BOTH(test_link_in_what_existed),
		BOTH(test_hard_links),
		BOTH(test_locked_directories),
		BOTH(test_read_only_parent),
		BOTH(test_copied_tree),
		BOTH(test_too_deep),
		BOTH(test_unreadable),
		BOTH(test_fifo),
		BOTH(test_same_path_twice),
		BOTH(test_planted_directory),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

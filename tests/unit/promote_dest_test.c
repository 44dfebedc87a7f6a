/*
 * promote_dest_test.c - where artifacts may go: the guard, its note for clients, and destinations that
 * tools swap for links while they are opened.
 *
 * Runs in: a test program, as root and as an ordinary user.
 */
#include <signal.h>
#include <time.h>

#include "promote_fixture.h"

#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/arena.h"
#include "host/facts/match.h"
#include "host/promote/promote_dest.h"

enum { ROUNDS = 200, ENOUGH = 10, SECONDS = 120 };

struct place {
	struct tree ws, other, scratch;
	struct arena arena;
	struct promote_root roots[2];
	const char *denied[3];
	struct promote_guard guard;
	struct promote_dest dest;
	struct error error;
};

static const char *const skeleton[] = { "tmp/x" };

static int setup(void **state)
{
	static struct place p;

	p = (struct place){ .dest.fd = -1 };
	tree_make(&p.ws, MEMORY);
	tree_make(&p.other, MEMORY);
	tree_make(&p.scratch, MEMORY);
	assert_int_equal(arena_init(&p.arena, 64 << 20), 0);
	const struct tree *trees[] = { &p.ws, &p.other };
	for (int i = 0; i < 2; i++) {
		struct stat st = stat_of(trees[i]->fd, ".");

		p.roots[i] = (struct promote_root){
			.path = trees[i]->path, .dev = st.st_dev, .ino = st.st_ino
		};
	}
	p.denied[0] = arena_format(&p.arena, "%s/.git/hooks", p.ws.path);
	p.denied[1] = arena_format(&p.arena, "%s/secret", p.ws.path);
	p.denied[2] = arena_format(&p.arena, "%s/\xff\nodd", p.ws.path);
	p.guard = (struct promote_guard){ .roots = p.roots,
		.root_count = 2,
		.denied = p.denied,
		.denied_count = 3,
		.mount_points = skeleton,
		.mount_point_count = 1,
		.mode = WORKSPACE_DIRECT };
	*state = &p;
	return 0;
}

static int drop(void **state)
{
	struct place *p = *state;

	fd_close(&p->dest.fd);
	arena_free(&p->arena);
	tree_drop(&p->ws);
	tree_drop(&p->other);
	tree_drop(&p->scratch);
	return 0;
}

static int open_at(
	struct place *p, const char *root, const char *below, enum promote_dest_kind k)
{
	fd_close(&p->dest.fd);
	p->error = (struct error){ .code = ERROR_NONE };
	return promote_dest_open(&p->dest, &p->arena, &p->guard,
		arena_format(&p->arena, "%s%s", root, below), k, &p->error);
}

static int put(struct place *p, const char *source, bool live)
{
	const struct promote_options o = { .copy = false };
	struct promote_result result;
	const char *path;

	p->error = (struct error){ .code = ERROR_NONE };
	return promote_into(&p->dest, &p->arena, &p->guard, p->scratch.fd, source, &o, live,
		&result, &path, &p->error);
}

/* --- the guard --------------------------------------------------------------------------------- */

static void test_guard(void **state)
{
	static const struct {
		const char *below;
		int result;
	} cases[] = {
		{ "/a", 0 },
		{ "/.github", 0 },
		{ "/.git/hooks2", 0 },
		{ "/.git/objects/a", 0 },
		{ "/.git", -EPERM },
		{ "/.git/hooks", -EPERM },
		{ "/.git/hooks/a", -EPERM },
		{ "", -EPERM },
		{ "/secret", -EPERM },
		{ "/secret2", 0 },
		{ "/\xff\nodd/x", -EPERM },
	};
	struct place *p = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error e = { 0 };
		const char *path = arena_format(&p->arena, "%s%s", p->ws.path, cases[i].below);

		assert_int_equal(promote_guard_check(&p->guard, path, &e), cases[i].result);
		assert_int_equal(e.code, cases[i].result ? ERROR_PROMOTE : ERROR_NONE);
	}
}

static void test_note(void **state)
{
	struct place *p = *state;
	struct promote_guard got;
	char text[4096];

	assert_int_equal(promote_guard_read(&got, &p->arena, p->other.fd), -ENOENT);
	assert_int_equal(promote_guard_write(p->other.fd, &p->guard), 0);
	assert_int_equal(promote_guard_write(p->other.fd, &p->guard), -EEXIST);
	assert_int_equal(promote_guard_read(&got, &p->arena, p->other.fd), 0);
	assert_int_equal(got.mode, WORKSPACE_DIRECT);
	assert_int_equal(got.mount_point_count, 1);
	assert_string_equal(got.mount_points[0], "tmp/x");
	assert_int_equal(got.root_count, 2);
	assert_string_equal(got.roots[1].path, p->other.path);
	assert_int_equal(got.roots[1].dev, p->roots[1].dev);
	assert_int_equal(got.roots[1].ino, p->roots[1].ino);
	assert_int_equal(got.denied_count, 3);
	assert_string_equal(got.denied[2], p->denied[2]);
	/* A torn one is none. */
	int fd = openat(p->other.fd, "promotion", O_RDWR | O_CLOEXEC);
	ssize_t n = fd_read_file(fd, text, sizeof(text) - 1);
	assert_true(n > 10);
	for (off_t size = n - 1; size >= 0; size--) {
		assert_int_equal(ftruncate(fd, size), 0);
		assert_int_equal(promote_guard_read(&got, &p->arena, p->other.fd), -EPROTO);
		p->arena.used = 4096; /* each reading takes its bound */
	}
	assert_int_equal(close(fd), 0);
}

static void test_patterns(void **state)
{
	struct place *p = *state;
	const char *s = "/base [1]/carrel-x/scratch";
	static const struct {
		const char *pattern, *below;
	} cases[] = {
		{ "/base \\[1]/carrel-x/scratch/*.txt", "*.txt" },
		{ "/base [1]/carrel-x/scratch/a/b", "a/b" },
		{ "/base [1]/carrel-x/scratch/a\\*", "a\\*" },
		{ "/base [1]/carrel-x/scratch2/a", NULL },
		{ "/base [1]/carrel-x/scratch", NULL },
		{ "/base [1]/carrel-x/scratch/../x", NULL },
		{ "/base [1]/carrel-x/scratch/a..b", "a..b" },
		{ "/tmp/*", "tmp/*" },
		{ "/var/tmp/x", "tmp/x" },
		{ "/tmp/..", NULL },
		{ "/etc/passwd", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *below = promote_pattern_below(&p->arena, s, cases[i].pattern);

		if (cases[i].below)
			assert_string_equal(below, cases[i].below);
		else
			assert_null(below);
	}
}

static void test_match(void **state)
{
	struct place *p = *state;
	const char **paths;
	size_t count;

	make_dir(p->scratch.fd, "b");
	make_dir(p->scratch.fd, "a");
	make_file(p->scratch.fd, "a/x.png", "", 0600);
	make_file(p->scratch.fd, "b/\xff\xfe.png", "", 0600);
	make_file(p->scratch.fd, "b/.hidden.png", "", 0600);
	make_file(p->ws.fd, "victim.png", "", 0600);
	assert_int_equal(symlinkat(p->ws.path, p->scratch.fd, "c"), 0);
	assert_int_equal(match_beneath(&p->arena, p->scratch.fd, "*/*.png", &paths, &count), 0);
	assert_int_equal(count, 2);
	assert_string_equal(paths[0], "a/x.png");
	assert_string_equal(paths[1], "b/\xff\xfe.png");
	assert_int_equal(
		match_beneath(&p->arena, p->scratch.fd, "c/victim.png", &paths, &count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(match_beneath(&p->arena, p->scratch.fd, "a", &paths, &count), 0);
	assert_int_equal(count, 1);
}

/* --- opening ----------------------------------------------------------------------------------- */

static void test_open(void **state)
{
	struct place *p = *state;
	const enum promote_dest_kind either = PROMOTE_DEST_EITHER, make = PROMOTE_DEST_MAKE;

	make_dir(p->ws.fd, "out");
	make_file(p->ws.fd, "file", "1", 0600);
	assert_int_equal(open_at(p, p->ws.path, "", either), 0);
	assert_null(p->dest.name);
	assert_string_equal(p->dest.path, p->ws.path);
	assert_true(p->dest.shared);
	assert_int_equal(open_at(p, p->ws.path, "//out/./", either), 0);
	assert_null(p->dest.name);
	assert_string_equal(p->dest.path, arena_format(&p->arena, "%s/out", p->ws.path));
	assert_int_equal(open_at(p, p->ws.path, "/out/new", either), 0);
	assert_string_equal(p->dest.name, "new");
	assert_string_equal(p->dest.path, arena_format(&p->arena, "%s/out", p->ws.path));
	assert_int_equal(open_at(p, p->ws.path, "/file", either), 0);
	assert_string_equal(p->dest.name, "file");
	assert_int_equal(open_at(p, p->ws.path, "/new/", either), -ENOENT);
	assert_int_equal(open_at(p, p->ws.path, "/new/x", either), -ENOENT);
	assert_int_equal(open_at(p, p->ws.path, "/file/x", either), -ENOTDIR);
	assert_int_equal(open_at(p, p->ws.path, "/out/../x", either), -EINVAL);
	assert_int_equal(open_at(p, p->ws.path, "/out", PROMOTE_DEST_DIR), 0);
	assert_int_equal(open_at(p, p->ws.path, "/file", PROMOTE_DEST_DIR), -ENOTDIR);
	assert_int_equal(open_at(p, p->other.path, "/x/y/z", make), 0);
	assert_false(p->dest.shared);
	assert_true(exists(p->other.fd, "x/y/z"));
	assert_int_equal(open_at(p, p->ws.path, "/.git/hooks/x", make), -EPERM);
	assert_false(exists(p->ws.fd, ".git"));
	assert_int_equal(open_at(p, "/etc", "", either), -EPERM);
	assert_int_equal(open_at(p, p->ws.path, "-not", either), -EPERM);
	make_dir(p->ws.fd, "secret");
	assert_int_equal(open_at(p, p->ws.path, "/secret", either), -EPERM);
}

static void test_links(void **state)
{
	struct place *p = *state;

	/* One that leads to the workspace is the user's; one inside it may be the tools'. */
	make_dir(p->ws.fd, "out");
	assert_int_equal(symlinkat(p->ws.path, p->scratch.fd, "to-ws"), 0);
	assert_int_equal(open_at(p, p->scratch.path, "/to-ws/out", PROMOTE_DEST_EITHER), 0);
	assert_string_equal(p->dest.path, arena_format(&p->arena, "%s/out", p->ws.path));
	assert_int_equal(symlinkat(p->other.path, p->ws.fd, "link"), 0);
	assert_int_equal(open_at(p, p->ws.path, "/link/x", PROMOTE_DEST_EITHER), -ELOOP);
	assert_int_equal(open_at(p, p->ws.path, "/link", PROMOTE_DEST_DIR), -ELOOP);
	assert_int_equal(open_at(p, p->ws.path, "/link/x", PROMOTE_DEST_MAKE), -ELOOP);
	/* At the end it is a name that is taken. */
	make_file(p->scratch.fd, "a", "1", 0600);
	assert_int_equal(open_at(p, p->ws.path, "/link", PROMOTE_DEST_EITHER), 0);
	assert_int_equal(put(p, "a", false), -EEXIST);
	assert_int_equal(count_entries(p->other.fd, "."), 0);
}

/* The workspace itself was exchanged for another directory since the session began. */
static void test_other_root(void **state)
{
	struct place *p = *state;

	p->roots[0].ino++;
	assert_int_equal(open_at(p, p->ws.path, "/x", PROMOTE_DEST_EITHER), -ESTALE);
}

static void test_put(void **state)
{
	struct place *p = *state;
	const ino_t inode =
		(make_file(p->scratch.fd, "a", "1", 0600), stat_of(p->scratch.fd, "a").st_ino);

	make_file(p->scratch.fd, "secret", "1", 0600);
	make_file(p->scratch.fd, ".git", "1", 0600);
	make_file(p->scratch.fd, "b", "1", 0600);
	assert_int_equal(open_at(p, p->ws.path, "", PROMOTE_DEST_EITHER), 0);
	assert_int_equal(put(p, "a", true), 0);
	assert_int_equal(stat_of(p->ws.fd, "a").st_ino, inode); /* renamed: tools write here */
	assert_int_equal(put(p, "secret", true), -EPERM);
	assert_int_equal(put(p, ".git", true), -EPERM);
	assert_int_equal(open_at(p, p->other.path, "", PROMOTE_DEST_EITHER), 0);
	const ino_t other = stat_of(p->scratch.fd, "b").st_ino;
	assert_int_equal(put(p, "b", true), 0);
	assert_int_not_equal(stat_of(p->other.fd, "b").st_ino, other); /* a copy: they do not */
}

/* --- a tool that swaps the destination for a link ---------------------------------------------- */

static pid_t start_swapping(struct place *p)
{
	make_dir(p->ws.fd, "out");
	assert_int_equal(symlinkat(p->other.path, p->ws.fd, "link"), 0);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		(void)syscall(
			SYS_renameat2, p->ws.fd, "out", p->ws.fd, "link", 2); /* EXCHANGE */
}

static void test_swapped_destination(void **state)
{
	struct place *p = *state;
	time_t enough = time(NULL) + ENOUGH, end = time(NULL) + SECONDS;
	unsigned moved = 0, refused = 0;
	char name[16];

	p->guard.root_count = 1;
	pid_t pid = start_swapping(p);
	for (unsigned i = 0; (i < ROUNDS && time(NULL) < enough) || !moved || !refused; i++) {
		(void)snprintf(name, sizeof(name), "a%u", i);
		make_file(p->scratch.fd, name, "1", 0600);
		int r = open_at(p, p->ws.path, "/out/", PROMOTE_DEST_EITHER);

		if (r == 0)
			r = put(p, name, true);
		moved += r == 0;
		refused += r < 0;
		assert_int_equal(exists(p->scratch.fd, name), r < 0);
		assert_int_equal(count_entries(p->other.fd, "."), 0);
		assert_true(time(NULL) < end);
	}
	kill_child(pid);
}

/* The control arm: by name, it ends where the tool wants it. */
static void test_swapped_destination_by_name(void **state)
{
	struct place *p = *state;
	time_t end = time(NULL) + SECONDS;
	pid_t pid = start_swapping(p);
	char name[16], path[32];

	for (unsigned i = 0; count_entries(p->other.fd, ".") == 0; i++) {
		(void)snprintf(name, sizeof(name), "a%u", i);
		(void)snprintf(path, sizeof(path), "out/%s", name);
		make_file(p->scratch.fd, name, "1", 0600);
		(void)renameat(p->scratch.fd, name, p->ws.fd, path);
		assert_true(time(NULL) < end);
	}
	kill_child(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_guard, setup, drop),
		cmocka_unit_test_setup_teardown(test_note, setup, drop),
		cmocka_unit_test_setup_teardown(test_patterns, setup, drop),
		cmocka_unit_test_setup_teardown(test_match, setup, drop),
		cmocka_unit_test_setup_teardown(test_open, setup, drop),
		cmocka_unit_test_setup_teardown(test_links, setup, drop),
		cmocka_unit_test_setup_teardown(test_other_root, setup, drop),
		cmocka_unit_test_setup_teardown(test_put, setup, drop),
		cmocka_unit_test_setup_teardown(test_swapped_destination, setup, drop),
		cmocka_unit_test_setup_teardown(test_swapped_destination_by_name, setup, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

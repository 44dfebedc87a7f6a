/*
 * gitreview_test.c - the review of git where tools work against the look itself: link farms, devices, locked
 * files, no time; and what then goes unread.
 *
 * Runs in: a test program, with the system's git in a directory of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/git/gitdirs.h"
#include "host/gitreview/gitreview.h"

extern char **environ;

struct fixture {
	char root[64];
	struct arena arena;
	struct gitdir_rule *rules, *found;
	size_t count, found_count;
	struct timespec since;
};

static void must(const struct fixture *t, const char *script)
{
	char text[4096];
	char *const argv[] = { "/bin/sh", "-c", text, NULL };
	pid_t pid;
	int status;

	assert_true(
		snprintf(text, sizeof(text), "set -e; cd '%s'; R=$PWD; exec >>log 2>&1\n%s\n",
			t->root, script) < (int)sizeof(text));
	assert_int_equal(posix_spawn(&pid, argv[0], NULL, NULL, argv, environ), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		fail_msg("script failed (log in %s/log): %s", t->root, script);
}

static int setup(void **state)
{
	struct fixture *t = calloc(1, sizeof(*t));
	char made[] = "/tmp/gitreview-XXXXXX", text[128];

	if (!t || !mkdtemp(made) || arena_init(&t->arena, 64u << 20) < 0)
		return -1;
	(void)snprintf(t->root, sizeof(t->root), "%s", made);
	(void)snprintf(text, sizeof(text), "%s/global", t->root);
	(void)setenv("GIT_CONFIG_GLOBAL", text, 1);
	(void)setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	*state = t;
	must(t,
		"git config --global user.name A; git config --global user.email a@b\n"
		"git config --global init.defaultBranch main\n"
		"git init -q w; cd w; echo 1 >f; git add f; git commit -q -m one\n");
	return 0;
}

static int teardown(void **state)
{
	struct fixture *t = *state;

	must(t, "cd /; chmod -R u+rwX \"$R\"; rm -rf \"$R\"");
	arena_free(&t->arena);
	free(t);
	return 0;
}

static const char *below(struct fixture *t, const char *path)
{
	const char *full = arena_format(&t->arena, "%s/%s", t->root, path);

	assert_non_null(full);
	return full;
}

static void find(struct fixture *t, const char *workspace, uid_t caller)
{
	struct error e = { 0 };

	assert_int_equal(
		gitdirs_find(&t->arena, below(t, workspace), caller, &t->rules, &t->count, &e),
		0);
	assert_int_equal(clock_gettime(CLOCK_REALTIME, &t->since), 0);
}

static int review(struct fixture *t, const char *workspace, int64_t deadline_ns)
{
	struct error e = { 0 };
	int64_t before = clock_now_ns();
	int r = gitreview(&t->arena, below(t, workspace), getuid(), t->since, t->rules,
		t->count, deadline_ns, &t->found, &t->found_count, &e);

	/* Whatever it met: its own five seconds, what it may take to end, and a busy machine. */
	assert_true(clock_now_ns() - before < 20000000000);
	return r;
}

static bool has(const struct fixture *t, const struct gitdir_rule *rules, size_t count,
	enum gitdir_kind kind, const char *path)
{
	char full[PATH_MAX];

	(void)snprintf(full, sizeof(full), "%s/%s", t->root, path);
	for (size_t i = 0; i < count; i++)
		if (rules[i].kind == kind && strcmp(rules[i].path, full) == 0)
			return true;
	return false;
}

static bool goes(const struct fixture *t, const char *path)
{
	return has(t, t->found, t->found_count, GITDIR_QUARANTINE, path);
}

/* --- no answer --------------------------------------------------------------------------------- */

/* What goes unread, and what must not: the user's commits. The control arm is a review with time. */
static void late(void **state)
{
	static const char *const going[] = { "w/.git/index", "w/.git/logs",
		"w/.git/COMMIT_EDITMSG", "w/.git/rebase-merge", "w/.git/worktrees/in",
		"w/.git/objects/info/commit-graph", NULL };
	struct fixture *t = *state;

	must(t, "git -C w worktree add -q ../old");
	find(t, "w", getuid());
	must(t,
		"cd w; git worktree add -q in; ln -sf /x .git/COMMIT_EDITMSG; mkdir .git/rebase-merge\n"
		"echo exec x >.git/rebase-merge/git-rebase-todo; ln -s /x .git/objects/info/commit-graph\n"
		"ln -s /x .git/notes; git init -q child; touch child/.git/index; mkdir other; echo 'gitdir: /x' >other/.git");
	assert_int_equal(review(t, "w", 0), 0);
	assert_true(goes(t, "w/.git/COMMIT_EDITMSG"));
	assert_false(goes(t, "w/.git/index"));
	assert_int_equal(review(t, "w", 1), -ETIMEDOUT);
	for (size_t i = 0; going[i]; i++)
		if (!goes(t, going[i]))
			fail_msg("stays: %s", going[i]);
	assert_true(goes(t, "w/.git/notes"));
	assert_true(goes(t, "w/child/.git/index"));
	assert_true(goes(t, "w/other/.git"));
	assert_false(goes(t, "w/.git/worktrees/old"));
	assert_false(goes(t, "w/.git/worktrees"));
	for (size_t i = 0; i < t->found_count; i++) {
		assert_int_equal(rename(t->found[i].path, below(t, "gone")), 0);
		must(t, "rm -rf gone");
	}
	must(t, "cd w; git fsck; test \"$(git log --format=%s main)\" = one; git reset -q; git status");
}

/* --- link farms -------------------------------------------------------------------------------- */

static const char gitlinks[] =
	"cd w; C=$(git rev-parse HEAD)\n"
	"seq -f \"160000 $C 0\ta/b%g\" 4000 | git update-index --index-info\n"
	"mkdir -p a/b1; git init -q a/b1; mv .git/index .git/sharedindex.0; cp .git/sharedindex.0 .git/index\n";

/* farm - more names for one file. */
static void farm(
	struct fixture *t, const char *file, const char *name, unsigned from, unsigned to)
{
	const char *first = below(t, file), *other = below(t, name);
	char path[PATH_MAX];

	for (unsigned i = from; i <= to; i++) {
		(void)snprintf(path, sizeof(path), "%s%u", other, i);
		assert_int_equal(link(first, path), 0);
	}
}

static void link_farm(void **state)
{
	struct fixture *t = *state;

	find(t, "w", getuid());
	must(t, gitlinks);
	farm(t, "w/.git/sharedindex.0", "w/.git/sharedindex.", 1, 3000);
	assert_int_equal(review(t, "w", 0), 0);
	assert_true(goes(t, "w/a/b1/.git/config"));
	assert_false(goes(t, "w/.git/index"));
	/* More names than git leaves, or more files: what they are parts of goes. */
	farm(t, "w/.git/sharedindex.0", "w/.git/sharedindex.", 3001, 4200);
	assert_int_equal(review(t, "w", 0), 0);
	assert_true(goes(t, "w/.git/index"));
	must(t, "cd w/.git; rm sharedindex.*; for i in $(seq 40); do cp index sharedindex.$i; done");
	assert_int_equal(review(t, "w", 0), 0);
	assert_true(goes(t, "w/.git/index"));
	/* The look at the start ends as well, and says so. */
	find(t, "w", getuid());
	assert_true(has(t, t->rules, t->count, GITDIR_NOTE, "w/.git"));
}

/* Lists of submodules, each of which has another: the start looks at so many, and no more. */
static void many_lists(void **state)
{
	struct fixture *t = *state;
	int64_t before = clock_now_ns();

	must(t,
		"cd w; list() { for i in $(seq 500); do printf '[submodule \"%s\"]\\n path = %s%s\\n' $i $1 $i; done; }\n"
		"seq -f s/s%g/.git 500 | xargs mkdir -p; text=$(list s)\n"
		"for i in $(seq 500); do echo \"$text\" >s/s$i/.gitmodules; echo x >s/s$i/.git/HEAD; done\n"
		"list s/s >.gitmodules");
	before = clock_now_ns();
	find(t, "w", getuid());
	assert_true(clock_now_ns() - before < 20000000000);
	assert_true(has(t, t->rules, t->count, GITDIR_PROTECT, "w/s/s1/.git/config"));
}

/* --- devices and locks ------------------------------------------------------------------------- */

static bool was_opened(int watch)
{
	char events[16384];

	return read(watch, events, sizeof(events)) > 0;
}

/* A FIFO in place of each file that is read; as root a device as well. */
static void devices(void **state)
{
	static const char *const files[] = { "w/.git/config", "w/.git/index", "w/.gitmodules",
		"w/.git/commondir", "w/.git/rebase-merge/git-rebase-todo",
		"w/.git/sequencer/opts", "w/.git/worktrees/x/gitdir",
		"w/.git/worktrees/x/commondir", "w/child/.git" };
	struct fixture *t = *state;
	char script[256];

	must(t, "cd w; mkdir -p child .git/rebase-merge .git/sequencer .git/worktrees/x");
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		autofd int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

		(void)snprintf(script, sizeof(script), "test ! -e %s || mv %s kept; mkfifo %s",
			files[i], files[i], files[i]);
		must(t, script);
		assert_true(watch >= 0);
		assert_true(inotify_add_watch(watch, below(t, files[i]), IN_OPEN) >= 0);
		find(t, "w", getuid());
		t->since.tv_sec -= 3600; /* as if the session had made it */
		assert_int_equal(review(t, "w", 0), 0);
		if (was_opened(watch))
			fail_msg("opened: %s", files[i]);
		/* The control arm. */
		autofd int fd = open(below(t, files[i]), O_RDONLY | O_NONBLOCK | O_CLOEXEC);

		assert_true(fd >= 0 && was_opened(watch));
		(void)snprintf(script, sizeof(script), "rm %s; test ! -e kept || mv kept %s",
			files[i], files[i]);
		must(t, script);
	}
}

/* What its owner cannot read now git reads later: as root, or when the mode is another again. */
static void locked(void **state)
{
	struct fixture *t = *state;

	find(t, "w", getuid());
	must(t, "chmod 0 w/.git/index");
	assert_int_equal(review(t, "w", 0), 0);
	assert_true(goes(t, "w/.git/index"));
	must(t, "chmod 0600 w/.git/index");
	assert_int_equal(review(t, "w", 0), 0);
	assert_false(goes(t, "w/.git/index"));
	/* One in another: each look may find one more, and there is an end to it. */
	must(t, "cd w; mkdir -p x; ln -sf /x .git/COMMIT_EDITMSG; chmod 0 .git");
	assert_int_equal(review(t, "w", 0), 0);
	assert_true(goes(t, "w/.git/COMMIT_EDITMSG"));
	struct stat st;
	assert_int_equal(stat(below(t, "w/.git"), &st), 0);
	assert_int_equal(st.st_mode & 0700, 0700);
}

/* A directory that a link lies in, or a repository that the index names: root's git passes what a mode keeps from us. */
static void locked_on_the_way(void **state)
{
	struct fixture *t = *state;

	find(t, "w", getuid());
	must(t,
		"cd w/.git; mkdir -p info; ln -s /x info/sparse-checkout; ln -s /x objects/pack/multi-pack-index\n"
		"chmod 0 info objects/pack");
	assert_int_equal(review(t, "w", 0), 0);
	assert_true(goes(t, "w/.git/info/sparse-checkout"));
	assert_true(goes(t, "w/.git/objects/pack/multi-pack-index"));
	must(t,
		"cd w; mkdir d; git init -q d/sub; git -C d/sub commit -q --allow-empty -m x\n"
		"git update-index --add --cacheinfo 160000,$(git -C d/sub rev-parse HEAD),d/sub; chmod 0 d");
	assert_int_equal(review(t, "w", 0), 0);
	/* Another user's git is kept from it as we are, until the mode is another again: then it is a session's. */
	assert_int_equal(goes(t, "w/d/sub/.git"), getuid() == 0);
}

/* As root in another user's workspace, whose uid the tools have: what they lock is read all the same. */
static void locked_foreign(void **state)
{
	struct fixture *t = *state;

	if (getuid() != 0) {
		print_message("skip: needs root\n");
		skip();
	}
	must(t, "chown -R 12345 w; chmod 0700 w w/.git");
	find(t, "w", 0);
	must(t, "cd w; ln -sf /x .git/COMMIT_EDITMSG; chown -hR 12345 .git; chmod 0400 .git/index; chmod 0700 .git");
	assert_int_equal(review(t, "w", 0), 0);
	assert_true(goes(t, "w/.git/COMMIT_EDITMSG"));
	assert_false(goes(t, "w/.git/index"));
}

/* --- whose workspace --------------------------------------------------------------------------- */

/* A worktree is gone; another user makes its path again, with a .git in it. */
static void stale_worktree(void **state)
{
	struct fixture *t = *state;

	must(t, "chmod 0711 .; git -C w worktree add -q ../stale; cp stale/.git dot-git");
	if (getuid() != 0) {
		print_message("skip: needs root\n");
		skip();
	}
	static const char *const others[] = { "chown -R 12345 stale",
		"chown -R 0 stale; chown 12345 stale",
		"chown -R 0 stale; chown 12345 stale/.git" };

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		/* The control arm. */
		must(t, "chown -R 0 stale");
		find(t, "stale", 0);
		assert_true(has(t, t->rules, t->count, GITDIR_WRITE, "w/.git"));
		must(t, others[i]);
		find(t, "stale", 0);
		assert_false(has(t, t->rules, t->count, GITDIR_WRITE, "w/.git"));
		assert_true(has(t, t->rules, t->count, GITDIR_NOTE, "w/.git/worktrees/stale"));
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(late),
		TEST(link_farm),
		TEST(many_lists),
		TEST(devices),
		TEST(locked),
		TEST(locked_on_the_way),
		TEST(locked_foreign),
		TEST(stale_worktree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

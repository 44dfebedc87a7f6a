/*
 * gitdirs_test.c - what gitdirs_find() says about real repositories, forged ones, and whether git
 * can work under its rules while the host stays safe.
 *
 * Runs in: a test program. It makes repositories with the system's git under a directory of its
 * own; the rules are applied with bwrap, as mounts, so that no part of carrel's own launch is
 * needed to judge them.
 */
/* ctest: as=user sanitized=only cost=40 (whose a workspace is the function is told; what only root meets is in gitreview_test.c) */
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/git/gitconfig.h"
#include "host/git/gitdirs.h"
#include "host/git/gitfind.h"
#include "host/git/gitindex.h"
#include "host/gitreview/gitreview.h"

extern char **environ;

struct fixture {
	char root[64]; /* canonical */
	struct arena arena;
	struct gitdir_rule *rules;
	size_t count;
};

/* --- helpers ----------------------------------------------------------------------------------
 */

static int spawn(char *const *argv)
{
	pid_t pid;
	int status;

	assert_int_equal(posix_spawn(&pid, argv[0], NULL, NULL, argv, environ), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* sh - run a script in the fixture's root; its exit status. $R is the root. */
static int sh(const struct fixture *t, const char *script)
{
	char text[8192];
	char *const argv[] = { "/bin/sh", "-c", text, NULL };

	assert_true(
		snprintf(text, sizeof(text), "set -e; cd '%s'; R=$PWD; exec >>log 2>&1\n%s\n",
			t->root, script) < (int)sizeof(text));
	return spawn(argv);
}

static void must(const struct fixture *t, const char *script)
{
	if (sh(t, script) != 0)
		fail_msg("script failed (log in %s/log): %s", t->root, script);
}

static void find_as(struct fixture *t, const char *workspace, uid_t caller)
{
	char path[PATH_MAX];
	struct error e = { 0 };

	(void)snprintf(path, sizeof(path), "%s/%s", t->root, workspace);
	const char *kept = arena_copy(&t->arena, path, strlen(path));

	assert_int_equal(gitdirs_find(&t->arena, kept, caller, &t->rules, &t->count, &e), 0);
}

static void find(struct fixture *t, const char *workspace)
{
	find_as(t, workspace, getuid());
}

/* rule - the rule of that kind for R/@path, or NULL. */
static const struct gitdir_rule *rule(
	const struct fixture *t, enum gitdir_kind kind, const char *path)
{
	char full[PATH_MAX];

	(void)snprintf(full, sizeof(full), "%s/%s", t->root, path);
	for (size_t i = 0; i < t->count; i++)
		if (t->rules[i].kind == kind && strcmp(t->rules[i].path, full) == 0)
			return &t->rules[i];
	return NULL;
}

static void show(const struct fixture *t)
{
	static const char *const kinds[] = { "write", "protect", "watch", "quarantine",
		"note" };

	for (size_t i = 0; i < t->count; i++)
		print_error("%s %s%s: %s\n", kinds[t->rules[i].kind],
			t->rules[i].exists ? "" : "(absent) ", t->rules[i].path,
			t->rules[i].why);
}

static void expect(
	const struct fixture *t, enum gitdir_kind kind, const char *path, bool exists)
{
	const struct gitdir_rule *found = rule(t, kind, path);

	if (found && found->exists == exists)
		return;
	show(t);
	fail_msg("expected kind %d, exists %d: %s", (int)kind, (int)exists, path);
}

/* Each of R/@directory's files, "name name -absent". */
static void expect_protected(
	const struct fixture *t, const char *directory, const char *const *files)
{
	char path[PATH_MAX];

	for (; *files; files++) {
		bool exists = **files != '-';

		(void)snprintf(path, sizeof(path), "%s/%s", directory, *files + !exists);
		expect(t, GITDIR_PROTECT, path, exists);
	}
}

static size_t count_kind(const struct fixture *t, enum gitdir_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < t->count; i++)
		n += t->rules[i].kind == kind;
	return n;
}

static bool has_note(const struct fixture *t, const char *part)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->rules[i].kind == GITDIR_NOTE && strstr(t->rules[i].why, part))
			return true;
	return false;
}

/* nothing_outside - no rule but notes for anything that is not in R/@workspace. */
static void nothing_outside(const struct fixture *t, const char *workspace)
{
	char full[PATH_MAX];
	size_t length = (size_t)snprintf(full, sizeof(full), "%s/%s/", t->root, workspace);

	for (size_t i = 0; i < t->count; i++)
		if (t->rules[i].kind != GITDIR_NOTE &&
			strncmp(t->rules[i].path, full, length) != 0) {
			show(t);
			fail_msg("a rule outside the workspace: %s", t->rules[i].path);
		}
	assert_int_equal(count_kind(t, GITDIR_WRITE), 0);
}

static int setup(void **state)
{
	struct fixture *t = calloc(1, sizeof(*t));
	char made[] = "/tmp/gitdirs-XXXXXX", text[PATH_MAX];

	if (!t || !mkdtemp(made) || !realpath(made, text) || strlen(text) >= sizeof(t->root))
		return -1;
	memcpy(t->root, text, strlen(text) + 1);
	if (arena_init(&t->arena, 64u << 20) < 0)
		return -1;
	(void)snprintf(text, sizeof(text), "%s/global", t->root);
	(void)setenv("GIT_CONFIG_GLOBAL", text, 1);
	(void)setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	(void)setenv("GIT_TERMINAL_PROMPT", "0", 1);
	(void)setenv("GIT_EDITOR", "true", 1);
	(void)setenv("LC_ALL", "C", 1);
	*state = t;
	return sh(t,
		"git config --global user.name A; git config --global user.email a@b\n"
		"git config --global protocol.file.allow always\n"
		"git config --global init.defaultBranch main\n"
		"git config --global advice.detachedHead false\n"
		"repo() { git init -q \"$1\"; echo 1 >\"$1/f\"; git -C \"$1\" add f;"
		" git -C \"$1\" commit -q -m one; }\n"
		"repo seed\n");
}

static int teardown(void **state)
{
	struct fixture *t = *state;
	char *const argv[] = { "/bin/rm", "-rf", t->root, NULL };

	arena_free(&t->arena);
	int status = spawn(argv);

	free(t);
	return status;
}

/* --- the rules, by kind of workspace ----------------------------------------------------------
 */

static const char *const fresh[] = { "config", "hooks", "branches", "-config.worktree",
	"-commondir", "-remotes", "-modules", NULL };

static void no_repository(void **state)
{
	struct fixture *t = *state;
	static const char *const files[] = { "-config", "-hooks", "-config.worktree",
		"-commondir", "-remotes", "-branches", "-modules", NULL };

	must(t, "mkdir w");
	find(t, "w");
	expect(t, GITDIR_WATCH, "w/.git", false);
	expect(t, GITDIR_PROTECT, "w/HEAD", false);
	expect_protected(t, "w/.git", files);
	nothing_outside(t, "w");
}

static void plain(void **state)
{
	struct fixture *t = *state;

	must(t, "cp -r seed w");
	find(t, "w");
	expect_protected(t, "w/.git", fresh);
	expect(t, GITDIR_PROTECT, "w/HEAD", false);
	nothing_outside(t, "w");
}

static void inside_a_bigger_repository(void **state)
{
	struct fixture *t = *state;

	must(t, "cp -r seed big; mkdir -p big/w");
	find(t, "big/w");
	expect(t, GITDIR_WATCH, "big/w/.git", false);
	nothing_outside(t, "big/w");
}

static void linked_worktree(void **state)
{
	struct fixture *t = *state;
	static const char *const own[] = { "commondir", "gitdir", "-config.worktree",
		"-modules", NULL };
	static const char *const common[] = { "config", "hooks", "branches", "HEAD", "index",
		"-modules", "-commondir", "-remotes", NULL };

	must(t, "cp -r seed main; cd main; git worktree add -q ../w; git worktree add -q ../o");
	find(t, "w");
	expect(t, GITDIR_WRITE, "main/.git", true);
	expect(t, GITDIR_PROTECT, "w/.git", true);
	expect_protected(t, "main/.git/worktrees/w", own);
	expect_protected(t, "main/.git", common);
	expect(t, GITDIR_PROTECT, "main/.git/worktrees/o", true);
	assert_int_equal(count_kind(t, GITDIR_WRITE), 1);
	assert_int_equal(count_kind(t, GITDIR_NOTE), 0);
	/* Relative names, as newer versions of git write them, are as good. */
	must(t,
		"echo 'gitdir: ../main/.git/worktrees/w' >w/.git\n"
		"echo ../../../../w/.git >main/.git/worktrees/w/gitdir");
	find(t, "w");
	expect(t, GITDIR_WRITE, "main/.git", true);
}

static void worktrees_of_the_workspace(void **state)
{
	struct fixture *t = *state;
	static const char *const inner[] = { "commondir", "gitdir", "-config.worktree", NULL };

	must(t, "cp -r seed w; cd w; git worktree add -q deep/er/in; git worktree add -q ../out");
	find(t, "w");
	expect_protected(t, "w/.git/worktrees/in", inner);
	expect(t, GITDIR_PROTECT, "w/deep/er/in/.git", true);
	expect(t, GITDIR_PROTECT, "w/.git/worktrees/out", true);
	nothing_outside(t, "w");
}

/* A repository with submodules: one nested in another, one with a slash in its name. */
static const char make_super[] =
	"git init -q mid; cd mid; git submodule --quiet add $R/seed inner;"
	"git commit -q -m m; cd ..\n"
	"git init -q w; cd w; git submodule --quiet add $R/mid sub\n"
	"git submodule --quiet add --name libs/foo $R/seed lib/foo; git commit -q -m s\n"
	"git submodule --quiet update --init --recursive";

static void submodules(void **state)
{
	struct fixture *t = *state;
	static const char *const module[] = { "config", "hooks", "-config.worktree",
		"-commondir", NULL };

	must(t, make_super);
	find(t, "w");
	expect(t, GITDIR_PROTECT, "w/.git/modules", true);
	expect(t, GITDIR_WRITE, "w/.git/modules/sub", true);
	expect(t, GITDIR_WRITE, "w/.git/modules/libs/foo", true);
	expect(t, GITDIR_PROTECT, "w/.git/modules/sub/modules", true);
	expect(t, GITDIR_WRITE, "w/.git/modules/sub/modules/inner", true);
	expect_protected(t, "w/.git/modules/sub", module);
	expect_protected(t, "w/.git/modules/libs/foo", module);
	expect_protected(t, "w/.git/modules/sub/modules/inner", module);
	expect(t, GITDIR_PROTECT, "w/sub/.git", true);
	expect(t, GITDIR_PROTECT, "w/lib/foo/.git", true);
	expect(t, GITDIR_PROTECT, "w/sub/inner/.git", true);
	assert_int_equal(count_kind(t, GITDIR_WRITE), 3);
	const char *shown = rule(t, GITDIR_PROTECT, "w/.git/modules/sub/config")->shown;

	assert_non_null(shown);
	assert_null(strstr(shown, "worktree"));
	assert_non_null(strstr(shown, "bare = false\n"));
	assert_non_null(strstr(shown, "[remote \"origin\"]\n"));
	assert_null(rule(t, GITDIR_PROTECT, "w/.git/config")->shown);
	assert_int_equal(count_kind(t, GITDIR_NOTE), 0);
}

/* A clone whose submodules are not there yet: where they would be, nothing may appear. */
static void submodules_listed(void **state)
{
	struct fixture *t = *state;

	must(t, make_super);
	must(t,
		"mv w super; git clone -q super w; mkdir w/deep; cp -r seed w/deep/old\n"
		"printf '[submodule \"a\"]\\npath = deep/old\\n[submodule \"b\"]\\npath = ../x\\n' >>w/.gitmodules");
	find(t, "w");
	expect(t, GITDIR_PROTECT, "w/.git/modules", false);
	expect(t, GITDIR_PROTECT, "w/sub/.git", false);
	expect(t, GITDIR_PROTECT, "w/lib/foo/.git", false);
	expect(t, GITDIR_PROTECT, "w/deep/old/.git/config", true);
	nothing_outside(t, "w");
}

/* What git takes for submodules, and .gitmodules does not list: one in another, one not there yet. */
static const char make_embedded[] =
	"cp -r seed w; cd w; mkdir -p a/in; cp -r ../seed a/b; cp -r ../seed a/b/c; cp -r ../seed a/free\n"
	"C=$(git rev-parse HEAD); git -C a/b update-index --add --cacheinfo 160000,$C,c\n"
	"git update-index --add --cacheinfo 160000,$C,a/b --cacheinfo 160000,$C,a/in\n"
	"git commit -q -m embedded\n";

static void too_many_embedded(void **state)
{
	struct fixture *t = *state;

	must(t, make_embedded);
	must(t,
		"cd w; C=$(git rev-parse HEAD); i=0; while [ $i -lt 600 ]; do"
		" printf \"160000 $C 0\\tx/y$i\\n\"; i=$((i+1)); done | git update-index --index-info");
	find(t, "w");
	expect(t, GITDIR_PROTECT, "w/a/b/.git/config", true);
	assert_true(has_note(t, "more submodules"));
}

/* With too few descriptors the look fails, or finds all: it never finds less. */
static void few_descriptors(void **state)
{
	struct fixture *t = *state;
	char path[PATH_MAX];
	unsigned failed = 0;
	struct rlimit old;

	must(t, make_super);
	must(t, "cp -r seed w/child; ln -s ../../seed/.git/hooks w/child/.git/linked");
	find(t, "w");
	const size_t all = t->count;
	(void)snprintf(path, sizeof(path), "%s/w", t->root);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	int next = fcntl(0, F_DUPFD_CLOEXEC, 0);
	assert_true(next >= 0);
	assert_int_equal(close(next), 0);
	for (int more = 0; more < 12; more++) {
		const struct rlimit few = { (rlim_t)(next + more), old.rlim_max };
		struct error e = { 0 };

		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		int r = gitdirs_find(&t->arena, path, getuid(), &t->rules, &t->count, &e);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
		failed += r < 0;
		if (r >= 0)
			assert_int_equal(t->count, all);
		else
			assert_int_equal(r, -EMFILE);
	}
	assert_true(failed > 0 && failed < 12);
}

static void submodule_checkout(void **state)
{
	struct fixture *t = *state;
	static const char *const module[] = { "config", "hooks", "-config.worktree",
		"-commondir", "-remotes", NULL };

	must(t, make_super);
	find(t, "w/sub");
	expect(t, GITDIR_WRITE, "w/.git/modules/sub", true);
	expect_protected(t, "w/.git/modules/sub", module);
	expect(t, GITDIR_PROTECT, "w/sub/.git", true);
	expect(t, GITDIR_WRITE, "w/.git/modules/sub/modules/inner", true);
	expect(t, GITDIR_PROTECT, "w/sub/inner/.git", true);
	assert_int_equal(count_kind(t, GITDIR_WRITE), 2);
	find(t, "w/sub/inner");
	expect(t, GITDIR_WRITE, "w/.git/modules/sub/modules/inner", true);
	assert_int_equal(count_kind(t, GITDIR_WRITE), 1);
	find(t, "w/lib/foo");
	expect(t, GITDIR_WRITE, "w/.git/modules/libs/foo", true);
	assert_int_equal(count_kind(t, GITDIR_WRITE), 1);
}

static void bare(void **state)
{
	struct fixture *t = *state;

	must(t, "git clone -q --bare seed w");
	find(t, "w");
	expect_protected(t, "w", fresh);
	expect(t, GITDIR_PROTECT, "w/.git", false);
	nothing_outside(t, "w");
}

/* Often made for many agents at once: bare repository and worktrees beside each other. */
static void bare_with_worktrees(void **state)
{
	struct fixture *t = *state;

	must(t, "mkdir w; git clone -q --bare seed w/.bare; cd w/.bare; git worktree add -q ../one");
	find(t, "w");
	expect(t, GITDIR_PROTECT, "w/.bare/config", true);
	expect(t, GITDIR_PROTECT, "w/.bare/hooks", true);
	expect(t, GITDIR_PROTECT, "w/.bare/worktrees/one/commondir", true);
	expect(t, GITDIR_PROTECT, "w/one/.git", true);
	nothing_outside(t, "w");
	find(t, "w/one");
	expect(t, GITDIR_WRITE, "w/.bare", true);
	must(t, "echo 'gitdir: ./.bare' >w/.git");
	find(t, "w");
	expect(t, GITDIR_PROTECT, "w/.bare/config", true);
	expect(t, GITDIR_PROTECT, "w/.git", true);
	nothing_outside(t, "w");
}

static void children(void **state)
{
	struct fixture *t = *state;

	must(t, "mkdir w; cp -r seed w/child; rm -r w/child/.git/hooks; mkdir -p w/a; cp -r seed w/a/b");
	find(t, "w");
	expect(t, GITDIR_PROTECT, "w/child/.git/config", true);
	expect(t, GITDIR_PROTECT, "w/child/.git/hooks", false);
	expect(t, GITDIR_PROTECT, "w/child/HEAD", false);
	assert_null(rule(t, GITDIR_PROTECT, "w/a/b/.git/config")); /* the documented limit */
	must(t, "cd w; i=0; while [ $i -lt 300 ]; do : >f$i; i=$((i+1)); done");
	find(t, "w");
	assert_true(has_note(t, "more entries"));
	expect(t, GITDIR_PROTECT, "w/HEAD", false);
}

static void links(void **state)
{
	struct fixture *t = *state;

	must(t,
		"cp -r seed w; mv w/.git w/real; ln -s real w/.git\n"
		"mv w/real/hooks w/githooks; ln -s ../githooks w/real/hooks");
	find(t, "w");
	expect(t, GITDIR_WATCH, "w/.git", true);
	assert_string_equal(rule(t, GITDIR_WATCH, "w/.git")->target, "real");
	expect(t, GITDIR_PROTECT, "w/real/config", true);
	expect(t, GITDIR_WATCH, "w/real/hooks", true);
	expect(t, GITDIR_PROTECT, "w/githooks", true);
	must(t, "rm -r w/githooks");
	find(t, "w");
	expect(t, GITDIR_PROTECT, "w/githooks", false);
}

static void named_by_config(void **state)
{
	struct fixture *t = *state;

	must(t,
		"cp -r seed w; cd w; mkdir .husky; git config core.hooksPath .husky\n"
		"git config include.path ../.gitconfig; echo '[core] hooksPath = tools/hooks' >.gitconfig\n"
		"git config 'includeIf.gitdir:/x/.path' ../absent.inc; mkdir tools");
	find(t, "w");
	expect(t, GITDIR_PROTECT, "w/.husky", true);
	expect(t, GITDIR_PROTECT, "w/.gitconfig", true);
	expect(t, GITDIR_PROTECT, "w/absent.inc", false);
	expect(t, GITDIR_PROTECT, "w/tools/hooks", false);
	must(t, "git -C w config core.hooksPath .");
	find(t, "w");
	assert_null(rule(t, GITDIR_PROTECT, "w"));
	assert_true(has_note(t, "whole workspace"));
}

static void a_work_tree_that_looks_bare(void **state)
{
	struct fixture *t = *state;

	must(t, "cp -r seed w; echo ref: refs/heads/x >w/HEAD");
	find(t, "w");
	expect(t, GITDIR_PROTECT, "w/objects", false);
	expect(t, GITDIR_PROTECT, "w/commondir", false);
	must(t, "mkdir w/objects");
	find(t, "w");
	expect(t, GITDIR_PROTECT, "w/refs", false);
	must(t, "mkdir w/refs");
	find(t, "w");
	expect(t, GITDIR_PROTECT, "w/config", false);
	expect(t, GITDIR_PROTECT, "w/hooks", false);
}

static void too_many(void **state)
{
	struct fixture *t = *state;

	must(t, make_super);
	must(t, "cd w/.git/modules; i=0; while [ $i -lt 600 ]; do mkdir x$i; i=$((i+1)); done");
	find(t, "w");
	expect(t, GITDIR_PROTECT, "w/.git/modules", true);
	assert_int_equal(count_kind(t, GITDIR_WRITE), 0);
	assert_true(has_note(t, "more submodules"));
	must(t,
		"cd w/.git/modules; rm -r x*; p=d; i=0; while [ $i -lt 20 ]; do p=$p/d; i=$((i+1));"
		"done; mkdir -p $p");
	find(t, "w");
	assert_int_equal(count_kind(t, GITDIR_WRITE), 0);
	assert_true(has_note(t, "more submodules"));
}

static void too_many_worktrees(void **state)
{
	struct fixture *t = *state;

	must(t,
		"cp -r seed main; cd main; git worktree add -q ../w\n"
		"cd .git/worktrees; i=0; while [ $i -lt 600 ]; do mkdir x$i; i=$((i+1)); done");
	find(t, "w");
	expect(t, GITDIR_PROTECT, "main/.git/worktrees", true);
	expect(t, GITDIR_WRITE, "main/.git/worktrees/w", true);
	expect(t, GITDIR_PROTECT, "main/.git/worktrees/w/commondir", true);
	assert_true(has_note(t, "more worktrees"));
}

/* --- forged workspaces: nothing outside, whatever they say -------------------------------------
 */

static void forged(void **state)
{
	struct fixture *t = *state;
	static const struct {
		const char *script, *note;
	} cases[] = {
		{ "mkdir .ssh; echo \"gitdir: $R/.ssh\" >w/.git", "not a git directory" },
		{ "echo 'gitdir: ..' >w/.git", "lies in it" },
		{ "echo 'gitdir: /' >w/.git", "lies in it" },
		{ "echo 'gitdir: .' >w/.git", "lies in it" },
		{ "echo \"gitdir: $R/absent\" >w/.git", "cannot be opened" },
		{ "printf 'gitdir: ' >w/.git", "not a gitfile" },
		{ "printf '' >w/.git", "not a gitfile" },
		{ "printf 'gitdir:%s' $R/seed/.git >w/.git", "not a gitfile" },
		{ "printf 'gitdir: %s\\0/x\\n' $R/seed/.git >w/.git", "not a gitfile" },
		{ "{ printf 'gitdir: '; head -c 1048576 /dev/zero | tr '\\0' /; } >w/.git",
			"not a gitfile" },
		{ "{ printf 'gitdir: '; i=0; while [ $i -lt 1000 ]; do printf ../; i=$((i+1)); done;"
		  "printf %s ${R#/}/seed/.git; } >w/.git",
			"not in modules" },
		{ "echo \"gitdir: $R/seed/.git\" >w/.git", "not in modules" },
		{ "echo 'gitdir: /proc/self/cwd/.git' >w/.git", "cannot be opened" },
		{ "mkfifo w/.git", NULL },
		{ "ln -s ../seed/.git w/.git", "leads out" },
		{ "ln -s ../seed/.git w/l; echo 'gitdir: l' >w/.git", "not in modules" },
		{ "git -C seed worktree add -q ../o; cp o/.git w/.git", "does not name" },
		{ "git -C seed worktree add -q ../o; ln o/.git w/.git", "does not name" },
		{ "git -C seed worktree add -q ../o; cp o/.git w/.git;"
		  "echo \"$R/w/../w/.git/\" >seed/.git/worktrees/o/gitdir",
			"does not name" },
		{ "git -C seed worktree add -q ../o; cp o/.git w/.git;"
		  "echo /proc/self/cwd/w/.git >seed/.git/worktrees/o/gitdir",
			"does not name" },
		/* A look-alike beside the workspace that leads to somebody else's repository. */
		{ "mkdir -p fake/worktrees/x; cd fake/worktrees/x; echo $R/seed/.git >commondir;"
		  "cp $R/seed/.git/HEAD .; echo $R/w/.git >gitdir; echo \"gitdir: $PWD\" >$R/w/.git",
			"not in worktrees" },
		{ "mkdir -p w/in/worktrees/x; cd w/in/worktrees/x; echo $R/seed/.git >commondir;"
		  "cp $R/seed/.git/HEAD .; echo $R/w/.git >gitdir; echo \"gitdir: $PWD\" >$R/w/.git",
			NULL },
		{ "mkdir -p fake/worktrees/x; cd fake/worktrees/x; echo ../.. >commondir;"
		  "cp $R/seed/.git/HEAD .; echo $R/w/.git >gitdir; echo \"gitdir: $PWD\" >$R/w/.git",
			"not a repository" },
		{ "mkdir -p fake/modules; cp -r seed/.git fake/modules/x;"
		  "git -C fake/modules/x config core.worktree $R/w;"
		  "echo \"gitdir: $R/fake/modules/x\" >w/.git",
			"not in modules" },
		{ "mkdir -p seed/.git/modules; cp -r seed/.git /$R/x; mv x seed/.git/modules/x;"
		  "git -C seed/.git/modules/x config core.worktree $R/seed;"
		  "echo \"gitdir: $R/seed/.git/modules/x\" >w/.git",
			"core.worktree" },
		{ "mkdir -p seed/.git/modules; cp -r seed/.git /$R/x; mv x seed/.git/modules/x;"
		  "printf '[core]\\n worktree = %s/w\\n worktree = /\\n' $R >>seed/.git/modules/x/config;"
		  "echo \"gitdir: $R/seed/.git/modules/x\" >w/.git",
			"core.worktree" },
		{ "mkdir -p seed/.git/modules; cp -r seed/.git /$R/x; mv x seed/.git/modules/x;"
		  "printf '[core]\\n worktree = %s/w\\n[oops\\n' $R >>seed/.git/modules/x/config;"
		  "echo \"gitdir: $R/seed/.git/modules/x\" >w/.git",
			"core.worktree" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		must(t, "rm -rf w o fake .ssh; cp -r seed keep; mkdir w");
		must(t, cases[i].script);
		find(t, "w");
		nothing_outside(t, "w");
		if (cases[i].note && !has_note(t, cases[i].note)) {
			show(t);
			fail_msg("case %zu: no note with '%s'", i, cases[i].note);
		}
		must(t, "rm -rf seed; mv keep seed");
	}
}

/* What is granted to its owner is granted to nobody else. */
static void other_owner(void **state)
{
	struct fixture *t = *state;

	must(t, "cp -r seed main; cd main; git worktree add -q ../w");
	find(t, "w");
	assert_int_equal(count_kind(t, GITDIR_WRITE), 1);
	find_as(t, "w", getuid() + 1);
	nothing_outside(t, "w");
	must(t, "rm -rf w");
	must(t, make_super);
	find_as(t, "w/sub", getuid() + 1);
	nothing_outside(t, "w/sub");
}

/* --- real work under the rules -----------------------------------------------------------------
 */

struct mount {
	const char *path, *source;
	bool read_only;
};

struct mounts {
	struct mount items[512];
	size_t count;
};

static void add_mount(struct mounts *m, const char *path, const char *source, bool read_only)
{
	for (size_t i = 0; i < m->count; i++)
		if (strcmp(m->items[i].path, path) == 0)
			return;
	assert_true(m->count < 512);
	m->items[m->count++] = (struct mount){ path, source ? source : path, read_only };
}

/* pin - every directory between @path and the writable place it is in becomes a mount point. */
static void pin(struct fixture *t, struct mounts *m, const char *path)
{
	char *at = arena_copy(&t->arena, path, strlen(path)), *slash;
	size_t covered = 0;
	bool writable = false;

	for (size_t i = 0; i < m->count; i++) {
		size_t length = strlen(m->items[i].path);

		if (strncmp(m->items[i].path, path, length) == 0 && path[length] == '/' &&
			length > covered) {
			covered = length;
			writable = !m->items[i].read_only;
		}
	}
	for (slash = at + covered + 1; writable && (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		add_mount(m, arena_copy(&t->arena, at, strlen(at)), NULL, false);
		*slash = '/';
	}
}

/* shown_file - what rule @i wants to be seen in its place, in a file. */
static const char *shown_file(struct fixture *t, size_t i)
{
	const char *path = arena_format(&t->arena, "%s/shown.%zu", t->root, i);
	autofd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, t->rules[i].shown, strlen(t->rules[i].shown)), 0);
	return path;
}

/* box - run @script in R/@workspace under the rules. Its exit status. */
static int box(struct fixture *t, const char *workspace, const char *script)
{
	struct mounts *m = calloc(1, sizeof(*m));
	char top[PATH_MAX], text[8192], log[128];
	const char *argv[1600] = { "/usr/bin/bwrap", "--ro-bind", "/", "/", "--dev", "/dev",
		"--proc", "/proc" };
	size_t n = 8;

	assert_non_null(m);
	find(t, workspace);
	(void)snprintf(top, sizeof(top), "%s/%s", t->root, workspace);
	(void)snprintf(log, sizeof(log), "%s/log", t->root);
	add_mount(m, top, NULL, false);
	add_mount(m, log, NULL, false);
	for (size_t i = 0; i < t->count; i++) {
		const struct gitdir_rule *r = &t->rules[i];
		bool held = r->kind == GITDIR_PROTECT && r->exists;

		if (!held && r->kind != GITDIR_WRITE)
			continue;
		pin(t, m, r->path);
		add_mount(m, r->path, r->shown ? shown_file(t, i) : NULL, held);
	}
	for (size_t i = 0; i < m->count; i++) {
		argv[n++] = m->items[i].read_only ? "--ro-bind" : "--bind";
		argv[n++] = m->items[i].source;
		argv[n++] = m->items[i].path;
	}
	(void)snprintf(text, sizeof(text), "set -e; R='%s'; exec >>$R/log 2>&1; cd '%s'\n%s\n",
		t->root, top, script);
	argv[n++] = "/bin/sh";
	argv[n++] = "-c";
	argv[n++] = text;
	argv[n] = NULL;
	int status = spawn((char *const *)argv);

	free(m);
	return status;
}

static void can(struct fixture *t, const char *workspace, const char *script)
{
	if (box(t, workspace, script) != 0) {
		char log[128];
		char *const argv[] = { "/usr/bin/tail", "-30", log, NULL };

		(void)snprintf(log, sizeof(log), "%s/log", t->root);
		(void)spawn(argv);
		fail_msg("cannot, in %s (log in %s/log): %s", workspace, t->root, script);
	}
}

static void cannot(struct fixture *t, const char *workspace, const char *script)
{
	if (box(t, workspace, script) == 0)
		fail_msg("should not be possible in %s: %s", workspace, script);
}

/* Everyday work. Each line is shown in the log before it runs. */
static const char everyday[] =
	"set -x; git status; echo 2 >f; git diff; git add f; git commit -q -m two\n"
	"git branch topic; git checkout -q topic; echo 3 >g; git add g; git commit -q -m three\n"
	"git checkout -q -; echo 4 >h; git add h; git commit -q -m four\n"
	"echo 5 >f; git stash -q; git stash pop -q; git checkout -q f; git rebase -q topic\n"
	"git tag v1; git merge -q --no-edit topic; git cherry-pick --allow-empty topic --keep-redundant-commits\n"
	"git revert --no-edit v1; git branch -D topic; git fetch -q $R/seed main; git reset -q --hard HEAD~1\n"
	"git clean -fdq; git log --oneline; git fsck; git pack-refs --all; git reflog\n"
	"git bisect start; git bisect reset; git notes add -m n; git status";

static const char gc[] = "git gc -q";
/* With work trees elsewhere: their reflogs are not for this session to expire. */
static const char gc_here[] =
	"git -c gc.reflogExpire=never -c gc.reflogExpireUnreachable=never gc -q";

static const char worktree_work[] =
	"set -x; git worktree add -q new; cd new; echo 9 >n; git add n; git commit -q -m n; cd ..\n"
	"git worktree list; git worktree remove new; git branch -D new";

static void need_bwrap(void)
{
	char *const argv[] = { "/usr/bin/bwrap", "--ro-bind", "/", "/", "/bin/true", NULL };

	if (access(argv[0], X_OK) < 0 || spawn(argv) != 0) {
		print_message("skipped: bwrap is missing or refused here\n");
		skip();
	}
}

static void work_in_plain(void **state)
{
	struct fixture *t = *state;

	need_bwrap();
	must(t, "cp -r seed w");
	can(t, "w", everyday);
	can(t, "w", gc);
	must(t, "git -C w worktree add -q ../elsewhere");
	cannot(t, "w", gc);
	can(t, "w", gc_here);
	can(t, "w", worktree_work);
	cannot(t, "w", "git config core.fsmonitor evil");
	cannot(t, "w", "echo evil >.git/hooks/pre-commit");
	cannot(t, "w", "mv .git other");
	cannot(t, "w", "mv .git/hooks other");
	cannot(t, "w", "echo /x >.git/worktrees/elsewhere/commondir");
	must(t, "test ! -e w/.git/config.lock; git -C w fsck");
	/* From one session to the next. */
	can(t, "w", "git worktree add -q mine");
	can(t, "w", "cd mine; echo m >m; git add m; git commit -q -m m");
	cannot(t, "w", "git worktree remove mine");
	can(t, "w",
		"git checkout -q -b r; echo r >f; git commit -q -am r; git checkout -q -b s HEAD~1;"
		"echo s >f; git commit -q -am s; git rebase -q r && exit 1; test -d .git/rebase-merge");
	can(t, "w", "echo t >f; git add f; git rebase --continue; test ! -e .git/rebase-merge");
}

static void work_in_no_repository(void **state)
{
	struct fixture *t = *state;

	need_bwrap();
	must(t, "mkdir w");
	can(t, "w", "git init -q; echo 1 >f; git add f; git commit -q -m one");
	/* What quarantine takes away at the end; the repository remains one. */
	must(t, "cd w/.git; rm -r config hooks; rm -rf branches");
	can(t, "w", everyday);
	must(t, "git -C w log");
}

static void work_in_linked_worktree(void **state)
{
	struct fixture *t = *state;

	need_bwrap();
	must(t, "cp -r seed main; cd main; git worktree add -q ../w; git worktree add -q ../o");
	can(t, "w", everyday);
	can(t, "w", worktree_work);
	can(t, "w", gc_here);
	cannot(t, "w", "git config core.fsmonitor evil");
	cannot(t, "w", "echo evil >$R/main/.git/hooks/pre-commit");
	cannot(t, "w", "echo x >$R/main/f");
	cannot(t, "w", "echo x >$R/main/.git/HEAD");
	cannot(t, "w", "echo x >$R/main/.git/worktrees/o/HEAD");
	cannot(t, "w", "mv $R/main/.git/worktrees/w $R/main/.git/worktrees/v");
	must(t, "test ! -e main/.git/config.lock; git -C main status; git -C o status; git -C w fsck");
}

static void work_in_submodule(void **state)
{
	struct fixture *t = *state;

	need_bwrap();
	must(t, make_super);
	must(t, "cd w/sub; git checkout -q main; echo 1 >f; git add f; git commit -q -m f");
	can(t, "w/sub", everyday);
	can(t, "w/sub", worktree_work);
	can(t, "w/sub", gc);
	can(t, "w/sub", "git submodule update; git -C inner checkout -q -b t");
	cannot(t, "w/sub", "echo x >>$R/w/.git/modules/sub/config");
	cannot(t, "w/sub", "echo x >$R/w/.git/x");
	cannot(t, "w/sub", "echo x >$R/w/.git/modules/libs/foo/x");
}

static void work_with_submodules(void **state)
{
	struct fixture *t = *state;

	need_bwrap();
	must(t, make_super);
	must(t, "cd w; echo 1 >f; git add f; git commit -q -m f; git -C lib/foo checkout -q main");
	can(t, "w", everyday);
	can(t, "w",
		"cd lib/foo; echo x >n; git add n; git commit -q -m n; cd ../..; git add lib/foo;"
		"git commit -q -m bump; git submodule status --recursive;"
		"git submodule update --recursive; git checkout -q HEAD~1; git submodule update;"
		"git checkout -q -; git submodule update; git -C sub fetch -q");
	cannot(t, "w", "git submodule add $R/seed another");
	cannot(t, "w", "echo 'gitdir: /evil' >sub/.git");
	cannot(t, "w", "rm sub/.git");
	cannot(t, "w", "mv sub other");
	cannot(t, "w", "mkdir .git/modules/x");
	cannot(t, "w", "echo x >>.git/modules/libs/foo/config");
	cannot(t, "w", "mv .git/modules/libs .git/modules/other");
	must(t, "git -C w status; git -C w fsck");
}

static void work_in_bare(void **state)
{
	struct fixture *t = *state;

	need_bwrap();
	must(t, "git clone -q --bare seed w");
	can(t, "w",
		"git log; git fetch -q $R/seed main:x; git branch y; git gc -q; git worktree add -q"
		" new; cd new; echo 1 >n; git add n; git commit -q -m n; cd ..; git worktree remove new");
	cannot(t, "w", "git config a.b c");
	cannot(t, "w", "echo evil >hooks/post-update");
}

/* --- the configuration reader ------------------------------------------------------------------
 */

static void config_reader(void **state)
{
	struct fixture *t = *state;
	static const struct {
		const char *text, *entries;
		int end;
	} cases[] = {
		{ "", "", 0 },
		{ "[core]\n\tworktree = ../x\n", "core.worktree=../x;", 0 },
		{ "[CORE]WorkTree=../x", "core.worktree=../x;", 0 },
		{ "\xef\xbb\xbf[a]\nb=c\r\n", "a.b=c;", 0 },
		{ "[a \"B.c\\\"d\"] e = f # g\n", "a.B.c\"d.e=f;", 0 },
		{ "[a]\nb = \" x ; y \"  ; z\n", "a.b= x ; y ;", 0 },
		{ "[a]\nb = x\\\n  y\n c\n", "a.b=x  y;a.c=;", 0 },
		{ "[a]\nb = \\t\\n\\\"\\\\\n", "a.b=\t\n\"\\;", 0 },
		{ "; x\n# y\n[a] ; z\nb=1\n", "a.b=1;", 0 },
		{ "[a]\nb = \\x\n", "", -EBADMSG },
		{ "[a]\nb = \"x\n", "", -EBADMSG },
		{ "[a\nb = x\n", "", -EBADMSG },
		{ "b = x\n", "", -EBADMSG },
		{ "[a]\n9 = x\n", "", -EBADMSG },
		{ "[a]\nb c\n", "", -EBADMSG },
		{ "[a \"b]\nc = d\n", "", -EBADMSG },
		{ "[a]\nb = 1\n!\n", "a.b=1;", -EBADMSG },
	};
	char path[128], got[512];

	(void)snprintf(path, sizeof(path), "%s/c", t->root);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct gitconfig c;
		size_t used = 0;
		int result;
		autofd int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		assert_true(fd >= 0);
		assert_int_equal(fd_write_all(fd, cases[i].text, strlen(cases[i].text)), 0);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		gitconfig_start(&c, fd);
		got[0] = '\0';
		while ((result = gitconfig_next(&c)) > 0)
			used += (size_t)snprintf(
				got + used, sizeof(got) - used, "%s=%s;", c.name, c.value);
		assert_int_equal(result, cases[i].end);
		assert_string_equal(got, cases[i].entries);
	}
}

/* Names and values that do not fit are marked, and spoil neither the next entry nor the memory. */
static bool is_noted(const struct fixture *t, const char *why)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->rules[i].kind == GITDIR_NOTE && !strcmp(t->rules[i].why, why))
			return true;
	return false;
}

/* A git directory with a split index is listed for its parts: of any number of names only so many. */
static void crowd_beside_a_split_index(void **state)
{
	static const char why[] = "has more parts of an index than are looked at";
	struct fixture *t = *state;
	char from[128], to[160];

	/* With so many names of one part some are among the first. */
	must(t,
		"git init -q w; cd w; git commit -q --allow-empty -m x; echo x >f; git add f\n"
		"git update-index --split-index; cp .git/index .git/sharedindex.0");
	(void)snprintf(from, sizeof(from), "%s/w/.git/sharedindex.0", t->root);
	for (int i = 1; i < 33500; i++) {
		(void)snprintf(to, sizeof(to), "%s/w/.git/%s%d", t->root,
			i < 4000 ? "sharedindex." : "other-", i);
		assert_int_equal(link(from, to), 0);
		if (i == 3999) {
			find(t, "w");
			assert_false(is_noted(t, why)); /* the control arm */
		}
	}
	find(t, "w");
	assert_true(is_noted(t, why));
}

static void config_long(void **state)
{
	struct fixture *t = *state;
	struct gitconfig c;
	char path[128];

	must(t,
		"{ printf '[core]\\n'; head -c 700 /dev/zero | tr '\\0' k; printf ' = 1\\n';"
		"printf 'v = '; head -c 5000 /dev/zero | tr '\\0' v; printf '\\nw = 2\\n';"
		"printf '[x \"'; head -c 700 /dev/zero | tr '\\0' s; printf '\"]\\nk = 3\\n[y]\\nk=4\\n'; } >c\n"
		"{ printf '[a]\\nb=c\\0\\n'; } >z; { echo '[a]'; head -c 1100000 /dev/zero | tr '\\0' '\\n'; } >big");
	(void)snprintf(path, sizeof(path), "%s/c", t->root);
	autofd int fd = open(path, O_RDONLY | O_CLOEXEC);

	gitconfig_start(&c, fd);
	assert_int_equal(gitconfig_next(&c), 1);
	assert_string_equal(c.name, "core.");
	assert_int_equal(gitconfig_next(&c), 1);
	assert_true(c.cut);
	assert_int_equal(gitconfig_next(&c), 1);
	assert_string_equal(c.name, "core.w");
	assert_false(c.cut);
	assert_int_equal(gitconfig_next(&c), 1);
	assert_string_equal(c.name, "");
	assert_int_equal(gitconfig_next(&c), 1);
	assert_string_equal(c.name, "y.k");
	assert_int_equal(gitconfig_next(&c), 0);

	(void)snprintf(path, sizeof(path), "%s/z", t->root);
	autofd int nul = open(path, O_RDONLY | O_CLOEXEC);

	gitconfig_start(&c, nul);
	assert_int_equal(gitconfig_next(&c), -EBADMSG);
	assert_int_equal(gitconfig_next(&c), -EBADMSG);
	(void)snprintf(path, sizeof(path), "%s/big", t->root);
	autofd int big = open(path, O_RDONLY | O_CLOEXEC);

	gitconfig_start(&c, big);
	assert_int_equal(gitconfig_next(&c), -EFBIG);
}

/* --- what is looked at when the session ends ---------------------------------------------------
 */

/* review - like find(), for what was left since then. */
static size_t review(struct fixture *t, const char *workspace, struct timespec since)
{
	struct gitdir_rule *found;
	size_t count;
	char path[PATH_MAX];
	struct error e = { 0 };

	(void)snprintf(path, sizeof(path), "%s/%s", t->root, workspace);
	assert_int_equal(gitreview(&t->arena, path, getuid(), since, t->rules, t->count, 0,
				 &found, &count, &e),
		0);
	t->rules = found;
	t->count = count;
	return count_kind(t, GITDIR_QUARANTINE);
}

/* earlier - a time before everything that is done from now on, and after what was done. */
static struct timespec earlier(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
	now.tv_sec -= 3600;
	return now;
}

/*
 * from_now - a time after everything that was done, and before what is done from now on. The change
 * times of files are as coarse as CLOCK_REALTIME_COARSE at most, and the review takes that for what
 * CLOCK_SLACK_NS of gitreview_child.c says.
 */
static struct timespec from_now(void)
{
	struct timespec done, now;

	assert_int_equal(clock_gettime(CLOCK_REALTIME, &done), 0);
	do
		assert_int_equal(clock_gettime(CLOCK_REALTIME_COARSE, &now), 0);
	while (now.tv_sec < done.tv_sec ||
		(now.tv_sec == done.tv_sec && now.tv_nsec <= done.tv_nsec));
	now.tv_nsec += 20000000;
	now.tv_sec += now.tv_nsec / 1000000000;
	now.tv_nsec %= 1000000000;
	return now;
}

static struct timespec later(void)
{
	struct timespec now = earlier();

	now.tv_sec += 7200;
	return now;
}

/* Everyday work leaves nothing to complain about. */
static void review_of_honest_work(void **state)
{
	struct fixture *t = *state;

	must(t, make_super);
	must(t, "cd w; echo 1 >f; git add f; git commit -q -m f; git worktree add -q ../out");
	find(t, "w");
	must(t,
		"cd w; git worktree add -q in; git worktree add -q ../new; git checkout -q -b t; echo 2 >f\n"
		"git commit -q -am 2; git checkout -q main; echo 3 >f; git commit -q -am 3\n"
		"git rebase t && exit 1; test -e .git/rebase-merge/git-rebase-todo");
	assert_int_equal(review(t, "w", earlier()), 0);
}

struct attack {
	const char *name, *prepare, *script;
	const char *found[3]; /* to be quarantined */
	const char *host; /* what the user does then; $R/pwned appears if the attack worked */
};

static const char evil_config[] =
	"evil() { printf '[core]\\n fsmonitor = \"touch %s/pwned;false\"\\n'"
	" $R >>\"$1\"; }; cd w\n";

#define UNFINISHED_REBASE \
	"git checkout -q -b t HEAD~1; echo t >g; git add g; git commit -q -m g\n" \
	"GIT_SEQUENCE_EDITOR=\"sed -i -e '1ibreak'\" git rebase -q -i main\n"

/* `git merge-x/../evil.sh` would be a path in the work tree. */
#define EVIL_SCRIPT \
	"mkdir git-merge-x; echo '#!/bin/sh' >evil.sh\n" \
	"echo \"touch $R/pwned\" >>evil.sh; chmod 0755 evil.sh\n"

#define EVIL_WORKTREE \
	"git worktree add -q d/in; cp -r .git e; evil e/config; echo $PWD/e >.git/worktrees/in/commondir\n"

#define D10 "/d/d/d/d/d/d/d/d/d/d"

static const struct attack attacks[] = {
	{ "a repository deep inside, that the index names", "",
		"git init -q a/b/evil; git -C a/b/evil commit -q --allow-empty -m x\n"
		"git update-index --add --cacheinfo 160000,$(git -C a/b/evil rev-parse HEAD),a/b/evil\n"
		"rm -r a/b/evil/.git/hooks; evil a/b/evil/.git/config",
		{ "w/a/b/evil/.git/config" }, "git status" },
	{ "the same by a gitfile and a split index", "",
		"git init -q evil; git -C evil commit -q --allow-empty -m x; mkdir -p a/b\n"
		"git update-index --split-index --add --cacheinfo"
		" 160000,$(git -C evil rev-parse HEAD),a/b\n"
		"mv evil/.git e; rmdir evil; evil e/config; echo 'gitdir: ../../e' >a/b/.git",
		{ "w/a/b/.git" }, "git status" },
	{ "a link where the message goes", "",
		"ln -sf $R/pwned .git/COMMIT_EDITMSG; echo evil >.git/SQUASH_MSG; echo 2 >f; git add f",
		{ "w/.git/COMMIT_EDITMSG" }, "git commit -q" },
	{ "a link where the reflog goes", "", "ln -sf $R/pwned .git/logs/refs/heads/main",
		{ "w/.git/logs/refs/heads/main" }, "git commit -q --allow-empty -m x" },
	{ "a rebase that was left with something to run", "",
		"git checkout -q -b t HEAD~1; GIT_SEQUENCE_EDITOR=\"sed -i -e '1ibreak'\" git rebase -q -i main\n"
		"echo \" x touch $R/pwned\" >>.git/rebase-merge/git-rebase-todo",
		{ "w/.git/rebase-merge/git-rebase-todo" }, "git rebase --continue" },
	{ "a worktree that leads to another configuration", "",
		"git worktree add -q in; cp -r .git e; evil e/config; echo $PWD/e >.git/worktrees/in/commondir",
		{ "w/.git/worktrees/in/commondir" }, "git worktree remove in" },
	{ "a repository in a repository that the index names", "",
		"git init -q a/b; git -C a/b commit -q --allow-empty -m x\n"
		"git init -q a/b/c; git -C a/b/c commit -q --allow-empty -m x\n"
		"C=$(git -C a/b/c rev-parse HEAD) B=$(git -C a/b rev-parse HEAD)\n"
		"git -C a/b update-index --add --cacheinfo 160000,$C,c\n"
		"git update-index --add --cacheinfo 160000,$B,a/b\n"
		"rm -r a/b/.git/hooks a/b/c/.git/hooks a/b/.git/config; evil a/b/c/.git/config",
		{ "w/a/b/c/.git/config" }, "git status" },
	{ "a rebase that names a way to merge", "",
		UNFINISHED_REBASE EVIL_SCRIPT "echo x/../evil.sh >.git/rebase-merge/strategy",
		{ "w/.git/rebase-merge/strategy" }, "git rebase --continue" },
	{ "a cherry-pick that does", "",
		"git checkout -q -b t HEAD~1; echo 2 >>f; git commit -q -am 2; echo 3 >>f; git commit -q -am 3\n"
		"git checkout -q main; git cherry-pick --strategy=none t~1 t && exit 1; rm -f .git/CHERRY_PICK_HEAD\n"
		"git rev-parse HEAD >.git/sequencer/head\n" EVIL_SCRIPT
		"printf '[options]\\n strategy = x/../evil.sh\\n' >.git/sequencer/opts",
		{ "w/.git/sequencer/opts" }, "git cherry-pick --continue" },
	{ "a rebase that goes on writing elsewhere", "",
		UNFINISHED_REBASE
		"rm -f .git/rebase-merge/done; ln -s $R/pwned .git/rebase-merge/done",
		{ "w/.git/rebase-merge/done" }, "git rebase --continue" },
	{ "a rebase made in an earlier session and moved in this one",
		"cd w\n" UNFINISHED_REBASE
		"echo \"exec touch $R/pwned\" >>.git/rebase-merge/git-rebase-todo\n"
		"mv .git/rebase-merge .git/x",
		"mv .git/x .git/rebase-merge", { "w/.git/rebase-merge/git-rebase-todo" },
		"git rebase --continue" },
	{ "reflogs made in an earlier session and moved in this one",
		"mkdir w/.git/x; ln -s $R/pwned w/.git/x/HEAD",
		"rm -r .git/logs; mv .git/x .git/logs", { "w/.git/logs/HEAD" },
		"git commit -q --allow-empty -m x" },
	{ "a link where the sparse checkout is kept", "",
		"ln -s $R/pwned .git/info/sparse-checkout", { "w/.git/info/sparse-checkout" },
		"git sparse-checkout set d" },
	{ "a link where the commit graph goes", "",
		"ln -s $R/pwned .git/objects/info/commit-graph",
		{ "w/.git/objects/info/commit-graph" }, "git commit-graph write --reachable" },
	{ "a mailbox that is applied with an option", "",
		"git checkout -q -b t HEAD~1; echo b >b; git add b; git commit -q -m b\n"
		"echo 9 >>f; git commit -q -am 9; git format-patch -q -2 --full-index --stdout >../p\n"
		"git checkout -q main; echo x >b; git add b; git commit -q -m bb; git am -q ../p && exit 1\n"
		"echo \" '--build-fake-ancestor=$R/pwned'\" >.git/rebase-apply/apply-opt",
		{ "w/.git/rebase-apply/apply-opt" }, "git am --skip" },
	{ "a link in a directory that cannot be listed", "",
		"ln -sf $R/pwned .git/COMMIT_EDITMSG; echo evil >.git/SQUASH_MSG; echo 2 >f; git add f\n"
		"chmod 0311 .git",
		{ "w/.git/COMMIT_EDITMSG" }, "git commit -q" },
	{ "a link among many files", "",
		"(cd .git; seq -f j%g 8000 | xargs touch)\n"
		"ln -sf $R/pwned .git/COMMIT_EDITMSG; echo evil >.git/SQUASH_MSG; echo 2 >f; git add f",
		{ "w/.git/COMMIT_EDITMSG" }, "git commit -q" },
	{ "a link in a repository behind many entries", "cp -r seed w/child",
		"seq -f j%g 3000 | xargs touch; cd child; ln -sf $R/pwned .git/COMMIT_EDITMSG\n"
		"echo evil >.git/SQUASH_MSG; echo 2 >f; git add f",
		{ "w/child/.git/COMMIT_EDITMSG" }, "cd child; git commit -q" },
	{ "a link in a git directory apart, behind many entries",
		"mkdir w/store; git init -q --separate-git-dir=w/store/c w/child; cd w/child; echo 1 >f; git add f\n"
		"git commit -q -m 1",
		"seq -f j%g 3000 | xargs touch; ln -sf $R/pwned store/c/COMMIT_EDITMSG\n"
		"echo evil >store/c/SQUASH_MSG; cd child; echo 2 >f; git add f",
		{ "w/store/c/COMMIT_EDITMSG" }, "cd child; git commit -q" },
	{ "a worktree among many", "",
		EVIL_WORKTREE "cd .git/worktrees; seq -f j%g 600 | xargs mkdir",
		{ "w/.git/worktrees/in/commondir" }, "git worktree remove d/in" },
	{ "a worktree among more than are looked at", "",
		EVIL_WORKTREE "cd .git/worktrees; seq -f j%g 3000 | xargs mkdir",
		{ "w/.git/worktrees" }, "git worktree remove d/in" },
	{ "a submodule's submodule behind many worktrees",
		"rm -rf w mid; git init -q mid; cd mid; git submodule --quiet add $R/seed inner\n"
		"git commit -q -m m; cd ..; git init -q w; cd w; git submodule --quiet add $R/mid mid\n"
		"git commit -q -m s; git submodule --quiet update --init --recursive",
		"mkdir .git/worktrees; (cd .git/worktrees; seq -f j%g 600 | xargs mkdir)\n"
		"cd .git/modules/mid/modules/inner; ln -sf $R/pwned COMMIT_EDITMSG; echo evil >SQUASH_MSG\n"
		"cd $R/w/mid/inner; echo 2 >f; git add f",
		{ "w/.git/modules/mid/modules/inner/COMMIT_EDITMSG" },
		"cd mid/inner; git commit -q" },
	{ "a link far down", "",
		"d=refs/heads; for i in $(seq 40); do d=$d/d; done; mkdir -p .git/$d .git/logs/$d\n"
		"ln -s $R/pwned .git/logs/$d/e; echo \"ref: $d/e\" >.git/HEAD",
		{ "w/.git/logs/refs/heads" D10 D10 D10 }, "git commit -q --allow-empty -m x" },
	{ "a gitfile where no repository was", "rm -rf w/.git",
		"git init -q e; evil e/.git/config; echo 'gitdir: e/.git' >.git", { "w/.git" },
		"git status" },
	{ "another link in place of .git", "mv w/.git w/real; ln -s real w/.git",
		"cp -r real e; evil e/config; rm .git; ln -s e .git", { "w/.git" },
		"git status" },
};

static bool pwned(const struct fixture *t)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/pwned", t->root);
	return access(path, F_OK) == 0;
}

/* What the user does then, in w. It may well fail: a part is missing. */
static void act(struct fixture *t, const struct attack *a, bool wall)
{
	char host[512];

	(void)snprintf(host, sizeof(host), "cd w; %s", a->host);
	(void)sh(t, host);
	if (pwned(t) == wall)
		fail_msg("%s: %s", a->name, wall ? "got through" : "would not work anyway");
}

/* one_attack - made once, and copied for the control arm; with the wall what the review names goes away. */
static void one_attack(struct fixture *t, const struct attack *a)
{
	char script[4096];

	must(t, "rm -rf w control pwned; cp -a prepared w");
	if (a->prepare[0])
		must(t, a->prepare);
	find(t, "w");
	const struct timespec since = from_now();

	(void)snprintf(script, sizeof(script), "%s%s", evil_config, a->script);
	must(t, script);
	size_t count = review(t, "w", since), expected = 0;

	for (; expected < 3 && a->found[expected]; expected++)
		expect(t, GITDIR_QUARANTINE, a->found[expected], true);
	if (count != expected) {
		show(t);
		fail_msg("%s: %zu instead of %zu", a->name, count, expected);
	}
	must(t,
		"mode=$(stat -Lc %a w/.git); chmod u+r w/.git; cp -a w control\n"
		"chmod $mode w/.git control/.git");
	for (size_t i = 0; i < t->count; i++)
		(void)snprintf(script, sizeof(script), "rm -r '%s'", t->rules[i].path),
			must(t, script);
	act(t, a, true);
	must(t, "chmod -R u+r w; rm -rf w; mv control w");
	act(t, a, false);
}

static void review_of_attacks(void **state)
{
	struct fixture *t = *state;

	must(t, "cp -r seed w; cd w; echo 1 >>f; git commit -q -am x; cd ..; mv w prepared");
	for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++)
		one_attack(t, &attacks[i]);
}

static void embedded(void **state)
{
	struct fixture *t = *state;

	must(t, make_embedded);
	find(t, "w");
	expect(t, GITDIR_PROTECT, "w/a/b/.git/config", true);
	expect(t, GITDIR_PROTECT, "w/a/b/.git/hooks", true);
	expect(t, GITDIR_PROTECT, "w/a/b/c/.git/config", true);
	expect(t, GITDIR_PROTECT, "w/a/in/.git", false);
	assert_null(rule(t, GITDIR_PROTECT, "w/a/free/.git/config")); /* the documented limit */
	nothing_outside(t, "w");
	must(t, "cd w; git update-index --split-index");
	find(t, "w");
	expect(t, GITDIR_PROTECT, "w/a/b/.git/config", true);
	must(t, "cd w; git worktree add -q ../o; cp -r ../seed/.git ../o/a/b");
	find(t, "o");
	expect(t, GITDIR_PROTECT, "o/a/b/.git/config", true);
	must(t,
		"rm -rf w o; git init -q --object-format=sha256 w; cd w; git init -q --object-format=sha256 a/b\n"
		"echo 1 >a/b/f; git -C a/b add f; git -C a/b commit -q -m one; git add a/b; git commit -q -m two");
	find(t, "w");
	expect(t, GITDIR_PROTECT, "w/a/b/.git/config", true);
	assert_int_equal(count_kind(t, GITDIR_NOTE), 0);
	must(t, "cd w; git worktree add -q ../o; cp -r a/b/.git ../o/a/b");
	find(t, "o");
	expect(t, GITDIR_PROTECT, "o/a/b/.git/config", true);
	assert_int_equal(count_kind(t, GITDIR_NOTE), 0);
	assert_int_equal(review(t, "o", earlier()), 0);
	must(t, "echo no index >w/.git/index");
	find(t, "w");
	assert_true(has_note(t, "not an index"));
}

/* What was a submodule when the session began stays one, though the index is another by now. */
static void review_of_embedded(void **state)
{
	struct fixture *t = *state;

	must(t, make_embedded);
	find(t, "w");
	const struct timespec since = from_now();

	must(t, "cd w; touch f; git status; echo 2 >f; git commit -q -am 2; git -C a/b commit -q --allow-empty -m x");
	assert_int_equal(review(t, "w", since), 0);
	/* The control arm: an entry of this session, for a repository of an earlier one. */
	find(t, "w");
	const struct timespec again = from_now();

	must(t, "cd w; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),a/free");
	assert_int_equal(review(t, "w", again), 2);
	expect(t, GITDIR_QUARANTINE, "w/a/free/.git/config", true);
	expect(t, GITDIR_QUARANTINE, "w/a/free/.git/hooks", true);
}

/* It is reviewed like any other, also where the index does not name it any more. */
static void review_in_embedded(void **state)
{
	struct fixture *t = *state;

	for (int wall = 0; wall < 2; wall++) {
		must(t, "rm -rf w pwned");
		must(t, make_embedded);
		find(t, "w");
		const struct timespec since = from_now();

		must(t,
			"cd w; git rm -q --cached a/b; cd a/b; echo evil >.git/SQUASH_MSG\n"
			"ln -sf $R/pwned .git/COMMIT_EDITMSG; echo 2 >f; git add f");
		assert_int_equal(review(t, "w", since), 1);
		expect(t, GITDIR_QUARANTINE, "w/a/b/.git/COMMIT_EDITMSG", true);
		if (wall)
			must(t, "rm w/a/b/.git/COMMIT_EDITMSG");
		(void)sh(t, "cd w/a/b; git commit -q");
		if (pwned(t) == wall)
			fail_msg("%s", wall ? "got through" : "would not work anyway");
	}
}

/*
 * The tools can leave more to be found than there is memory for. What was a repository before is looked at
 * all the same, and what was found is told beside the failure.
 */
static void review_out_of_memory(void **state)
{
	struct fixture *t = *state;
	struct arena small;
	struct gitdir_rule *found = NULL;
	size_t count = 0;
	char path[PATH_MAX];
	struct error e = { 0 };

	must(t, "cp -r seed w");
	find(t, "w");
	const struct timespec since = from_now();

	must(t,
		"cd w; ln -sf $R/pwned .git/COMMIT_EDITMSG; mkdir .git/worktrees; n=$(printf '%0200d' 0)\n"
		"for i in $(seq 400); do\n"
		"mkdir .git/worktrees/$i$n; mkdir -p d/$i$n; echo $PWD/d/$i$n/.git >.git/worktrees/$i$n/gitdir\n"
		"done");
	(void)snprintf(path, sizeof(path), "%s/w", t->root);
	assert_int_equal(arena_init(&small, 512u << 10), 0);
	assert_int_equal(gitreview(&small, path, getuid(), since, t->rules, t->count, 0, &found,
				 &count, &e),
		-ENOMEM);
	assert_true(count > 1); /* and what only its content could clear, unread */
	assert_int_equal(found[0].kind, GITDIR_QUARANTINE);
	assert_string_equal(strrchr(found[0].path, '/'), "/COMMIT_EDITMSG");
	arena_free(&small);
	/* The control arm. */
	assert_int_equal(review(t, "w", since), 1);
}

/* The workspace is a part of a repository: its submodules there are named by an index outside. */
static void review_of_a_part(void **state)
{
	struct fixture *t = *state;
	char script[4096];

	for (int wall = 0; wall < 2; wall++) {
		must(t,
			"rm -rf big pwned; cp -r seed big; cd big; mkdir w\n"
			"git -c protocol.file.allow=always submodule --quiet add ../seed w/a/listed\n"
			"cp -r ../seed w/own; C=$(git rev-parse HEAD)\n"
			"git update-index --add --cacheinfo 160000,$C,w/own --cacheinfo 160000,$C,w/b/evil\n"
			"git commit -q -m submodules");
		find(t, "big/w");
		expect(t, GITDIR_PROTECT, "big/w/a/listed/.git", true);
		const struct timespec since = from_now();

		(void)snprintf(script, sizeof(script), "%s%s", "mkdir -p w; ", evil_config);
		(void)snprintf(script + strlen(script), sizeof(script) - strlen(script),
			"cd ../big/w; mkdir b; cp -r ../../seed b/evil; evil b/evil/.git/config");
		must(t, script);
		assert_int_equal(review(t, "big/w", since), 2);
		expect(t, GITDIR_QUARANTINE, "big/w/b/evil/.git/config", true);
		expect(t, GITDIR_QUARANTINE, "big/w/b/evil/.git/hooks", true);
		for (size_t i = 0; wall && i < t->count; i++)
			if (t->rules[i].kind == GITDIR_QUARANTINE) {
				(void)snprintf(
					script, sizeof(script), "rm -r '%s'", t->rules[i].path);
				must(t, script);
			}
		(void)sh(t, "cd big; git status");
		if (pwned(t) == wall)
			fail_msg("%s", wall ? "got through" : "would not work anyway");
	}
}

/* The control arms are the times that are not after it. */
static void times_in_whole_seconds(void **state)
{
	static const struct timespec since = { 100, 500 };
	static const struct {
		struct timespec time;
		bool after;
	} cases[] = { { { 100, 500 }, true }, { { 100, 499 }, false },
		{ { 99, 999999999 }, false }, { { 101, 1 }, true }, { { 100, 0 }, true },
		{ { 99, 0 }, true }, { { 98, 0 }, false } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(gitfind_is_after(&cases[i].time, &since), cases[i].after);
}

/* What was there before the session is not its work. */
static void review_of_older_things(void **state)
{
	struct fixture *t = *state;

	must(t,
		"cp -r seed w; ln -s x w/.git/rr-cache\n"
		"cd w; git checkout -q -b t; echo 2 >f; git commit -q -am 2; git checkout -q main; echo 3 >f\n"
		"git commit -q -am 3; git rebase -x true t || true; test -e .git/rebase-merge");
	find(t, "w");
	assert_int_equal(review(t, "w", later()), 0);
	find(t, "w");
	assert_int_equal(review(t, "w", earlier()), 2);
}

static void index_reader(void **state)
{
	struct fixture *t = *state;
	static struct gitindex x;
	static const char *const broken[] = {
		"printf 'DIRC\\0\\0\\0\\2\\0\\0\\0\\1' >i",
		"printf 'DIRX\\0\\0\\0\\2\\0\\0\\0\\0' >i",
		"printf 'DIRC\\0\\0\\0\\5\\0\\0\\0\\0' >i",
		"printf 'DIRC' >i",
		"{ printf 'DIRC\\0\\0\\0\\2\\0\\0\\0\\1'; head -c 9000 /dev/zero | tr '\\0' a; } >i",
		"{ printf 'DIRC\\0\\0\\0\\4\\0\\0\\0\\1'; head -c 62 /dev/zero; printf '\\377\\377\\377\\177a\\0'; } >i",
	};
	static const char *const flags[] = { "--index-version 2", "--index-version 3",
		"--index-version 4" };
	char path[128], script[1024];

	(void)snprintf(path, sizeof(path), "%s/i", t->root);
	for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
		must(t, broken[i]);
		autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
		int result = gitindex_start(&x, fd, 20);

		while (result >= 0 && (result = gitindex_next(&x)) > 0)
			;
		assert_int_equal(result, -EBADMSG);
	}
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		(void)snprintf(script, sizeof(script),
			"rm -rf w i; git init -q w; cd w; B=$(echo x | git hash-object -w --stdin)\n"
			"C=$(git -C ../seed rev-parse HEAD)\n"
			"i=0; while [ $i -lt 500 ]; do printf \"100644 $B 0\\tdir/file$i\\n\"; i=$((i+1)); done |"
			" git update-index --index-info\n"
			"git update-index --add --cacheinfo 160000,$C,dir/file3x --cacheinfo 160000,$C,z\n"
			"echo n >new; git add -N new; git update-index %s; cp .git/index ../i",
			flags[i]);
		must(t, script);
		autofd int fd = open(path, O_RDONLY | O_CLOEXEC);

		assert_int_equal(gitindex_start(&x, fd, 20), 0);
		assert_int_equal(gitindex_next(&x), 1);
		assert_string_equal(x.name, "dir/file3x");
		assert_int_equal(gitindex_next(&x), 1);
		assert_string_equal(x.name, "z");
		assert_int_equal(gitindex_next(&x), 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_repository),
		TEST(plain),
		TEST(inside_a_bigger_repository),
		TEST(linked_worktree),
		TEST(worktrees_of_the_workspace),
		TEST(submodules),
		TEST(submodules_listed),
		TEST(embedded),
		TEST(too_many_embedded),
		TEST(few_descriptors),
		TEST(submodule_checkout),
		TEST(bare),
		TEST(bare_with_worktrees),
		TEST(children),
		TEST(links),
		TEST(named_by_config),
		TEST(a_work_tree_that_looks_bare),
		TEST(too_many),
		TEST(too_many_worktrees),
		TEST(forged),
		TEST(other_owner),
		TEST(work_in_plain),
		TEST(work_in_no_repository),
		TEST(work_in_linked_worktree),
		TEST(work_in_submodule),
		TEST(work_with_submodules),
		TEST(work_in_bare),
		TEST(review_of_honest_work),
		TEST(review_of_attacks),
		TEST(review_of_embedded),
		TEST(review_in_embedded),
		TEST(review_out_of_memory),
		TEST(review_of_a_part),
		TEST(review_of_older_things),
		cmocka_unit_test(times_in_whole_seconds),
		TEST(index_reader),
		TEST(config_reader),
		TEST(crowd_beside_a_split_index),
		TEST(config_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

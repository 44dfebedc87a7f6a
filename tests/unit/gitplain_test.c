/*
 * gitplain_test.c - what gitplain_check() takes for git's own work: what git really makes, and what looks like it.
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
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/git/gitplain.h"

extern char **environ;

struct fixture {
	char root[64];
	int fd;
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
	char made[] = "/tmp/gitplain-XXXXXX", text[128];

	if (!t || !mkdtemp(made))
		return -1;
	(void)snprintf(t->root, sizeof(t->root), "%s", made);
	t->fd = open(t->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(text, sizeof(text), "%s/global", t->root);
	(void)setenv("GIT_CONFIG_GLOBAL", text, 1);
	(void)setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	*state = t;
	must(t,
		"git config --global user.name A; git config --global user.email a@b\n"
		"git config --global init.defaultBranch main\n"
		"git config --global protocol.file.allow always\n"
		"git init -q seed; cd seed; echo 1 >f; git add f; git commit -q -m one\n");
	return t->fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct fixture *t = *state;

	must(t, "cd /; rm -rf \"$R\"");
	(void)close(t->fd);
	free(t);
	return 0;
}

static void expect(const struct fixture *t, const char *path, int result)
{
	int r = gitplain_check(t->fd, path, clock_now_ns() + 60000000000);

	if (r != result)
		fail_msg("%s: %d instead of %d", path, r, result);
}

/* Each script makes R/w; all that is asked about is plain. */
static void what_git_makes(void **state)
{
	static const char *const scripts[] = {
		"git init -q w",
		"git init -q --object-format=sha256 w; cd w; echo 1 >f; git add f; git commit -q -m 1",
		"git init -q w; cd w; echo 1 >f; git add f; git commit -q -m 1; git branch t; git gc -q",
		"git init -q w; git -C w config user.name 'A B <c>'; git -C w config user.email a@b",
		"git init -q w; git -C w remote add origin https://example.com/x.git",
		"git init -q w; git -C w remote add up git@example.com:a/x.git",
		"git init -q w; git -C w remote add up ssh://git@example.com:22/x.git",
		"git -c url.$R/seed.insteadOf=https://example.com/seed clone -q"
		" https://example.com/seed w",
		"git -c url.$R/seed.insteadOf=git@example.com:seed clone -q git@example.com:seed w\n"
		"cd w; git checkout -q -b t; git config branch.main.rebase true",
	};
	struct fixture *t = *state;

	for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++) {
		must(t, "rm -rf w");
		must(t, scripts[i]);
		expect(t, "w/.git", 1);
		expect(t, "w/.git/config", 1);
		must(t, "mkdir -p w/.git/hooks w/.git/branches");
		expect(t, "w/.git/hooks", 1);
		expect(t, "w/.git/branches", 1);
	}
}

/* A configuration behind a plain one: neither it nor the repository is plain. */
static void hostile_configurations(void **state)
{
	static const char *const lines[] = {
		"[core]\\n fsmonitor = touch x",
		"[core]\\n fsmonitor",
		"[core]\\n hooksPath = h",
		"[core]\\n sshCommand = x",
		"[core]\\n pager = x",
		"[core]\\n editor = x",
		"[core]\\n gitProxy = x",
		"[core]\\n askPass = x",
		"[core]\\n worktree = ..",
		"[core]\\n attributesFile = a",
		"[core]\\n excludesFile = /dev/watchdog",
		"[core]\\n bare = true\\n alternateRefsCommand = x",
		"[core \"x\"]\\n bare = true",
		"[core]\\n bare = a b",
		"[alias]\\n st = !x",
		"[include]\\n path = e",
		"[includeIf \"gitdir:/\"]\\n path = e",
		"[filter \"x\"]\\n clean = x",
		"[diff]\\n external = x",
		"[diff \"x\"]\\n textconv = x",
		"[merge \"x\"]\\n driver = x",
		"[credential]\\n helper = x",
		"[gpg]\\n program = x",
		"[uploadpack]\\n packObjectsHook = x",
		"[extensions]\\n worktreeConfig = true",
		"[extensions]\\n partialClone = x",
		"[protocol \"ext\"]\\n allow = always",
		"[url \"/x\"]\\n insteadOf = https://example.com/",
		"[submodule \"x\"]\\n update = !x",
		"[remote \"o\"]\\n url = /tmp/x",
		"[remote \"o\"]\\n url = ../x",
		"[remote \"o\"]\\n url = x",
		"[remote \"o\"]\\n url = file:///x",
		"[remote \"o\"]\\n url = ext::sh -c x",
		"[remote \"o\"]\\n url = a::https://x",
		"[remote \"o\"]\\n url = ssh://-oProxyCommand=x/y",
		"[remote \"o\"]\\n url = -x:y",
		"[remote \"o\"]\\n url = ./a:b",
		"[remote \"o\"]\\n url = a:/b:c\\n uploadpack = x",
		"[remote \"o\"]\\n pushurl = /x",
		"[remote \"o\"]\\n receivepack = x",
		"[remote \"o\"]\\n vcs = x",
		"[remote \"o\"]\\n proxy = x",
		"[remote \"o\"]\\n fetch = +refs/heads/*:refs/heads/*",
		"[remote \"../o\"]\\n url = https://x/",
		"[remote]\\n url = https://x/",
		"[branch \"main\"]\\n remote = .",
		"[branch \"main\"]\\n remote = /x",
		"[branch \"main\"]\\n remote = evil",
		"[branch \"main\"]\\n pushRemote = x",
		"[branch \"main\"]\\n mergeOptions = x",
		"[user]\\n signingKey = x",
		"[init]\\n templateDir = x",
		"[unknown]\\n key = x",
		"[core",
		"[core]\\n bare = \"",
	};
	struct fixture *t = *state;
	char script[512];

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		must(t, "rm -rf w; git init -q w; rm -rf w/.git/hooks");
		expect(t, "w/.git", 1);
		(void)snprintf(
			script, sizeof(script), "printf '%s\\n' >>w/.git/config", lines[i]);
		must(t, script);
		if (gitplain_check(t->fd, "w/.git/config", 0) != 0)
			fail_msg("plain: %s", lines[i]);
		expect(t, "w/.git", 0);
	}
}

struct hostile {
	const char *script, *path;
};

/* What is no configuration. Each begins with `git init -q w`, whose parts are plain. */
static void hostile_repositories(void **state)
{
	static const struct hostile cases[] = {
		{ "echo x >w/.git/hooks/pre-commit", "w/.git/hooks" },
		{ "echo x >w/.git/hooks/.sample", "w/.git/hooks" },
		{ "ln -s x w/.git/hooks/y.sample", "w/.git/hooks" },
		{ "mkdir w/.git/hooks/y.sample", "w/.git/hooks" },
		{ "mkfifo w/.git/hooks/y.sample", "w/.git/hooks" },
		{ "mv w/.git/hooks w/h; ln -s ../h w/.git/hooks", "w/.git/hooks" },
		{ "rm -r w/.git/hooks; echo x >w/.git/hooks", "w/.git/hooks" },
		{ "cd w/.git/hooks; seq -f %g.sample 500 | xargs touch", "w/.git/hooks" },
		{ "mkdir -p w/.git/branches; echo /x >w/.git/branches/x", "w/.git/branches" },
		{ "ln w/.git/config w/second", "w/.git/config" },
		{ "mv w/.git/config w/c; ln -s ../c w/.git/config", "w/.git/config" },
		{ "rm w/.git/config; mkfifo w/.git/config", "w/.git/config" },
		{ "rm w/.git/config; mkdir w/.git/config", "w/.git/config" },
		{ "printf '[user]\\n name = x\\0y\\n' >w/.git/config", "w/.git/config" },
		{ "yes '[user]' | head -c 2000000 >w/.git/config", "w/.git/config" },
		{ "echo ../e >w/.git/commondir", "" },
		{ "cp w/.git/config w/.git/config.worktree", "" },
		{ "mkdir w/.git/worktrees", "" },
		{ "mkdir w/.git/modules", "" },
		{ "mkdir w/.git/remotes", "" },
		{ "mkdir w/.git/rebase-merge", "" },
		{ "mkdir w/.git/sequencer", "" },
		{ "ln -s /x w/.git/COMMIT_EDITMSG", "" },
		{ "mkfifo w/.git/FETCH_HEAD", "" },
		{ "echo x >w/.git/info/attributes", "" },
		{ "ln -s /x w/.git/info/sparse-checkout", "" },
		{ "mkdir -p w/.git/objects/info; echo /x >w/.git/objects/info/alternates", "" },
		{ "rm -r w/.git/objects; ln -s /x w/.git/objects", "" },
		{ "echo none >w/.git/index", "" },
		{ "cd w; git update-index --add --cacheinfo 160000,$(git -C ../seed rev-parse HEAD),s",
			"" },
		{ "rm -r w/.git; git clone -q --shared seed w", "" },
		{ "rm -r w/.git; git clone -q seed w", "" },
		{ "mv w/.git w/g; ln -s g w/.git", "" },
		{ "mv w/.git w/g; echo 'gitdir: g' >w/.git", "" },
		{ "mv w x; ln -s x w", "w/.git/config" },
		{ "cd w/.git; seq -f j%g 500 | xargs touch", "" },
	};
	struct fixture *t = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		must(t, "rm -rf w x; git init -q w");
		expect(t, "w/.git", 1);
		must(t, cases[i].script);
		if (cases[i].path[0] && gitplain_check(t->fd, cases[i].path, 0) != 0)
			fail_msg("plain: %s", cases[i].script);
		if (gitplain_check(t->fd, "w/.git", 0) != 0)
			fail_msg("a plain repository: %s", cases[i].script);
	}
}

static void paths(void **state)
{
	struct fixture *t = *state;

	must(t, "git init -q w; cp w/.git/config w/.envrc");
	expect(t, "w/.git/config", 1);
	expect(t, "w/.git/nothing", 0);
	expect(t, "w/.envrc", 0);
	expect(t, "w/none/config", 0);
	expect(t, "../etc/config", 0);
	expect(t, "/etc/config", 0);
	expect(t, "w/../w/.git/config", 1); /* it stays below the root */
	/* Late, and no time to look. */
	assert_int_equal(gitplain_check(t->fd, "w/.git/config", 1), -ETIMEDOUT);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_git_makes),
		TEST(hostile_configurations),
		TEST(hostile_repositories),
		TEST(paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

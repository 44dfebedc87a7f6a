/*
 * cgroup_test.c - finding a place for groups, reading their figures, and, where a cgroup v2 is delegated to
 * the caller, groups themselves: made, entered, killed, removed, swept.
 *
 * Runs in: a test program, as root and as an ordinary user. Which place is chosen is tested on trees of
 * ordinary directories; what only the kernel does is tested on the kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/cgroup/cgroup.h"
#include "host/cgroup/cgroup_place.h"

#define NAME (session_name())
#define SKIP(why) \
	do { \
		print_message("skipped: " why "\n"); \
		skip(); \
	} while (0)

/* Of this process: the same test may run elsewhere on the machine at the same time. */
static const char *session_name(void)
{
	static char name[] = "carrel-aaaaaaaaaaaaaaaaaaaa";
	unsigned pid = (unsigned)getpid();

	for (size_t i = 0; i < 8; i++, pid >>= 4)
		name[7 + i] = (char)('a' + (pid & 15));
	return name;
}

/* --- where are we ----------------------------------------------------------------------------- */

struct locate_case {
	const char *mountinfo, *self;
	int result;
	const char *mount, *own;
};

#define V1 "30 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
#define V2(root, mount) \
	"31 25 0:27 " root " " mount " rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"

static const struct locate_case locate_cases[] = {
	{ V2("/", "/sys/fs/cgroup"), "0::/\n", 0, "/sys/fs/cgroup", "" },
	{ V2("/", "/sys/fs/cgroup"), "0::/a.slice/b.scope\n", 0, "/sys/fs/cgroup",
		"/a.slice/b.scope" },
	/* hybrid: version 1 beside it */
	{ V1 V2("/", "/sys/fs/cgroup/unified"), "4:memory:/x\n1:name=systemd:/y\n0::/z\n", 0,
		"/sys/fs/cgroup/unified", "/z" },
	/* a part of the tree, as in a container without a cgroup namespace */
	{ V2("/docker/1", "/sys/fs/cgroup"), "0::/docker/1/x\n", 0, "/sys/fs/cgroup", "/x" },
	{ V2("/docker/1", "/sys/fs/cgroup"), "0::/docker/1\n", 0, "/sys/fs/cgroup", "" },
	{ V2("/docker/1", "/sys/fs/cgroup"), "0::/docker/12\n", -EXDEV, NULL, NULL },
	{ V2("/docker/2", "/a") V2("/docker/1", "/b"), "0::/docker/1\n", 0, "/b", "" },
	/* outside of this cgroup namespace */
	{ V2("/", "/sys/fs/cgroup"), "0::/../x\n", -EXDEV, NULL, NULL },
	{ V2("/../..", "/sys/fs/cgroup"), "0::/x\n", -EXDEV, NULL, NULL },
	/* spaces and other bytes of the mount point */
	{ V2("/", "/a\\040b\\134c"), "0::/x y\n", 0, "/a b\\c", "/x y" },
	{ V1, "4:memory:/x\n0::/\n", -ENODEV, NULL, NULL },
	{ V2("/", "/sys/fs/cgroup"), "4:memory:/x\n", -ENODEV, NULL, NULL },
	{ V2("/", "/sys/fs/cgroup"), "", -ENODEV, NULL, NULL },
	{ "", "0::/\n", -ENODEV, NULL, NULL },
	{ "31 25\n31\n\n   - cgroup2\n", "0::/\n", -ENODEV, NULL, NULL },
};

static void test_locate(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(locate_cases) / sizeof(locate_cases[0]); i++) {
		const struct locate_case *c = &locate_cases[i];
		struct cgroup_location l = { .mount = "untouched" };
		char text[1024];

		(void)snprintf(text, sizeof(text), "%s", c->mountinfo);
		int r = cgroup_locate(text, c->self, &l);
		if (r != c->result)
			fail_msg("case %zu: %d", i, r);
		assert_string_equal(l.mount, r < 0 ? "untouched" : c->mount);
		assert_string_equal(l.own, r < 0 ? "" : c->own);
	}
}

/* --- which place ------------------------------------------------------------------------------ */

struct tree {
	char root[64];
	struct cgroup_location location;
};

static void write_text(const char *dir, const char *name, const char *text)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	autofd int fd = fd_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void assert_text(const struct tree *t, const char *path, const char *text)
{
	char whole[256], found[256];

	(void)snprintf(whole, sizeof(whole), "%s%s", t->root, path);
	autofd int fd = fd_open_at(AT_FDCWD, whole, O_RDONLY, 0);
	assert_true(fd >= 0);
	assert_true(fd_read_file(fd, found, sizeof(found) - 1) >= 0);
	assert_string_equal(found, text);
}

/* A directory that looks like a group, @path below the root. */
static void add_group(
	const struct tree *t, const char *path, const char *controllers, const char *below)
{
	char whole[256];

	(void)snprintf(whole, sizeof(whole), "%s%s", t->root, path);
	assert_true(mkdir(whole, 0755) == 0 || !*path);
	write_text(whole, "cgroup.controllers", controllers);
	write_text(whole, "cgroup.subtree_control", below);
	write_text(whole, "cgroup.procs", "");
	if (*path)
		write_text(whole, "cgroup.events", "populated 1\nfrozen 0\n");
}

static int start(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	(void)snprintf(t->root, sizeof(t->root), "/tmp/carrel-cgroup-test.XXXXXX");
	assert_non_null(mkdtemp(t->root));
	(void)snprintf(t->location.mount, sizeof(t->location.mount), "%s", t->root);
	*state = t;
	return 0;
}

static int stop(void **state)
{
	struct tree *t = *state;
	pid_t pid = fork();

	if (pid == 0) {
		(void)execl("/bin/rm", "rm", "-rf", t->root, (char *)NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	free(t);
	return 0;
}

/* The place for a caller in the group @own; "" is the root. Returns what choose returned. */
static int choose(struct tree *t, const char *own, unsigned need, struct cgroup_place *ret)
{
	(void)snprintf(t->location.own, sizeof(t->location.own), "%s", own);
	int r = cgroup_place_choose(&t->location, false, need, 0, ret);
	if (r >= 0)
		(void)close(ret->dir);
	return r;
}

static void assert_place(struct tree *t, const char *own, unsigned need, const char *expected)
{
	struct cgroup_place place;
	char whole[256];

	assert_int_equal(choose(t, own, need, &place), 0);
	(void)snprintf(whole, sizeof(whole), "%s%s", t->root, expected);
	assert_string_equal(place.path, whole);
	assert_int_equal(place.lack, CGROUP_LACK_NOTHING);
}

static void test_root_of_the_hierarchy(void **state)
{
	struct tree *t = *state;

	add_group(t, "", "cpuset cpu io memory pids\n", "cpu");
	assert_place(t, "", CGROUP_ALL, "");
	assert_text(t, "/cgroup.subtree_control", "+memory +pids ");
	assert_place(t, "", 0, "");
}

/* A process in a group that nobody delegated: beside it, not in it. */
static void test_beside(void **state)
{
	struct tree *t = *state;

	add_group(t, "", "cpu memory pids", "cpu memory pids");
	add_group(t, "/a", "cpu memory pids", "");
	add_group(t, "/a/shell", "", "");
	assert_place(t, "/a/shell", CGROUP_MEMORY, "/a");
	assert_text(t, "/a/cgroup.subtree_control", "+memory ");
	assert_text(t, "/a/shell/cgroup.subtree_control", "");
}

static void test_callers(void **state)
{
	struct tree *t = *state;

	add_group(t, "", "cpu memory pids", "cpu memory pids");
	add_group(t, "/a", "cpu memory pids", "memory pids");
	add_group(t, "/a/" CGROUP_CALLERS, "memory pids", "");
	assert_place(t, "/a/" CGROUP_CALLERS, CGROUP_MEMORY | CGROUP_PIDS, "/a");
	assert_text(t, "/a/cgroup.subtree_control", "memory pids");
}

static void test_delegated_by_mark(void **state)
{
	struct tree *t = *state;
	char path[256];

	add_group(t, "", "memory pids", "memory pids");
	add_group(t, "/a", "memory pids", "memory");
	(void)snprintf(path, sizeof(path), "%s/a", t->root);
	if (setxattr(path, "user.delegate", "0", 1, 0) < 0)
		SKIP("no user xattrs on this machine's /tmp");
	assert_place(t, "/a", CGROUP_MEMORY, "");
	assert_int_equal(setxattr(path, "user.delegate", "1", 1, 0), 0);
	assert_place(t, "/a", CGROUP_MEMORY, "/a");
}

/* What is not handed down yet is asked for above, level by level. */
static void test_from_above(void **state)
{
	struct tree *t = *state;
	struct cgroup_place place;

	add_group(t, "", "cpu memory pids", "");
	add_group(t, "/a", "", "");
	add_group(t, "/a/b", "", "");
	add_group(t, "/a/b/c", "", "");
	/* the fake does not hand down, so the level below fails; the one above was asked */
	assert_int_equal(choose(t, "/a/b/c", CGROUP_CPU, &place), -ENOENT);
	assert_text(t, "/cgroup.subtree_control", "+cpu ");
	assert_text(t, "/a/cgroup.subtree_control", "");
	assert_int_equal(place.dir, -1);
	assert_int_equal(place.lack, CGROUP_LACK_CONTROLLERS);
	assert_int_equal(place.lacking, CGROUP_CPU);
}

static void test_lacks(void **state)
{
	struct tree *t = *state;
	struct cgroup_place place;
	struct error e = { 0 };

	add_group(t, "", "cpu pids", "cpu pids");
	add_group(t, "/a", "cpu pids", "cpu pids");
	add_group(t, "/a/b", "cpu pids", "");
	assert_int_equal(choose(t, "/a/b", CGROUP_MEMORY | CGROUP_PIDS, &place), -ENOENT);
	assert_int_equal(place.lack, CGROUP_LACK_CONTROLLERS);
	assert_int_equal(place.lacking, CGROUP_MEMORY);
	assert_int_equal(
		cgroup_explain(&place, CGROUP_MEMORY | CGROUP_PIDS, ENOENT, &e), -ENOENT);
	assert_int_equal(e.code, ERROR_UNAVAILABLE);
	assert_string_equal(
		e.what, "memory cannot be limited: the controller is not handed down");
	assert_true(e.hint[0] != '\0');
	assert_int_equal(choose(t, "/a/gone", CGROUP_PIDS, &place), -ENOENT);
	assert_int_equal(place.lack, CGROUP_LACK_VIEW);
}

/* Looking changes nothing. */
static void test_dry(void **state)
{
	struct tree *t = *state;
	struct cgroup_place place;

	add_group(t, "", "cpu memory pids", "");
	assert_int_equal(cgroup_place_choose(&t->location, true, CGROUP_ALL, 0, &place), 0);
	(void)close(place.dir);
	assert_text(t, "/cgroup.subtree_control", "");
}

/* What is not handed down yet, but would be. */
static void test_dry_above(void **state)
{
	struct tree *t = *state;
	struct cgroup_place place;

	add_group(t, "", "cpu memory", "memory");
	add_group(t, "/a", "memory", "");
	add_group(t, "/a/b", "", "");
	(void)snprintf(t->location.own, sizeof(t->location.own), "/a/b");
	assert_int_equal(
		cgroup_place_choose(&t->location, true, CGROUP_MEMORY | CGROUP_CPU, 0, &place),
		0);
	(void)close(place.dir);
	assert_text(t, "/cgroup.subtree_control", "memory");
	assert_text(t, "/a/cgroup.subtree_control", "");
	assert_int_equal(
		cgroup_place_choose(&t->location, true, CGROUP_PIDS, 0, &place), -ENOENT);
	assert_int_equal(place.lack, CGROUP_LACK_CONTROLLERS);
}

static void test_names(void **state)
{
	char text[64];

	(void)state;
	cgroup_name_controllers(CGROUP_MEMORY, text, sizeof(text));
	assert_string_equal(text, "memory");
	cgroup_name_controllers(CGROUP_MEMORY | CGROUP_CPU, text, sizeof(text));
	assert_string_equal(text, "memory and cpu");
	cgroup_name_controllers(CGROUP_ALL, text, sizeof(text));
	assert_string_equal(text, "memory, pids and cpu");
}

/* --- figures ---------------------------------------------------------------------------------- */

static void test_figures(void **state)
{
	struct tree *t = *state;
	struct cgroup_figures f;

	write_text(t->root, "memory.peak", "1048576\n");
	write_text(t->root, "memory.events",
		"low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\noom_group_kill 1\n");
	write_text(t->root, "cpu.stat",
		"usage_usec 77\nuser_usec 7\nsystem_usec 70\nnr_periods 5\nnr_throttled 4\n"
		"throttled_usec 123\n");
	write_text(t->root, "pids.events", "max 6\n");
	struct cgroup g = { .dir = fd_open_at(AT_FDCWD, t->root, O_RDONLY | O_DIRECTORY, 0) };
	assert_true(g.dir >= 0);
	cgroup_read(&g, &f);
	assert_int_equal(f.memory_peak_bytes, 1048576);
	assert_int_equal(f.oom_events, 2);
	assert_int_equal(f.oom_kills, 3);
	assert_int_equal(f.cpu_us, 77);
	assert_int_equal(f.throttled_us, 123);
	assert_int_equal(f.throttled_periods, 4);
	assert_int_equal(f.tasks_refused, 6);
	assert_int_equal(f.tasks_peak, -1); /* no such file: not known, and not nothing */
	write_text(t->root, "cpu.stat", "usage_usec x\nuser_usec 7\n");
	cgroup_read(&g, &f);
	assert_int_equal(f.cpu_us, -1);
	assert_int_equal(f.throttled_us, -1);
	fd_close(&g.dir);
	cgroup_read(&g, &f);
	assert_int_equal(f.oom_kills, -1);
}

/* --- the kernel ------------------------------------------------------------------------------- */

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		/* A test that fails leaves nobody behind who would hold its output open. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	return pid;
}

static void assert_killed(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* A session's group without any controller; skips where there is none to be had. */
static struct cgroup_session begin_session(int note)
{
	struct cgroup_session s;
	struct error e = { 0 };

	assert_int_equal(cgroup_session_begin(&s, NAME, note, 0, 0, &e), 0);
	if (s.group.dir < 0)
		SKIP("no cgroup v2 delegated");
	return s;
}

static void test_groups(void **state)
{
	struct cgroup_session s = begin_session(-1);
	struct cgroup one, two;
	struct cgroup_figures f;
	struct error e = { 0 };

	(void)state;
	assert_int_equal(access(s.path, F_OK), 0);
	assert_int_equal(cgroup_make(&s, "exec-1", NULL, &one, &e), 0);
	assert_int_equal(cgroup_make(&s, "exec-2", NULL, &two, &e), 0);
	pid_t first = start_sleeper(), second = start_sleeper();
	assert_int_equal(cgroup_enter(&one, first), 0);
	assert_int_equal(cgroup_enter(&two, second), 0);
	assert_int_equal(cgroup_wait_empty(&one, 0), -ETIMEDOUT);
	assert_int_equal(cgroup_kill(&one), 0);
	assert_int_equal(cgroup_wait_empty(&one, 10000), 0);
	assert_killed(first);
	assert_int_equal(cgroup_enter(&one, first), -ESRCH);
	/* the other one is untouched */
	assert_int_equal(kill(second, 0), 0);
	assert_int_equal(cgroup_wait_empty(&two, 0), -ETIMEDOUT);
	cgroup_read(&two, &f);
	assert_true(f.cpu_us >= 0);
	assert_int_equal(cgroup_remove(s.group.dir, &one), 0);
	assert_int_equal(one.dir, -1);
	/* the session's end takes along what is left */
	(void)close(two.dir);
	assert_int_equal(cgroup_session_end(&s, &e), 0);
	assert_killed(second);
	assert_int_equal(access(s.path, F_OK), -1);
	assert_int_equal(s.group.dir, -1);
}

/* Groups that something inside made, deep and wide, go with the rest. */
static void test_deep(void **state)
{
	struct cgroup_session s = begin_session(-1);
	struct cgroup one;
	struct error e = { 0 };
	char path[256] = ".";

	(void)state;
	assert_int_equal(cgroup_make(&s, "exec-1", NULL, &one, &e), 0);
	for (int i = 0; i < 20; i++) {
		size_t length = strlen(path);

		(void)snprintf(path + length, sizeof(path) - length, "/side");
		assert_int_equal(mkdirat(one.dir, path, 0755), 0);
		path[length] = '\0';
		(void)snprintf(path + length, sizeof(path) - length, "/%d", i);
		assert_int_equal(mkdirat(one.dir, path, 0755), 0);
	}
	fd_close(&one.dir);
	assert_int_equal(cgroup_session_end(&s, &e), 0);
	assert_int_equal(access(s.path, F_OK), -1);
}

/* Groups of other dead sessions, of whoever ran here before, are found as well: how many is no matter. */
static void sweep_whatever_is_there(void)
{
	int r = cgroup_sweep(false, NULL, NULL, NULL);

	assert_true(r >= 0);
}

static void test_noted(void **state)
{
	struct tree *t = *state;
	struct error e = { 0 };
	autofd int note = fd_open_at(AT_FDCWD, t->root, O_RDONLY | O_DIRECTORY, 0);

	assert_int_equal(cgroup_sweep_noted(note, NAME, &e), 0); /* there is no note */
	struct cgroup_session s = begin_session(note);
	struct cgroup one;
	assert_text(t, "/" CGROUP_NOTE, s.path);
	assert_int_equal(cgroup_make(&s, "exec-1", NULL, &one, &e), 0);
	pid_t pid = start_sleeper();
	assert_int_equal(cgroup_enter(&one, pid), 0);
	/* It lives: nothing happens to it. */
	assert_int_equal(cgroup_sweep_noted(note, NAME, &e), 0);
	assert_int_equal(access(s.path, F_OK), 0);
	sweep_whatever_is_there();
	assert_int_equal(kill(pid, 0), 0);
	/* The sleeper holds the lock as well, having been forked from us. */
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_killed(pid);
	fd_close(&one.dir);
	fd_close(&s.group.dir);
	fd_close(&s.place);
	/* It is dead, but young: only the note tells that it can go. */
	sweep_whatever_is_there();
	assert_int_equal(access(s.path, F_OK), 0);
	assert_int_equal(cgroup_sweep_noted(note, NAME, &e), 0);
	assert_int_equal(access(s.path, F_OK), -1);
	assert_int_equal(cgroup_sweep_noted(note, NAME, &e), 0);
	assert_int_equal(e.code, ERROR_NONE);
}

/* A note that was made to point elsewhere removes nothing. */
static void test_forged_note(void **state)
{
	struct tree *t = *state;
	char victim[256], text[256];
	struct error e = { 0 };
	autofd int note = fd_open_at(AT_FDCWD, t->root, O_RDONLY | O_DIRECTORY, 0);

	(void)snprintf(victim, sizeof(victim), "%s/%s", t->root, NAME);
	assert_int_equal(mkdir(victim, 0755), 0);
	write_text(t->root, CGROUP_NOTE, victim); /* no cgroup */
	assert_int_equal(cgroup_sweep_noted(note, NAME, &e), 0);
	assert_int_equal(access(victim, F_OK), 0);
	(void)snprintf(text, sizeof(text), "%s/another", t->root);
	write_text(t->root, CGROUP_NOTE, text); /* another name */
	assert_int_equal(cgroup_sweep_noted(note, NAME, &e), -EBADMSG);
	assert_int_equal(e.code, ERROR_TEARDOWN);
}

/* Without a group every call is fine, and does nothing. */
static void test_none(void **state)
{
	struct cgroup none = CGROUP_NONE;
	struct cgroup_session s = CGROUP_SESSION_NONE;
	struct error e = { 0 };

	(void)state;
	assert_int_equal(cgroup_make(&s, "exec-1", NULL, &none, &e), 0);
	assert_int_equal(none.dir, -1);
	assert_int_equal(cgroup_enter(&none, getpid()), 0);
	assert_int_equal(cgroup_kill(&none), 0);
	assert_int_equal(cgroup_wait_empty(&none, 0), 0);
	assert_int_equal(cgroup_remove(-1, &none), 0);
	assert_int_equal(cgroup_session_end(&s, &e), 0);
	const struct cgroup_limits some = { .tasks = 5 };
	assert_true(cgroup_make(&s, "exec-1", &some, &none, &e) < 0);
	assert_int_equal(e.code, ERROR_UNAVAILABLE);
}

#define TREE(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_locate),
		TREE(test_root_of_the_hierarchy),
		TREE(test_beside),
		TREE(test_callers),
		TREE(test_delegated_by_mark),
		TREE(test_from_above),
		TREE(test_lacks),
		TREE(test_dry),
		TREE(test_dry_above),
		cmocka_unit_test(test_names),
		TREE(test_figures),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_deep),
		TREE(test_noted),
		TREE(test_forged_note),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * quarantine_test.c - quarantine_check(): what appeared at protected paths is renamed away, whatever it is and however
 * full the disk, and nothing else is touched.
 *
 * Runs in: a test program, as root and as an ordinary user.
 */
#include "tree_fixture.h"

#include <limits.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/arena.h"
#include "host/quarantine/quarantine.h"

#define SESSION "aaaaaaaaaaaaaaaaaaaa"
#define DIRECTORY ".carrel-quarantine-" SESSION

struct fixture {
	struct tree work; /* the workspace, below /tmp */
	struct arena arena;
	struct quarantine_result result;
	struct error error;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){ .result = { .arena = NULL } };
	tree_make(&f.work, "/tmp");
	assert_int_equal(arena_init(&f.arena, 1 << 20), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	arena_free(&f->arena);
	tree_drop(&f->work);
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
	f->result = (struct quarantine_result){ .arena = &f->arena };
	static const struct quarantine_log nowhere;

	return quarantine_check(items, count, SESSION, &nowhere, &f->result, &f->error);
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
	struct stat st = stat_of(f->work.fd, DIRECTORY);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(st.st_uid, geteuid());
	assert_text(f->work.fd, DIRECTORY "/.gitignore", "*\n");
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
	assert_int_equal(count_entries(f->work.fd, "."), 1);
}

/* --- what appears ---------------------------------------------------------------------------- */

static void test_file(void **state)
{
	struct fixture *f = *state;

	make_file(f->work.fd, ".envrc", "evil", 06755);
	const struct quarantine_move *m = check_one(f, ".envrc", 0, true);
	assert_string_equal(m->to, DIRECTORY "/.envrc.quarantined");
	assert_text(f->work.fd, m->to, "evil");
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
	assert_string_equal(m->to, DIRECTORY "/.git%2Fhooks.quarantined");
	int fd = open_dir(f->work.fd, m->to);
	assert_text(fd, "pre-commit", "evil");
	assert_text(fd, "sub/helper", "too");
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
	assert_true(S_ISLNK(stat_of(f->work.fd, m->to).st_mode));
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
	assert_string_equal(f->result.moves[0].to, DIRECTORY "/.git.quarantined");
	assert_true(S_ISLNK(stat_of(f->work.fd, DIRECTORY "/.git.quarantined").st_mode));
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
	assert_text(f->work.fd, m->to, "gitdir: /elsewhere");
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
	assert_true(S_ISLNK(stat_of(f->work.fd, m->to).st_mode));
	assert_text(f->work.fd, "elsewhere/tasks.json", "evil");
}

/* --- what must not be touched ------------------------------------------------------------------ */

/* Another name of the same file, and its mode, stay what they are. */
static void test_hard_links(void **state)
{
	struct fixture *f = *state;

	make_file(f->work.fd, "script", "users", 0755);
	assert_int_equal(linkat(f->work.fd, "script", f->work.fd, ".envrc", 0), 0);
	const struct quarantine_move *m = check_one(f, ".envrc", 0, true);
	assert_text(f->work.fd, m->to, "users");
	assert_int_equal(mode_of(f->work.fd, "script"), 0755);
	assert_int_equal(stat_of(f->work.fd, "script").st_nlink, 2);
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
	assert_true(exists(f->work.fd, DIRECTORY "/a%2Fb%2Fhooks.quarantined/hook"));
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
	assert_text(f->work.fd, DIRECTORY "/.git%2Fhooks.quarantined/hook", "evil");
}

/* --- whatever it is ---------------------------------------------------------------------------- */

static void test_deep(void **state)
{
	struct fixture *f = *state;

	make_dir(f->work.fd, ".git");
	make_chain(f->work.fd, ".git/hooks", 60, 0755);
	make_file(f->work.fd, ".git/hooks/pre-commit", "evil", 0755);
	(void)check_one(f, ".git/hooks", 4, true);
	assert_int_equal(count_entries(f->work.fd, ".git"), 0);
}

static void test_fifo(void **state)
{
	struct fixture *f = *state;

	/* Opening it would wait for a writer for ever. */
	assert_int_equal(mkfifoat(f->work.fd, ".envrc", 0600), 0);
	const struct quarantine_move *m = check_one(f, ".envrc", 0, true);
	assert_true(S_ISFIFO(stat_of(f->work.fd, m->to).st_mode));
}

/* --- other mounts, full disks ------------------------------------------------------------------- */

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	(void)close(fd);
	return done;
}

/* As an ordinary user in a user namespace, as the same user. */
static bool enter_namespaces(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char users[32], groups[32];

	if (uid == 0)
		return unshare(CLONE_NEWNS) == 0;
	(void)snprintf(users, sizeof(users), "%u %u 1", uid, uid);
	(void)snprintf(groups, sizeof(groups), "%u %u 1", gid, gid);
	return unshare(CLONE_NEWNS | CLONE_NEWUSER) == 0 &&
		put("/proc/self/setgroups", "deny") && put("/proc/self/uid_map", users) &&
		put("/proc/self/gid_map", groups);
}

/* In mount namespaces of its own, so that the test leaves nothing behind. 77: the machine does not let us. */
static void in_namespaces(void (*body)(struct fixture *f), struct fixture *f)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (!enter_namespaces() ||
			mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(77);
		body(f);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("skipped: a mount namespace is refused here\n");
		skip();
	}
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* cmocka's own word is lost in a child: the step that failed is its status. */
static void need(bool holds, int step)
{
	if (!holds)
		_exit(step);
}

static void mount_memory(struct fixture *f, const char *name, const char *options)
{
	struct statfs fs;
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", f->work.path, name);
	if (mount("tmpfs", path, "tmpfs", 0, options) < 0)
		_exit(77);
	/* Ours still leads to where nothing is mounted. */
	f->work.fd = open(f->work.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = openat(f->work.fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	need(fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC, 9);
	(void)close(fd);
}

static void other_mount(struct fixture *f)
{
	static const char there[] = "sub/m/" DIRECTORY "/sub%2Fm%2Fdeep%2F.envrc.quarantined";

	mount_memory(f, "sub/m", "size=1m");
	const struct quarantine_item items[] = { item_of(f, "sub/m/deep/.envrc", 10),
		item_of(f, "sub/m/.vscode", 5), item_of(f, ".envrc", 0) };
	make_dir(f->work.fd, "sub/m/deep");
	make_dir(f->work.fd, "sub/m/.vscode");
	make_file(f->work.fd, "sub/m/deep/.envrc", "evil", 0755);
	make_file(f->work.fd, ".envrc", "evil", 0755);
	need(check(f, items, 3) == 0 && f->result.count == 3, 1);
	need(!strcmp(f->result.moves[0].to, there), 2);
	need(exists(f->work.fd, there), 3);
	need(!exists(f->work.fd, "sub/m/.vscode") && !exists(f->work.fd, ".envrc"), 4);
	need(!strncmp(f->result.moves[2].to, DIRECTORY, strlen(DIRECTORY)), 5);
}

/* It goes to the top of that mount. */
static void test_other_mount(void **state)
{
	struct fixture *f = *state;

	make_dir(f->work.fd, "sub");
	make_dir(f->work.fd, "sub/m");
	in_namespaces(other_mount, f);
}

static void full_disk(struct fixture *f)
{
	/* The top, `.vscode`, a file in it, `.envrc`: no inode is left, and no page. */
	mount_memory(f, "m", "size=64k,nr_inodes=4");
	const struct quarantine_item items[] = { item_of(f, "m/.envrc", 2),
		item_of(f, "m/.vscode", 2) };
	make_dir(f->work.fd, "m/.vscode");
	make_file(f->work.fd, "m/.vscode/tasks.json", "evil", 0644);
	int fd = openat(f->work.fd, "m/.envrc", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	static const char page[4096];
	for (int pages = 0; pages < 64 && write(fd, page, sizeof(page)) > 0; pages++)
		continue;
	need(errno == ENOSPC && mkdirat(f->work.fd, "m/more", 0700) < 0, 1);
	need(check(f, items, 2) == 0 && f->result.count == 2, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct quarantine_move *m = &f->result.moves[i];

		need(m->to && !strncmp(m->to, "m/" DIRECTORY "-", strlen("m/" DIRECTORY "-")),
			3);
		need(exists(f->work.fd, m->to) && !exists(f->work.fd, m->from), 4);
	}
}

static void test_full_disk(void **state)
{
	struct fixture *f = *state;

	make_dir(f->work.fd, "m");
	in_namespaces(full_disk, f);
}

/* --- names ------------------------------------------------------------------------------------- */

static void test_same_path_twice(void **state)
{
	struct fixture *f = *state;
	struct quarantine_item items[2];

	items[0] = items[1] = item_of(f, ".envrc", 0);
	for (int i = 0; i < 2; i++) {
		make_file(f->work.fd, ".envrc", i ? "second" : "first", 0600);
		assert_int_equal(check(f, &items[i], 1), 0);
		assert_int_equal(f->result.count, 1);
		assert_string_equal(f->result.moves[0].to,
			i ? DIRECTORY "/.envrc.quarantined~2"
			  : DIRECTORY "/.envrc.quarantined");
	}
	assert_text(f->work.fd, DIRECTORY "/.envrc.quarantined", "first");
	assert_text(f->work.fd, DIRECTORY "/.envrc.quarantined~2", "second");
}

/* The session's name is known to who made it; somebody else's directory is not used. */
static void test_planted_directory(void **state)
{
	struct fixture *f = *state;
	const struct quarantine_item item = item_of(f, ".envrc", 0);

	for (int link = 0; link < 2; link++) {
		make_file(f->work.fd, ".envrc", "x", 0700);
		make_dir(f->work.fd, link ? "victim" : DIRECTORY);
		if (link)
			assert_int_equal(symlinkat("victim", f->work.fd, DIRECTORY), 0);
		else
			assert_int_equal(fchmodat(f->work.fd, DIRECTORY, 0777, 0), 0);
		assert_int_equal(check(f, &item, 1), 0);
		assert_int_equal(count_entries(f->work.fd, link ? "victim" : DIRECTORY), 0);
		assert_false(exists(f->work.fd, ".envrc"));
		assert_true(
			!strncmp(f->result.moves[0].to, DIRECTORY "-", strlen(DIRECTORY "-")));
		assert_text(f->work.fd, f->result.moves[0].to, "x");
		if (!link)
			assert_int_equal(unlinkat(f->work.fd, DIRECTORY, AT_REMOVEDIR), 0);
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
	assert_name(".git/hooks", ".git%2Fhooks.quarantined");
	assert_name(".git%2Fhooks", ".git%252Fhooks.quarantined");
	assert_name("a~2", "a%7E2.quarantined");
	assert_name("a b\n\xff", "a%20b%0A%FF.quarantined");
	for (size_t length = 1; length < 1000; length++) {
		memset(path, '\xe4', length);
		quarantine_name(path, length, one);
		assert_true(strlen(one) <= 212);
		path[length - 1] = '\xe5';
		quarantine_name(path, length, two);
		assert_string_not_equal(one, two);
	}
	memset(path, 'a', 200);
	quarantine_name(path, 200, one);
	assert_int_equal(strlen(one), 212);
	assert_null(strchr(one, '~'));
	quarantine_name(path, 199, two);
	assert_string_not_equal(one, two);
}

int main(void)
{
#define WITH_TREE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_TREE(test_nothing),
		WITH_TREE(test_file),
		WITH_TREE(test_directory),
		WITH_TREE(test_link_at_the_path),
		WITH_TREE(test_link_in_the_way),
		WITH_TREE(test_file_in_the_way),
		WITH_TREE(test_link_in_what_existed),
		WITH_TREE(test_hard_links),
		WITH_TREE(test_locked_directories),
		WITH_TREE(test_read_only_parent),
		WITH_TREE(test_deep),
		WITH_TREE(test_fifo),
		WITH_TREE(test_other_mount),
		WITH_TREE(test_full_disk),
		WITH_TREE(test_same_path_twice),
		WITH_TREE(test_planted_directory),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

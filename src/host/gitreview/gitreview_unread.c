/*
 * gitreview_unread.c - what is quarantined if the child that reviews could not say it: see
 * unread_all() in gitreview_shared.h.
 *
 * Runs in: the launcher, outside, when all processes of the session are dead.
 * May not: read a file that tools may have made; it lists directories, and looks at names and
 * kinds. Objects and refs always stay: all that goes can be made again, or is put back by its user.
 */
#include "host/gitreview/gitreview_shared.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#define NAMES_MAX 65536 /* of one git directory: git has a few dozen */
#define WORKTREES_MAX 1024
#define CHILDREN_MAX 256
#define GRACE_NS 200000000 /* to list directories in, when the child has had its time */

static const char why[] = "not looked at: git may obey it, or write through it";

/*
 * What only its content could clear: an index that makes repositories of the session's submodules, states of
 * unfinished operations, directories with a link somewhere in them.
 */
static const char *const unknown[] = { "index", "logs", "rr-cache", "rebase-merge",
	"rebase-apply", "sequencer", "info/sparse-checkout", "objects/info/commit-graph",
	"objects/info/commit-graphs", "objects/pack/multi-pack-index" };

/* Git writes to these names, and follows a link there. They are looked up by name, since many entries can hide them from a listing. */
static const char *const written[] = { "COMMIT_EDITMSG", "MERGE_MSG", "SQUASH_MSG",
	"TAG_EDITMSG", "NOTES_EDITMSG", "EDIT_DESCRIPTION", "FETCH_HEAD", "ORIG_HEAD",
	"MERGE_HEAD", "MERGE_MODE", "MERGE_RR", "MERGE_AUTOSTASH", "CHERRY_PICK_HEAD",
	"REVERT_HEAD", "REBASE_HEAD", "AUTO_MERGE", "BISECT_LOG", "BISECT_START",
	"BISECT_NAMES", "ADD_EDIT.patch", "HEAD", "packed-refs", "shallow", "gc.log", "objects",
	"refs", "info" };

struct unread {
	struct verdicts *v;
	const char *workspace;
	const struct gitdir_rule *start;
	size_t start_count;
	const struct timespec *since;
	int64_t deadline_ns;
	struct gitpath_list list, children;
	char path[PATH_MAX];
};

static const char *join_path(struct unread *u, const char *directory, const char *name)
{
	return arena_join(u->v->arena, directory, '/', name);
}

static void add_unread(struct unread *u, const char *directory, const char *name)
{
	const char *path = join_path(u, directory, name);

	for (size_t i = 0; path && i < u->v->count; i++)
		if (strcmp(u->v->rules[i].path, path) == 0)
			return;
	verdict_add(u->v, GITDIR_QUARANTINE, path, why);
}

/* was_known - is there a rule for @path, or for something right in it? */
static bool was_known(const struct unread *u, const char *path)
{
	size_t length = strlen(path);

	for (size_t i = 0; i < u->start_count; i++) {
		const char *known = u->start[i].path;

		if (strncmp(known, path, length) == 0 &&
			(known[length] == '\0' || known[length] == '/'))
			return true;
	}
	return false;
}

/* is_held - was @path read-only as a whole? */
static bool is_held(const struct unread *u, const char *path)
{
	for (size_t i = 0; i < u->start_count; i++)
		if (u->start[i].kind == GITDIR_PROTECT && u->start[i].exists &&
			strcmp(u->start[i].path, path) == 0)
			return true;
	return false;
}

static int open_list(struct gitpath_list *list, const char *path)
{
	list->at = list->length = 0;
	list->fd = gitpath_open(
		AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
	return list->fd;
}

/* own_links - links in the git directory itself that are new. */
static void own_links(struct unread *u, const char *path)
{
	const char *name;
	unsigned char type;
	struct stat st;
	autofd int fd = open_list(&u->list, path);

	for (unsigned seen = 0; fd >= 0 && seen < NAMES_MAX && !u->v->full; seen++) {
		if ((seen % 256 == 0 && clock_now_ns() > u->deadline_ns) ||
			gitpath_next(&u->list, &name, &type) <= 0)
			return;
		if (type == DT_LNK && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			gitfind_is_after(&st.st_ctim, u->since))
			add_unread(u, path, name);
	}
}

/* new_worktrees - those without a rule; all of them where there are more than fit. */
static void new_worktrees(struct unread *u, const char *path)
{
	const char *worktrees = join_path(u, path, "worktrees"), *name;
	unsigned char type;
	unsigned seen = 0;
	int result = 0;
	autofd int fd =
		worktrees && !is_held(u, worktrees) ? open_list(&u->list, worktrees) : -1;

	while (fd >= 0 && !u->v->full && (result = gitpath_next(&u->list, &name, &type)) > 0) {
		if (++seen > WORKTREES_MAX || clock_now_ns() > u->deadline_ns) {
			add_unread(u, path, "worktrees");
			return;
		}
		const char *worktree = join_path(u, worktrees, name);

		if (!worktree || !was_known(u, worktree))
			add_unread(u, worktrees, name);
	}
	if (result < 0)
		add_unread(u, path, "worktrees");
}

static void one_directory(struct unread *u, const char *path)
{
	autofd int fd = gitpath_open(
		AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);

	/* Without HEAD it is no repository to git; only a configuration could still include its files. */
	if (fd < 0 || gitpath_type(fd, "HEAD") == 0)
		return;
	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++) {
		const char *full = join_path(u, path, unknown[i]);

		if (gitpath_type(fd, unknown[i]) != 0 && full && !is_held(u, full))
			add_unread(u, path, unknown[i]);
	}
	for (size_t i = 0; i < sizeof(written) / sizeof(*written); i++) {
		struct stat st;

		if (fstatat(fd, written[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISLNK(st.st_mode) && gitfind_is_after(&st.st_ctim, u->since))
			add_unread(u, path, written[i]);
	}
	own_links(u, path);
	new_worktrees(u, path);
}

/* new_child - a direct child of the workspace that is a work tree since the session began. */
static void new_child(struct unread *u, const char *name)
{
	const char *path = join_path(u, u->workspace, name);
	const char *dot_git = path ? join_path(u, path, ".git") : NULL;
	int type = dot_git ? gitpath_type(AT_FDCWD, dot_git) : 0;

	if (type == 0 || was_known(u, dot_git))
		return;
	if (type == DT_DIR)
		one_directory(u, dot_git);
	else
		add_unread(u, path, ".git");
}

static void new_children(struct unread *u)
{
	const char *name;
	unsigned char type;
	autofd int fd = open_list(&u->children, u->workspace);

	for (unsigned seen = 0; fd >= 0 && seen < CHILDREN_MAX && !u->v->full; seen++) {
		if (gitpath_next(&u->children, &name, &type) <= 0)
			return;
		if (type == DT_DIR)
			new_child(u, name);
	}
}

/* watched - a link, or nothing, that had to stay what it was. */
static void watched(struct unread *u, const struct gitdir_rule *rule)
{
	int type = gitpath_type(AT_FDCWD, rule->path);
	ssize_t length = type == DT_LNK ? readlink(rule->path, u->path, sizeof(u->path)) : -1;
	bool same = rule->exists ? length >= 0 && (size_t)length == strlen(rule->target) &&
			memcmp(u->path, rule->target, (size_t)length) == 0
				 : type == DT_DIR;

	if (type != 0 && !same)
		verdict_add(u->v, GITDIR_QUARANTINE, rule->path, why);
}

void unread_all(struct verdicts *v, const char *workspace, const struct gitdir_rule *start,
	size_t start_count, struct timespec since)
{
	static const char *const files[] = { "/config", "/commondir" };
	struct unread *u = arena_alloc(v->arena, sizeof(*u));

	if (!u) {
		v->full = true;
		return;
	}
	u->v = v;
	u->workspace = workspace;
	u->start = start;
	u->start_count = start_count;
	u->since = &since;
	u->deadline_ns = clock_now_ns() + GRACE_NS;
	for (size_t i = 0; i < start_count && !v->full; i++) {
		const struct gitdir_rule *rule = &start[i];
		const char *file = strrchr(rule->path, '/');

		if (rule->kind == GITDIR_WATCH)
			watched(u, rule);
		if (rule->kind != GITDIR_PROTECT ||
			(strcmp(file, files[0]) != 0 && strcmp(file, files[1]) != 0))
			continue;
		const char *directory =
			arena_copy(v->arena, rule->path, (size_t)(file - rule->path));

		if (directory)
			one_directory(u, directory);
		else
			v->full = true;
	}
	new_children(u);
}

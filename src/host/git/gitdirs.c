/*
 * gitdirs.c - see gitdirs.h: what the workspace's own level says about git.
 *
 * Runs in: the launcher, outside, as the caller.
 * May not: walk the work tree. It lists the workspace's direct children, at most CHILDREN_MAX
 * of them, and otherwise only git directories, at most DIRECTORIES_MAX of submodules and of worktrees.
 */
#include "host/git/gitdirs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/git/gitfind.h"

#define CHILDREN_MAX 256
#define DIRECTORIES_MAX 512
#define GITLINKS_MAX 512
#define LISTED_ALL_MAX 8192         /* submodules that all .gitmodules list */
#define ITEMS_MAX 4096              /* git directories */
#define NAMES_MAX 32768             /* of git directories with a split index */
#define READ_MAX_BYTES (1ULL << 30) /* of indexes; a configuration counts 16 times */

/*
 * guard_bare - keep @path from becoming a bare repository. Git takes a directory that has HEAD,
 * objects and refs for one, and obeys the `config` beside them, as soon as its .git is no git
 * directory: removing .git/HEAD is enough for that. One of the three that is missing must stay
 * missing.
 */
static void guard_bare(struct finder *f, const char *path, const struct git_names *n)
{
	static const char why[] = "would make the work tree itself a git directory";

	if (!n->type[NAME_HEAD]) {
		gitfind_protect(f, gitfind_join(f, path, "HEAD"), 0, why);
		return;
	}
	if (gitfind_is_git(n) || n->type[NAME_COMMONDIR]) {
		gitfind_item(f, path, ROLE_MAIN, NULL);
		return;
	}
	gitfind_protect(f, gitfind_join(f, path, "commondir"), 0, why);
	gitfind_protect(
		f, gitfind_join(f, path, n->type[NAME_OBJECTS] ? "refs" : "objects"), 0, why);
}

/* follow_inside - a gitfile in the workspace names @fd (O_PATH) = @path, which lies in it as well. */
static void follow_inside(struct finder *f, int fd, const char *path, const char *worktree)
{
	struct git_names n;
	autofd int listed = gitpath_open(fd, ".", O_RDONLY | O_DIRECTORY, RESOLVE_BENEATH);

	if (listed < 0 || gitfind_names(f, listed, &n) < 0) {
		gitfind_rule(
			f, GITDIR_PROTECT, path, true, "a git directory that cannot be read");
		return;
	}
	if (!n.type[NAME_COMMONDIR]) {
		gitfind_item(f, path, ROLE_MAIN, worktree);
		return;
	}
	gitfind_item(f, path, ROLE_WORKTREE, worktree);
	autofd int common = gitpath_open(fd, "../..", O_PATH | O_DIRECTORY, 0);

	gitfind_missed(f, common);
	const char *where = common < 0 ? NULL : gitfind_canonical(f, common);

	if (where && gitfind_beneath(where, f->workspace))
		gitfind_item(f, where, ROLE_MAIN, NULL);
}

/*
 * follow_gitfile - where does the gitfile of @path lead? Only that of the workspace itself can
 * open a place outside.
 */
static void follow_gitfile(struct finder *f, const char *path)
{
	const char *dot_git = gitfind_join(f, path, ".git");
	bool own = path == f->workspace;

	if (!dot_git)
		return;
	if (gitfind_gitfile(f, path) < 0) {
		gitfind_note(f, dot_git, "not a gitfile that git would accept");
		return;
	}
	autofd int base = gitpath_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	autofd int fd = base < 0 ? base : gitpath_open(base, f->text, O_PATH | O_DIRECTORY, 0);
	const char *target = fd < 0 ? NULL : gitfind_canonical(f, fd);

	gitfind_missed(f, fd);
	if (!target)
		gitfind_note(f, dot_git, "names a git directory that cannot be opened");
	else if (gitfind_beneath(target, f->workspace))
		follow_inside(f, fd, target, path);
	else if (own)
		gitfind_outside(f, fd, target);
}

/* at_top - what @type, the kind of @path/.git, means. */
static void at_top(struct finder *f, const char *path, int type)
{
	const char *dot_git = gitfind_join(f, path, ".git");

	if (!dot_git)
		return;
	if (type == DT_DIR) {
		gitfind_item(f, dot_git, ROLE_MAIN, path);
		return;
	}
	gitfind_protect(f, dot_git, type, "names the git directory of this work tree");
	if (type == DT_REG)
		follow_gitfile(f, path);
	if (type != DT_LNK)
		return;
	autofd int fd = gitpath_open(AT_FDCWD, dot_git, O_PATH | O_DIRECTORY, 0);
	const char *target = fd < 0 ? NULL : gitfind_canonical(f, fd);

	gitfind_missed(f, fd);
	if (target && gitfind_beneath(target, f->workspace))
		gitfind_item(f, target, ROLE_MAIN, path);
	else
		gitfind_note(f, dot_git, "a link that leads out of the workspace: not granted");
}

/* one_child - a direct child of the workspace that has a .git of kind @type. */
static void one_child(struct finder *f, const char *path, int type)
{
	struct git_names n = { 0 };

	at_top(f, path, type);
	if (type == DT_REG)
		return;
	autofd int fd = gitfind_open(f, path);

	if (fd < 0 || gitfind_names(f, fd, &n) < 0)
		gitfind_note(f, path, "cannot be listed");
	else
		guard_bare(f, path, &n);
}

/* at_workspace - the workspace's own level, whose names are @n. */
static void at_workspace(struct finder *f, const struct git_names *n)
{
	const char *dot_git = gitfind_join(f, f->workspace, ".git");
	int type = n->type[NAME_DOT_GIT];

	if (type != 0) {
		at_top(f, f->workspace, type);
	} else if (gitfind_is_git(n)) {
		gitfind_protect(
			f, dot_git, 0, "would be obeyed instead of the bare repository");
	} else {
		/* `git init` goes on working; what the host would obey of it does not stay. */
		gitfind_rule(f, GITDIR_WATCH, dot_git, false,
			"anything but a directory would lead git to a place of its "
			"choice");
		gitfind_absent(f, dot_git);
	}
	if (type != DT_REG)
		guard_bare(f, f->workspace, n);
	if (type == 0)
		gitfind_above(f);
}

struct child {
	const char *path;
	int type; /* of its .git */
};

struct children {
	struct child *items;
	size_t count;
};

/* has_git - note the direct child @name if it has a .git. */
static void has_git(struct finder *f, const char *name, struct children *children)
{
	int length = snprintf(f->path, sizeof(f->path), "%s/.git", name);

	if (length < 0 || (size_t)length >= sizeof(f->path))
		return;
	int type = gitpath_type(f->workspace_fd, f->path);

	gitfind_missed(f, type);
	if (type == 0)
		return;
	const char *path = gitfind_join(f, f->workspace, name);
	struct child *grown = path
		? arena_push(f->arena, children->items, children->count, sizeof(*grown))
		: NULL;

	if (!grown) {
		f->full = true;
		return;
	}
	children->items = grown;
	grown[children->count++] = (struct child){ path, type };
}

/* scan_workspace - its names, and its children with a .git, among the first CHILDREN_MAX. */
static int scan_workspace(struct finder *f, struct git_names *names, struct children *children)
{
	const char *name;
	unsigned char type;
	unsigned seen = 0;
	int result;

	f->list.fd = f->workspace_fd;
	f->list.at = f->list.length = 0;
	while ((result = gitpath_next(&f->list, &name, &type)) > 0) {
		enum git_name known = gitfind_name(name);

		if (known < NAME_COUNT)
			names->type[known] = type;
		if (type == DT_DIR && known != NAME_DOT_GIT)
			has_git(f, name, children);
		if (++seen >= CHILDREN_MAX) {
			gitfind_note(f, f->workspace,
				"has more entries than are looked at for repositories");
			break;
		}
	}
	if (result != -EBADF) /* only open_workspace() with O_PATH gives that */
		gitfind_missed(f, result);
	return result == 0 ? 0 : gitfind_ask(f->workspace_fd, names);
}

static int compare(const void *a, const void *b)
{
	const struct gitdir_rule *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	return order ? order : (int)x->kind - (int)y->kind;
}

/* sort_rules - by path, and each once. What is both writable and protected is protected. */
static void sort_rules(struct finder *f)
{
	struct gitdir_rule *r = f->rules;
	size_t kept = 0;

	if (f->rule_count)
		qsort(r, f->rule_count, sizeof(*r), compare);
	for (size_t i = 0; i < f->rule_count; i++) {
		if (kept > 0 && strcmp(r[kept - 1].path, r[i].path) == 0) {
			if (r[kept - 1].kind == r[i].kind && r[i].kind != GITDIR_NOTE)
				continue;
			if (r[kept - 1].kind == GITDIR_WRITE && r[i].kind == GITDIR_PROTECT)
				kept--;
		}
		r[kept++] = r[i];
	}
	f->rule_count = kept;
}

static int find_all(struct finder *f)
{
	struct git_names names = { 0 };
	struct children children = { 0 };
	int result = scan_workspace(f, &names, &children);

	if (result < 0)
		return result;
	at_workspace(f, &names);
	for (size_t i = 0; i < children.count; i++)
		one_child(f, children.items[i].path, children.items[i].type);
	/* The list grows while it is worked through; each directory is in it once. */
	for (size_t i = 0, seen = 0; seen < f->item_count && !f->full; seen++) {
		for (; i < f->item_count && !f->full; i++)
			gitfind_directory(f, i);
		gitfind_indexed(f, seen);
	}
	return f->full ? -ENOMEM : 0;
}

static int open_workspace(struct finder *f, const char *path)
{
	int fd = gitfind_open(f, path);

	/* Without read permission the names that matter can still be asked for one by one. */
	if (fd == -EACCES)
		fd = gitpath_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	return fd;
}

int gitfind_all(
	struct finder *f, struct arena *a, const char *workspace, uid_t caller, struct error *e)
{
	f->arena = a;
	f->workspace = workspace;
	f->workspace_length = strlen(workspace);
	f->caller = caller;
	f->budget = DIRECTORIES_MAX;
	/* A session may add to what there was. */
	f->worktrees = f->since ? 2 * DIRECTORIES_MAX : DIRECTORIES_MAX;
	f->gitlinks = GITLINKS_MAX;
	f->listed = LISTED_ALL_MAX;
	/* The review is bounded by time: what it did not get to is quarantined unread. */
	f->left = f->since ? UINT64_MAX : READ_MAX_BYTES;
	f->items_max = f->since ? SIZE_MAX : ITEMS_MAX;
	f->names = f->since ? UINT64_MAX : NAMES_MAX;
	f->workspace_fd = open_workspace(f, workspace);
	if (f->workspace_fd < 0)
		return error_set(e, ERROR_WORKSPACE, "facts", -f->workspace_fd, workspace,
			"cannot look at the workspace");
	int result = find_all(f);

	if (result >= 0 && !f->since)
		result = f->missed;
	if (result < 0)
		return error_set(e, result == -ENOMEM ? ERROR_LIMIT : ERROR_WORKSPACE, "facts",
			-result, workspace, "cannot find out what git needs");
	return 0;
}

int gitdirs_find(struct arena *a, const char *workspace, uid_t caller,
	struct gitdir_rule **ret_rules, size_t *ret_count, struct error *e)
{
	struct finder *f = arena_alloc(a, sizeof(*f));

	if (!f)
		return error_set(e, ERROR_LIMIT, "facts", ERROR_OWN(ENOMEM), workspace,
			"the git repositories need more memory than is set aside");
	int result = gitfind_all(f, a, workspace, caller, e);

	fd_close(&f->workspace_fd);
	if (result < 0)
		return result;
	sort_rules(f);
	*ret_rules = f->rules;
	*ret_count = f->rule_count;
	return 0;
}

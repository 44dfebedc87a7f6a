/*
 * gitreview.c - what a session left in git directories: see gitreview.h.
 *
 * Runs in: the child that gitreview_child.c starts when all processes of the session are dead.
 * May not: change anything (it could not); it says what has to go. The reasons are in docs/git.md.
 */
#include "host/gitreview/gitreview_shared.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/tree/plainfile.h"

#define GITLINKS_MAX 4096

/* was_held - was @directory/@name, or what is it below, read-only in the session? */
static bool was_held(const struct review *r, const char *directory, const char *name)
{
	size_t length = strlen(directory);

	for (size_t i = 0; i < r->start_count; i++) {
		const struct gitdir_rule *rule = &r->start[i];

		if (rule->kind == GITDIR_PROTECT &&
			strncmp(rule->path, directory, length) == 0 &&
			rule->path[length] == '/' && strcmp(rule->path + length + 1, name) == 0)
			return true;
	}
	return false;
}

/* was_absent - was there no @name in the workspace when the session started? */
static bool was_absent(const struct review *r, const char *name)
{
	size_t length = r->f->workspace_length;

	for (size_t i = 0; i < r->start_count; i++) {
		const struct gitdir_rule *rule = &r->start[i];

		if (!rule->exists && strncmp(rule->path, r->f->workspace, length) == 0 &&
			rule->path[length] == '/' && strcmp(rule->path + length + 1, name) == 0)
			return true;
	}
	return false;
}

/* is_closed - was @path, or the directory that it is in, read-only as a whole? */
static bool is_closed(const struct review *r, const char *path)
{
	size_t length = (size_t)(strrchr(path, '/') - path);
	bool closed = false;

	for (size_t i = 0; i < r->start_count; i++) {
		const struct gitdir_rule *rule = &r->start[i];
		bool same = strcmp(rule->path, path) == 0;

		if (same && rule->kind == GITDIR_WRITE)
			return false;
		closed |= rule->kind == GITDIR_PROTECT && rule->exists &&
			(same ||
				(strlen(rule->path) == length &&
					memcmp(rule->path, path, length) == 0));
	}
	return closed;
}

static void review_watched(struct review *r, const struct gitdir_rule *rule)
{
	struct finder *f = r->f;
	int type = gitpath_type(AT_FDCWD, rule->path);

	if (!rule->exists && (type == 0 || type == DT_DIR))
		return;
	if (rule->exists && type == DT_LNK) {
		ssize_t length = readlink(rule->path, f->text, sizeof(f->text));

		if (length >= 0 && (size_t)length == strlen(rule->target) &&
			memcmp(f->text, rule->target, (size_t)length) == 0)
			return;
	}
	if (type != 0)
		review_quarantine(r, rule->path, rule->why);
}

/* --- repositories that the index makes submodules ----------------------------------------------
 */

/* is_untouched - @dot_git is what it was, and so is each directory between it and the workspace. */
static bool is_untouched(const struct review *r, const char *dot_git)
{
	struct finder *f = r->f;
	char *path = f->path;
	int length =
		snprintf(path, sizeof(f->path), "%s/config", dot_git + f->workspace_length + 1);

	if (length < 0 || (size_t)length >= sizeof(f->path))
		return false;
	if (review_is_new_at(r, f->workspace_fd, path))
		return false;
	for (char *end; (end = strrchr(path, '/'));) {
		*end = '\0';
		if (review_is_new_at(r, f->workspace_fd, path))
			return false;
	}
	return true;
}

/*
 * review_gitlink - the index says that @name in @worktree is a submodule. @new_only: pass over what
 * the session did not touch.
 */
static void review_gitlink(
	struct review *r, const char *worktree, const char *name, bool new_only)
{
	static const char why[] = "git status would obey this repository: the index names it";
	static const char *const obeyed[] = { "config", "config.worktree", "hooks",
		"commondir" };
	struct finder *f = r->f;
	const char *path = gitfind_join(f, worktree, name);
	const char *dot_git = path ? gitfind_join(f, path, ".git") : NULL;

	if (!dot_git || !gitfind_beneath(path, f->workspace) ||
		(new_only && is_untouched(r, dot_git)))
		return;
	autofd int fd = gitpath_open(f->workspace_fd, path + f->workspace_length + 1,
		O_PATH | O_DIRECTORY, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	/* A mode that stops this child does not stop root's git. */
	int type = fd == -EACCES && f->caller == 0 ? fd : fd < 0 ? 0 : gitpath_type(fd, ".git");

	gitfind_missed(f, fd);
	if (type == 0 || was_held(r, path, ".git") || was_held(r, dot_git, "config"))
		return;
	if (type != DT_DIR) {
		review_quarantine(r, dot_git, why);
		return;
	}
	autofd int git = gitpath_open(fd, ".git", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);

	/* Without a configuration it is still a repository, with an index of its own. */
	gitfind_missed(f, git);
	gitfind_item(f, dot_git, ROLE_MAIN, path);
	for (size_t i = 0; git >= 0 && i < sizeof(obeyed) / sizeof(*obeyed); i++)
		if (gitpath_type(git, obeyed[i]) != 0)
			review_quarantine(r, gitfind_join(f, dot_git, obeyed[i]), why);
}

/* review_gitlinks - those of the index @fd. 0 or -errno where they cannot be told. */
static int review_gitlinks(
	struct review *r, int fd, size_t hash_size, const char *worktree, bool new_only)
{
	struct finder *f = r->f;
	unsigned found = 0;
	int result = gitindex_start(&f->index, fd, hash_size);

	while (result >= 0 && (result = gitindex_next(&f->index)) > 0) {
		size_t used = f->arena->used, rules = f->rule_count, items = f->item_count;

		if (++found > GITLINKS_MAX || used > f->arena->size / 2)
			return -E2BIG;
		review_gitlink(r, worktree, f->index.name, new_only);
		if (f->rule_count == rules && f->item_count == items) {
			/* Nothing of this link is kept. The arena gives out zeroed memory, so it is zeroed here. */
			memset(f->arena->base + used, 0, f->arena->used - used);
			f->arena->used = used;
		}
	}
	return result;
}

/*
 * review_index - look at it even if it is not new: an earlier session may have made the entry, and
 * this one the repository.
 */
static void review_index(
	struct review *r, int dirfd, const char *name, const struct git_item *item)
{
	autofd int fd = plainfile_open(dirfd, name, 0, false);
	/* Its owner may not read it now, but git may: as root, or after the mode has changed. */
	bool locked = fd == -EACCES && review_is_new_at(r, dirfd, name);

	gitfind_missed(r->f, fd);
	if (locked ||
		(fd >= 0 &&
			review_gitlinks(r, fd, item->sha256 ? 32 : 20, item->worktree, false) <
				0))
		review_quarantine(r, gitfind_join(r->f, item->path, name),
			"not an index whose submodules can be told");
}

/* review_indexes - the index, and the shared ones that a split index is made of. */
static void review_indexes(struct review *r, int fd, const struct git_item *item)
{
	const char *parts[GITFIND_PARTS_MAX];
	int count = gitfind_parts(r->f, fd, parts);

	review_index(r, fd, "index", item);
	for (int i = 0; i < count; i++)
		review_index(r, fd, parts[i], item);
	if (count < 0 && gitpath_type(fd, "index") != 0) /* without it the parts are nothing */
		review_quarantine(r, gitfind_join(r->f, item->path, "index"),
			"more parts of an index than are looked at");
}

/*
 * review_above - the index of the repository that the workspace is a part of was read-only; the
 * submodules that it names here were not.
 */
static void review_above(struct review *r)
{
	struct finder *f = r->f;
	const char *file = gitfind_join(f, f->above, "index");
	static const size_t sizes[] = { 20, 32 }; /* one that is not the right one ends soon */

	for (size_t i = 0; file && i < sizeof(sizes) / sizeof(*sizes); i++) {
		autofd int fd = plainfile_open(AT_FDCWD, file, 0, false);

		gitfind_missed(f, fd);
		if (fd < 0 || review_gitlinks(r, fd, sizes[i], f->above_worktree, true) == 0)
			return;
	}
	gitfind_note(f, file, "not an index whose submodules can be told");
}

static bool is_known(const struct review *r, const char *path)
{
	for (size_t i = 0; i < r->known_count; i++)
		if (strcmp(r->known[i], path) == 0)
			return true;
	return false;
}

/*
 * review_known - look at the git directories that were there before anything is searched for: tools
 * can leave more to be found than there is memory for. What is looked at here takes none, whatever
 * they put in.
 */
static void review_known(struct review *r)
{
	static const char *const files[] = { "/config", "/commondir" };
	struct finder *f = r->f;

	r->known = arena_array(f->arena, r->start_count, sizeof(*r->known));
	f->full |= !r->known && r->start_count > 0;
	for (size_t i = 0; r->known && i < r->start_count; i++) {
		const struct gitdir_rule *rule = &r->start[i];
		const char *file = strrchr(rule->path, '/');

		if (rule->kind != GITDIR_PROTECT || !rule->exists ||
			(strcmp(file, files[0]) != 0 && strcmp(file, files[1]) != 0))
			continue;
		const char *path =
			arena_copy(f->arena, rule->path, (size_t)(file - rule->path));
		autofd int fd = path ? gitfind_open(f, path) : -ENOMEM;

		int head = fd < 0 ? fd : gitpath_type(fd, "HEAD");

		gitfind_missed(f, head);
		/* Without a HEAD it is a file that some configuration includes. */
		if (head <= 0 || is_known(r, path))
			continue;
		r->known[r->known_count++] = path;
		review_links(r, fd, path);
		review_states(r, fd, path);
	}
}

/* hold - look at @directory, whose `config` was held: a repository, or what some config includes. */
static void hold(struct finder *f, const char *directory)
{
	static const char dot_git[] = "/.git";
	size_t length = strlen(directory), tail = sizeof(dot_git) - 1;
	const char *head = gitfind_join(f, directory, "HEAD");

	if (length > tail && strcmp(directory + length - tail, dot_git) == 0) {
		const char *worktree = arena_copy(f->arena, directory, length - tail);
		int type = gitpath_type(AT_FDCWD, directory);

		gitfind_missed(f, type);
		if (!worktree)
			f->full = true;
		else if (type == DT_DIR)
			gitfind_item(f, directory, ROLE_MAIN, worktree);
	} else if (head) {
		int type = gitpath_type(AT_FDCWD, head);

		gitfind_missed(f, type);
		/* Its gitfile may lie behind any number of entries; its config names the work tree. */
		if (type > 0)
			gitfind_item(f, directory, ROLE_MODULE, NULL);
	}
}

/*
 * review_held - the repositories whose configuration was held need not be found again: tools can put any
 * number of entries before them, and take them out of an index.
 */
static void review_held(struct review *r)
{
	static const char config[] = "/config";
	struct finder *f = r->f;
	size_t tail = sizeof(config) - 1, first = f->item_count;

	for (size_t i = 0; i < r->start_count; i++) {
		const char *path = r->start[i].path;
		size_t length = strlen(path);

		if (r->start[i].kind != GITDIR_PROTECT || length <= tail ||
			strcmp(path + length - tail, config) != 0 ||
			!gitfind_beneath(path, f->workspace))
			continue;
		const char *directory = arena_copy(f->arena, path, length - tail);

		if (!directory)
			f->full = true;
		else
			hold(f, directory);
	}
	for (size_t i = first; i < f->item_count && !f->full; i++)
		gitfind_directory(f, i);
}

/* --- one git directory ------------------------------------------------------------------------
 */

/* review_worktree - .git/worktrees/NAME that `git worktree add` made, or something else did. */
static void review_worktree(struct review *r, int fd, const char *path)
{
	struct finder *f = r->f;

	if (is_closed(r, path))
		return;
	if (gitpath_type(fd, "config.worktree") != 0 && !was_held(r, path, "config.worktree"))
		review_quarantine(r, gitfind_join(f, path, "config.worktree"),
			"git runs programs that it names");
	if (gitpath_type(fd, "commondir") == 0 || was_held(r, path, "commondir"))
		return;
	ssize_t length = gitpath_read(fd, "commondir", f->text, sizeof(f->text) - 1);

	if (length == 6 && memcmp(f->text, "../..\n", 6) == 0)
		return;
	review_quarantine(r, gitfind_join(f, path, "commondir"),
		"leads git to a configuration of its maker's choice");
}

static void review_directory(struct review *r, const struct git_item *item)
{
	struct finder *f = r->f;

	if (item->role == ROLE_CROWD) {
		if (!is_closed(r, item->path))
			review_quarantine(r, item->path, "more worktrees than are looked at");
		return;
	}
	autofd int fd = gitfind_open(f, item->path);

	if (fd == -ENOENT)
		return;
	if (fd < 0) {
		gitfind_note(f, item->path, "could not be reviewed");
		return;
	}
	if (!is_known(r, item->path)) {
		review_links(r, fd, item->path);
		review_states(r, fd, item->path);
	}
	if (item->role == ROLE_WORKTREE || item->role == ROLE_OTHER)
		review_worktree(r, fd, item->path);
	/* The index of a repository outside is the main work tree's, and was read-only. */
	if (item->worktree && item->role != ROLE_COMMON)
		review_indexes(r, fd, item);
}

int review_all(struct arena *a, const char *workspace, uid_t caller, struct timespec since,
	const struct gitdir_rule *start, size_t start_count, struct gitdir_rule **ret_rules,
	size_t *ret_count, struct error *e)
{
	struct finder *f = arena_alloc(a, sizeof(*f));
	struct review *r = arena_alloc(a, sizeof(*r));

	*ret_count = 0;
	if (!f || !r)
		return error_set(e, ERROR_LIMIT, "close", ERROR_OWN(ENOMEM), workspace,
			"the git repositories need more memory than is set aside");
	f->since = &since;
	f->arena = a;
	f->caller = caller;
	f->start = start;
	f->start_count = start_count;
	r->f = f;
	r->since = since;
	r->start = start;
	r->start_count = start_count;
	review_known(r);
	struct gitdir_rule *first = f->rules;
	size_t first_count = f->rule_count;

	*ret_rules = first;
	*ret_count = first_count;
	f->rules = NULL;
	f->rule_count = 0;
	int result = gitfind_all(f, a, workspace, caller, e);
	autofd int fd = f->workspace_fd;

	if (result < 0)
		return result;
	review_held(r);
	f->rules = first;
	f->rule_count = first_count;
	for (size_t i = 0; i < start_count; i++)
		if (start[i].kind == GITDIR_WATCH)
			review_watched(r, &start[i]);
	if (was_absent(r, ".git"))
		gitfind_above(f);
	if (f->above)
		review_above(r);
	/* The list grows while it is worked through. */
	for (size_t i = 0; i < f->item_count && !f->full; i++) {
		const struct git_item item = f->items[i]; /* the list may move */

		review_directory(r, &item);
	}
	*ret_rules = f->rules;
	*ret_count = f->rule_count;
	if (f->full)
		return error_set(e, ERROR_LIMIT, "close", ERROR_OWN(ENOMEM), workspace,
			"the git repositories need more memory than is set aside");
	return f->missed;
}

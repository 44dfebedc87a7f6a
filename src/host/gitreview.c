/*
 * gitreview.c - what a session left in git directories: see gitdirs_review() in gitdirs.h.
 *
 * Runs in: the launcher, outside, when all processes of the session are dead.
 * May not: change anything; it says what has to go. The reasons are in docs/git.md.
 */
#include "host/gitdirs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/gitfind.h"
#include "host/gitindex.h"

#define ENTRIES_MAX 4096
#define LOG_DIRECTORIES_MAX 512
#define LIST_MAX (1u << 20)
#define GITLINKS_MAX 4096
#define CLOCK_SLACK_NS 20000000 /* file times are as coarse as the kernel's tick */

struct review {
	struct finder *f;
	struct timespec since;
	const struct gitdir_rule *start;
	size_t start_count;
	struct gitindex index;
	char *todo; /* LIST_MAX + 1 bytes once one had to be read */
};

static void quarantine(struct review *r, const char *path, const char *why)
{
	gitfind_rule(r->f, GITDIR_QUARANTINE, path, true, why);
}

/* is_new - did the session make or touch it? The change time is the kernel's, not the tools'. */
static bool is_new(const struct review *r, const struct stat *st)
{
	return st->st_ctim.tv_sec > r->since.tv_sec ||
		(st->st_ctim.tv_sec == r->since.tv_sec &&
			st->st_ctim.tv_nsec >= r->since.tv_nsec);
}

static bool is_new_at(const struct review *r, int dirfd, const char *name)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_new(r, &st);
}

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
		quarantine(r, rule->path, rule->why);
}

/* --- an unfinished rebase ---------------------------------------------------------------------
 */

/* is_tame - a line of a todo list that makes git run nothing. Unknown words are not tame. */
static bool is_tame(const char *line, size_t length)
{
	static const char *const tame[] = { "pick", "p", "reword", "r", "edit", "e", "squash",
		"s", "fixup", "f", "break", "b", "drop", "d", "label", "l", "reset", "t",
		"merge", "m", "update-ref", "u", "noop" };
	size_t start = 0, end;

	while (start < length && strchr(" \t\r\v\f", line[start]))
		start++;
	if (start == length || line[start] == '#')
		return true;
	for (end = start; end < length && !strchr(" \t\r\v\f", line[end]);)
		end++;
	for (size_t i = 0; i < sizeof(tame) / sizeof(*tame); i++)
		if (strlen(tame[i]) == end - start &&
			memcmp(tame[i], line + start, end - start) == 0)
			return true;
	return false;
}

static bool is_tame_file(struct review *r, int fd, const char *path)
{
	if (!r->todo)
		r->todo = arena_alloc(r->f->arena, LIST_MAX + 1);
	char *text = r->todo;
	ssize_t length = text ? gitpath_read(fd, path, text, LIST_MAX) : -ENOMEM;

	if (length < 0)
		return false;
	for (char *line = text, *end = text + length; line < end;) {
		char *stop = memchr(line, '\n', (size_t)(end - line));

		if (!is_tame(line, (size_t)((stop ? stop : end) - line)))
			return false;
		line = stop ? stop + 1 : end;
	}
	return true;
}

static void review_rebase(struct review *r, int fd, const char *path)
{
	static const char todo[] = "rebase-merge/git-rebase-todo";

	if (is_new_at(r, fd, todo) && !is_tame_file(r, fd, todo))
		quarantine(r, gitfind_join(r->f, path, todo),
			"git rebase --continue would run what it says");
}

/* --- symbolic links ---------------------------------------------------------------------------
 */

static const char link_why[] = "git would write through this link";

struct log_directories {
	const char **paths;
	size_t count;
};

static void add_logs(struct review *r, struct log_directories *logs, const char *path)
{
	if (logs->count == LOG_DIRECTORIES_MAX) {
		gitfind_note(r->f, path, "more reflogs than are looked at");
		return;
	}
	const char **grown =
		path ? arena_push(r->f->arena, logs->paths, logs->count, sizeof(*grown)) : NULL;

	if (!grown) {
		r->f->full = true;
		return;
	}
	logs->paths = grown;
	grown[logs->count++] = path;
}

/* review_links - new links in @path; its directories into @ret_below, where one is given. */
static void review_links(struct review *r, const char *path, struct log_directories *ret_below)
{
	struct finder *f = r->f;
	const char *name;
	unsigned char type;
	unsigned seen = 0;
	int result;
	autofd int fd = gitpath_open(
		AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);

	if (fd < 0)
		return;
	f->list.fd = fd;
	f->list.at = f->list.length = 0;
	while ((result = gitpath_next(&f->list, &name, &type)) > 0) {
		if (type == DT_LNK && is_new_at(r, fd, name))
			quarantine(r, gitfind_join(f, path, name), link_why);
		if (type == DT_DIR && ret_below)
			add_logs(r, ret_below, gitfind_join(f, path, name));
		if (++seen > ENTRIES_MAX || f->full)
			break;
	}
	if (result != 0)
		gitfind_note(f, path, "not looked at to its end");
}

static void review_logs(struct review *r, const char *path)
{
	struct log_directories logs = { 0 };

	add_logs(r, &logs, gitfind_join(r->f, path, "logs"));
	for (size_t i = 0; i < logs.count && !r->f->full; i++)
		review_links(r, logs.paths[i], &logs);
}

/* --- repositories that the index makes submodules ----------------------------------------------
 */

/* review_gitlink - the index says that @name in @worktree is a submodule. */
static void review_gitlink(struct review *r, const char *worktree, const char *name)
{
	static const char why[] = "git status would obey this repository: the index names it";
	static const char *const obeyed[] = { "config", "config.worktree", "hooks",
		"commondir" };
	struct finder *f = r->f;
	const char *path = gitfind_join(f, worktree, name);
	const char *dot_git = path ? gitfind_join(f, path, ".git") : NULL;

	if (!dot_git || !gitfind_beneath(path, f->workspace))
		return;
	autofd int fd = gitpath_open(f->workspace_fd, path + f->workspace_length + 1,
		O_PATH | O_DIRECTORY, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	int type = fd < 0 ? 0 : gitpath_type(fd, ".git");

	if (type == 0 || was_held(r, path, ".git") || was_held(r, dot_git, "config"))
		return;
	if (type != DT_DIR) {
		quarantine(r, dot_git, why);
		return;
	}
	autofd int git = gitpath_open(fd, ".git", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);

	for (size_t i = 0; git >= 0 && i < sizeof(obeyed) / sizeof(*obeyed); i++)
		if (gitpath_type(git, obeyed[i]) != 0)
			quarantine(r, gitfind_join(f, dot_git, obeyed[i]), why);
}

/*
 * review_index - not only where it is new: an earlier session may have made the entry, and this one
 * the repository.
 */
static void review_index(
	struct review *r, int dirfd, const char *name, const struct git_item *item)
{
	struct finder *f = r->f;
	struct stat st;
	unsigned found = 0;
	int result;
	autofd int fd =
		gitpath_open(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	result = gitindex_start(&r->index, fd, item->sha256 ? 32 : 20);
	while (result >= 0 && (result = gitindex_next(&r->index)) > 0) {
		size_t used = f->arena->used, rules = f->rule_count;

		if (++found > GITLINKS_MAX) {
			result = -E2BIG;
			break;
		}
		review_gitlink(r, item->worktree, r->index.name);
		if (f->rule_count == rules) {
			/* Nothing of it is kept; what the arena gives out is zeroed. */
			memset(f->arena->base + used, 0, f->arena->used - used);
			f->arena->used = used;
		}
	}
	if (result < 0)
		quarantine(r, gitfind_join(f, item->path, name),
			"not an index whose submodules can be told");
}

/* review_indexes - the index, and the shared ones that a split index is made of. */
static void review_indexes(struct review *r, int fd, const struct git_item *item)
{
	struct finder *f = r->f;
	const char *name;
	unsigned char type;
	unsigned seen = 0;

	review_index(r, fd, "index", item);
	f->list.fd = fd;
	f->list.at = f->list.length = 0;
	while (gitpath_next(&f->list, &name, &type) > 0 && ++seen <= ENTRIES_MAX)
		if (strncmp(name, "sharedindex.", 12) == 0)
			review_index(r, fd, name, item);
}

/* --- one git directory ------------------------------------------------------------------------
 */

/* review_worktree - .git/worktrees/NAME that `git worktree add` made, or something else did. */
static void review_worktree(struct review *r, int fd, const char *path)
{
	struct finder *f = r->f;

	if (is_new_at(r, fd, "config.worktree") && !was_held(r, path, "config.worktree"))
		quarantine(r, gitfind_join(f, path, "config.worktree"),
			"git runs programs that it names");
	if (!is_new_at(r, fd, "commondir") || was_held(r, path, "commondir"))
		return;
	ssize_t length = gitpath_read(fd, "commondir", f->text, sizeof(f->text) - 1);

	if (length == 6 && memcmp(f->text, "../..\n", 6) == 0)
		return;
	quarantine(r, gitfind_join(f, path, "commondir"),
		"leads git to a configuration of its maker's choice");
}

static void review_directory(struct review *r, const struct git_item *item)
{
	struct finder *f = r->f;
	autofd int fd = gitpath_open(
		AT_FDCWD, item->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);

	if (fd == -ENOENT)
		return;
	if (fd < 0) {
		gitfind_note(f, item->path, "could not be reviewed");
		return;
	}
	review_links(r, item->path, NULL);
	review_logs(r, item->path);
	review_rebase(r, fd, item->path);
	if (item->role == ROLE_WORKTREE || item->role == ROLE_OTHER)
		review_worktree(r, fd, item->path);
	/* The index of a repository outside is the main work tree's, and was read-only. */
	if (item->worktree && item->role != ROLE_COMMON)
		review_indexes(r, fd, item);
}

int gitdirs_review(struct arena *a, const char *workspace, uid_t caller, struct timespec since,
	const struct gitdir_rule *start, size_t start_count, struct gitdir_rule **ret_rules,
	size_t *ret_count, struct error *e)
{
	struct finder *f = arena_alloc(a, sizeof(*f));
	struct review *r = arena_alloc(a, sizeof(*r));

	if (!f || !r)
		return error_set(e, ERROR_LIMIT, "close", ENOMEM, workspace, "out of arena");
	since.tv_nsec -= CLOCK_SLACK_NS;
	if (since.tv_nsec < 0) {
		since.tv_nsec += 1000000000;
		since.tv_sec--;
	}
	int result = gitfind_all(f, a, workspace, caller, e);
	autofd int fd = f->workspace_fd;

	if (result < 0)
		return result;
	r->f = f;
	r->since = since;
	r->start = start;
	r->start_count = start_count;
	f->rules = NULL;
	f->rule_count = 0;
	for (size_t i = 0; i < start_count; i++)
		if (start[i].kind == GITDIR_WATCH)
			review_watched(r, &start[i]);
	for (size_t i = 0; i < f->item_count && !f->full; i++)
		review_directory(r, &f->items[i]);
	if (f->full)
		return error_set(e, ERROR_LIMIT, "close", ENOMEM, workspace, "out of arena");
	*ret_rules = f->rules;
	*ret_count = f->rule_count;
	return 0;
}

/*
 * gitbelow.c - the git directories below a git directory: submodules' and linked worktrees'. See
 * gitfind.h.
 *
 * Runs in: the launcher, outside.
 * May not: look at more directories than f->budget and f->worktrees, or deeper than MODULE_DEPTH_MAX; read more
 * than f->left; open what is no regular file.
 * If there are more, the directory that holds them is read-only as a whole; in the review it goes,
 * with its worktrees, as a whole.
 */
#include "host/git/gitfind.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/tree/plainfile.h"

#define MODULE_DEPTH_MAX 16
#define LISTED_MAX 4096
#define LISTED_SUBMODULES_MAX 512
#define INDEX_MAX_BYTES (256 << 20)

static const char modules_why[] = "git obeys the configuration of every submodule in it";

/* --- submodules -------------------------------------------------------------------------------
 */

struct module_walk {
	struct module_directory {
		const char *path;
		unsigned depth;
	} * items;
	size_t count;
	unsigned *budget;
	bool truncated;
};

static void walk_push(struct finder *f, struct module_walk *w, const char *path, unsigned depth)
{
	if (*w->budget == 0 || depth > MODULE_DEPTH_MAX) {
		w->truncated = true;
		return;
	}
	struct module_directory *grown =
		path ? arena_push(f->arena, w->items, w->count, sizeof(*grown)) : NULL;

	if (!grown) {
		f->full = true;
		return;
	}
	(*w->budget)--;
	w->items = grown;
	grown[w->count++] = (struct module_directory){ path, depth };
}

/* walk_list - push the directories in one that is not a git directory itself (modules, modules/libs) */
static void walk_list(
	struct finder *f, struct module_walk *w, const struct module_directory *at)
{
	const char *name;
	unsigned char type;
	unsigned seen = 0;
	int result;
	autofd int fd = gitfind_open(f, at->path);

	f->list.fd = fd;
	f->list.at = f->list.length = 0;
	result = fd;
	while (fd >= 0 && (result = gitpath_next(&f->list, &name, &type)) > 0) {
		if (type == DT_DIR)
			walk_push(f, w, gitfind_join(f, at->path, name), at->depth + 1);
		if (++seen > LISTED_MAX || w->truncated || f->full)
			break;
	}
	gitfind_missed(f, result);
	w->truncated |= result != 0;
}

/* keep_closed - leave no hole in @modules; what was found in it so far stays protected. */
static void keep_closed(struct finder *f, const char *modules, size_t first_rule)
{
	size_t kept = first_rule;

	for (size_t i = first_rule; i < f->rule_count; i++)
		if (f->rules[i].kind != GITDIR_WRITE)
			f->rules[kept++] = f->rules[i];
	f->rule_count = kept;
	for (size_t i = 0; i < f->item_count; i++)
		f->items[i].closed |= gitfind_beneath(f->items[i].path, modules);
}

/*
 * open_modules - @modules is read-only, so that tools cannot add a submodule that `git submodule
 * update` on the host would find and obey. Those that are there are holes in it.
 */
static void open_modules(struct finder *f, const char *modules, bool closed)
{
	struct module_walk walk = { .budget = &f->budget };
	size_t first_rule = f->rule_count;

	if (!modules)
		return;
	walk_push(f, &walk, modules, 0);
	for (size_t i = 0; i < walk.count && !walk.truncated && !f->full; i++) {
		struct module_directory at = walk.items[i];
		const char *head = gitfind_join(f, at.path, "HEAD");
		int type = at.depth > 0 && head ? gitpath_type(AT_FDCWD, head) : 0;

		gitfind_missed(f, type);
		if (type < 0)
			walk.truncated = true;
		if (type > 0) {
			gitfind_rule(
				f, GITDIR_WRITE, at.path, true, "a submodule's repository");
			gitfind_item(f, at.path, ROLE_MODULE, NULL);
		} else {
			walk_list(f, &walk, &at);
		}
	}
	if (walk.truncated || closed)
		keep_closed(f, modules, first_rule);
	if (walk.truncated)
		gitfind_note(f, modules,
			"more submodules than are looked at: all of it is read-only");
}

void gitfind_modules(struct finder *f, const struct git_item *item, const struct git_names *n)
{
	const char *modules = gitfind_join(f, item->path, "modules");
	int type = n->type[NAME_MODULES];

	gitfind_protect(f, modules, type, modules_why);
	/* Those of ROLE_COMMON belong to the main work tree, which is not in the workspace. */
	if (type == DT_DIR && item->role != ROLE_COMMON)
		open_modules(f, modules, item->closed);
}

/* gitfind_module_worktree - where the work tree of a submodule is; its gitfile gets protected. */
const char *gitfind_module_worktree(
	struct finder *f, const struct git_item *item, const char *text)
{
	if (!text || f->full) {
		gitfind_note(f, item->path, "does not say where its work tree is");
		return NULL;
	}
	autofd int base = gitpath_open(AT_FDCWD, item->path, O_PATH | O_DIRECTORY, 0);
	autofd int fd = base < 0 ? base : gitpath_open(base, text, O_PATH | O_DIRECTORY, 0);
	const char *path = fd < 0 ? NULL : gitfind_canonical(f, fd);

	gitfind_missed(f, fd);
	if (path && strcmp(path, f->workspace) == 0)
		return path;
	if (path && gitfind_beneath(path, f->workspace)) {
		gitfind_worktree(f, path);
		return path;
	}
	if (fd != -ENOENT)
		gitfind_note(f, item->path, "its work tree is not in the workspace");
	return NULL;
}

/* is_plain_path - relative, and neither empty, nor with a ".." in it? */
static bool is_plain_path(const char *path)
{
	if (path[0] == '\0' || path[0] == '/')
		return false;
	for (const char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || at[2] == '\0'))
			return false;
	}
	return true;
}

/*
 * gitfind_listed - a submodule that is not checked out counts as well: `git status` would obey a
 * repository that somebody makes in its place.
 */
void gitfind_listed(struct finder *f, const char *worktree)
{
	const char *file = gitfind_join(f, worktree, ".gitmodules");
	unsigned seen = 0;
	int result;
	autofd int fd = !file ? -ENOMEM : plainfile_open(AT_FDCWD, file, 0, false);

	if (fd == -ENOENT || !file)
		return;
	gitconfig_start(&f->config, fd);
	result = fd;
	while (fd >= 0 && (result = gitconfig_next(&f->config)) > 0 && !f->full) {
		size_t length = strlen(f->config.name);

		if (length < 5 || strncmp(f->config.name, "submodule.", 10) != 0 ||
			strcmp(f->config.name + length - 5, ".path") != 0)
			continue;
		/* Stop in time: others need memory, too, and any number of files can list as many. */
		if (++seen > LISTED_SUBMODULES_MAX || f->listed == 0 ||
			f->arena->used > f->arena->size / 2)
			break;
		f->listed--;
		if (!f->config.cut && is_plain_path(f->config.value))
			gitfind_worktree(f, gitfind_join(f, worktree, f->config.value));
	}
	gitfind_missed(f, result);
	if (!gitfind_spend_config(f, f->config.total) || result != 0)
		gitfind_note(f, file, "not read to its end");
	if (gitfind_beneath(worktree, f->workspace))
		gitfind_protect(f, file, fd == -ELOOP ? DT_LNK : DT_REG,
			"git clones what it lists, where it says");
}

/* take_gitlinks - the submodule entries of the index @fd; 0 or -errno where they cannot be told. */
static int take_gitlinks(
	struct finder *f, int fd, size_t hash_size, const char *file, const char *worktree)
{
	int result =
		lseek(fd, 0, SEEK_SET) < 0 ? -errno : gitindex_start(&f->index, fd, hash_size);

	while (result >= 0 && !f->full && (result = gitindex_next(&f->index)) > 0) {
		if (f->gitlinks == 0) {
			gitfind_note(f, file, "more submodules than are looked at");
			return 0;
		}
		f->gitlinks--;
		if (is_plain_path(f->index.name))
			gitfind_worktree(f, gitfind_join(f, worktree, f->index.name));
	}
	return result;
}

static void one_index(
	struct finder *f, const char *file, const char *worktree, size_t hash_size)
{
	struct stat st;
	autofd int fd = !file ? -ENOMEM : plainfile_open(AT_FDCWD, file, 0, false);

	if (fd < 0 || fstat(fd, &st) < 0) {
		gitfind_missed(f, fd < 0 ? fd : -errno);
		return;
	}
	bool fits = st.st_size <= INDEX_MAX_BYTES && gitfind_spend(f, (uint64_t)st.st_size);

	if (!fits || take_gitlinks(f, fd, hash_size, file, worktree) < 0)
		gitfind_note(f, file, "not an index whose submodules can be told");
}

/*
 * is_sha256 - a worktree's index has object names of the same length as the repository that it
 * belongs to.
 */
static bool is_sha256(const struct finder *f, const struct git_item *item)
{
	const char *tail = item->role == ROLE_WORKTREE ? strrchr(item->path, '/') : NULL;
	size_t length = tail ? (size_t)(tail - item->path) : 0, part = strlen("/worktrees");

	for (size_t i = 0; length > part && i < f->item_count; i++)
		if (strncmp(f->items[i].path, item->path, length - part) == 0 &&
			f->items[i].path[length - part] == '\0')
			return f->items[i].sha256;
	return item->sha256;
}

void gitfind_indexed(struct finder *f, size_t i)
{
	const struct git_item item = f->items[i]; /* the list may move */
	const char *parts[GITFIND_PARTS_MAX];

	f->items[i].sha256 = is_sha256(f, &item);
	size_t hash_size = f->items[i].sha256 ? 32 : 20;

	/* The index of a repository outside is the main work tree's. */
	if (f->since || !item.worktree || item.role == ROLE_COMMON || item.role == ROLE_OTHER)
		return;
	one_index(f, gitfind_join(f, item.path, "index"), item.worktree, hash_size);
	if (!item.split)
		return;
	autofd int fd = gitfind_open(f, item.path);
	int count = fd < 0 ? fd : gitfind_parts(f, fd, parts);

	if (count < 0)
		gitfind_note(f, item.path, "has more parts of an index than are looked at");
	for (int part = 0; part < count; part++)
		one_index(f, gitfind_join(f, item.path, parts[part]), item.worktree, hash_size);
}

void gitfind_above(struct finder *f)
{
	const char *end = strrchr(f->workspace, '/');

	for (; end && end > f->workspace;
		end = memrchr(f->workspace, '/', (size_t)(end - f->workspace))) {
		const char *path =
			arena_copy(f->arena, f->workspace, (size_t)(end - f->workspace));
		const char *dot_git = path ? gitfind_join(f, path, ".git") : NULL;

		if (!dot_git) {
			f->full = true;
			return;
		}
		int type = gitpath_type(AT_FDCWD, dot_git);

		gitfind_missed(f, type);
		if (type <= 0)
			continue;
		const char *text = dot_git;

		if (type == DT_REG) {
			if (gitfind_gitfile(f, path) < 0)
				return;
			text = f->text;
		}
		autofd int base = gitpath_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
		autofd int fd =
			base < 0 ? base : gitpath_open(base, text, O_PATH | O_DIRECTORY, 0);

		gitfind_missed(f, fd);
		f->above = fd < 0 ? NULL : gitfind_canonical(f, fd);
		f->above_worktree = path;
		if (f->above)
			gitfind_listed(f, path);
		return;
	}
}

/* --- linked worktrees -------------------------------------------------------------------------
 */

/* one_worktree - @path is .git/worktrees/NAME: of a work tree here, or of another place? */
static void one_worktree(struct finder *f, const char *path)
{
	const char *link = gitfind_join(f, path, "gitdir");
	static const char suffix[] = "/.git";

	for (size_t i = 0; i < f->item_count; i++)
		if (strcmp(f->items[i].path, path) == 0)
			return;
	ssize_t length = link ? gitpath_read(AT_FDCWD, link, f->text, PATH_MAX) : -ENOMEM;

	gitfind_missed(f, (int)length);
	while (length > 0 && f->text[length - 1] == '\n')
		f->text[--length] = '\0';
	size_t tail = sizeof(suffix) - 1;

	if (length > (ssize_t)tail && strcmp(f->text + length - tail, suffix) == 0) {
		f->text[(size_t)length - tail] = '\0';
		autofd int base = gitpath_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
		autofd int fd =
			base < 0 ? base : gitpath_open(base, f->text, O_PATH | O_DIRECTORY, 0);
		const char *worktree = fd < 0 ? NULL : gitfind_canonical(f, fd);

		if (worktree && gitfind_beneath(worktree, f->workspace)) {
			gitfind_item(f, path, ROLE_WORKTREE, worktree);
			gitfind_worktree(f, worktree);
			return;
		}
	}
	gitfind_rule(f, GITDIR_PROTECT, path, true, "belongs to a work tree elsewhere");
	gitfind_item(f, path, ROLE_OTHER, NULL);
}

void gitfind_worktrees(struct finder *f, const char *worktrees)
{
	struct module_walk walk = { .budget = &f->worktrees }; /* one level of it */
	const struct module_directory top = { .path = worktrees,
		.depth = MODULE_DEPTH_MAX - 1 };

	if (!worktrees)
		return;
	walk_list(f, &walk, &top);
	if (!walk.truncated) {
		for (size_t i = 0; i < walk.count && !f->full; i++)
			one_worktree(f, walk.items[i].path);
		return;
	}
	if (f->since)
		gitfind_item(f, worktrees, ROLE_CROWD, NULL);
	gitfind_rule(f, GITDIR_PROTECT, worktrees, true, "more of them than are looked at");
	gitfind_note(f, worktrees, "more worktrees than are looked at: all of it is read-only");
	for (size_t i = 0; i < f->item_count; i++)
		if (f->items[i].role == ROLE_WORKTREE &&
			gitfind_beneath(f->items[i].path, worktrees))
			gitfind_rule(f, GITDIR_WRITE, f->items[i].path, true,
				"the workspace's own part of the repository");
}

/*
 * gitinside.c - the rules for one git directory: see gitfind.h.
 *
 * Runs in: the launcher, outside.
 * May not: decide that anything outside the workspace is writable (gittrust.c does). What is
 * protected is files that make git run or obey something: see docs/git.md for each of them.
 */
#include "host/gitfind.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#define MODULE_DEPTH_MAX 16
#define LISTED_MAX 4096

struct guarded {
	enum git_name name;
	const char *text, *why;
};

/* In a repository's own directory (the common one, where there are several). */
static const struct guarded repository_files[] = {
	{ NAME_CONFIG, "config", "git runs programs that it names" },
	{ NAME_CONFIG_WORKTREE, "config.worktree", "git runs programs that it names" },
	{ NAME_HOOKS, "hooks", "git runs them" },
	{ NAME_COMMONDIR, "commondir", "would lead git to another configuration" },
	{ NAME_REMOTES, "remotes", "git fetches from and pushes to where it says" },
	{ NAME_BRANCHES, "branches", "git fetches from and pushes to where it says" },
};

/* In .git/worktrees/NAME. */
static const struct guarded worktree_files[] = {
	{ NAME_CONFIG_WORKTREE, "config.worktree", "git runs programs that it names" },
	{ NAME_COMMONDIR, "commondir", "leads git to the configuration" },
	{ NAME_GITDIR, "gitdir", "leads git to the work tree" },
};

static const char modules_why[] = "git obeys the configuration of every submodule in it";

static void guard_files(struct finder *f, const char *path, const struct git_names *n,
	const struct guarded *files, size_t count)
{
	for (size_t i = 0; i < count; i++)
		gitfind_protect(f, gitfind_join(f, path, files[i].text), n->type[files[i].name],
			files[i].why);
}

static void guard_repository(struct finder *f, const char *path, const struct git_names *n)
{
	guard_files(f, path, n, repository_files,
		sizeof(repository_files) / sizeof(*repository_files));
}

void gitfind_absent(struct finder *f, const char *path)
{
	const struct git_names none = { 0 };

	guard_repository(f, path, &none);
	gitfind_protect(f, gitfind_join(f, path, "modules"), 0, modules_why);
}

/* --- what the configuration names -------------------------------------------------------------
 */

#define CONFIG_FILES_MAX 8
#define HOOKS_MAX 8
#define SHOWN_MAX 65536

struct configured {
	const char *files[CONFIG_FILES_MAX]; /* absolute */
	size_t file_count;
	const char *hooks[HOOKS_MAX];
	size_t hooks_count;
	const char *worktree; /* core.worktree, the last */
	const char *shown;    /* the first file without core.worktree, see gitdirs.h */
};

static const char *value_copy(struct finder *f)
{
	const char *copy = arena_copy(f->arena, f->config.value, f->config.value_length);

	if (!copy)
		f->full = true;
	return copy;
}

/* add_include - an included file that tools could write is protected, and read as well. */
static void add_include(struct finder *f, struct configured *found, const char *file)
{
	const char *slash = strrchr(file, '/');
	const char *directory = arena_copy(f->arena, file, (size_t)(slash - file));
	const char *text = directory ? value_copy(f) : NULL;

	/* ~/x and %(prefix)/x are the user's and the system's. */
	if (!text || text[0] == '\0' || text[0] == '~' || text[0] == '%')
		return;
	const char *path =
		gitfind_protect_text(f, directory, text, "the repository's config includes it");

	if (!path)
		return;
	if (found->file_count == CONFIG_FILES_MAX)
		gitfind_note(f, path, "more included files than are looked at");
	else
		found->files[found->file_count++] = path;
}

static void take_entry(struct finder *f, struct configured *found, const char *file)
{
	const char *name = f->config.name;
	size_t length = strlen(name);
	bool hooks = strcmp(name, "core.hookspath") == 0;
	bool worktree = strcmp(name, "core.worktree") == 0;
	bool include = strcmp(name, "include.path") == 0 ||
		(strncmp(name, "includeif.", 10) == 0 && length > 5 &&
			strcmp(name + length - 5, ".path") == 0);

	if (!hooks && !worktree && !include)
		return;
	if (f->config.cut)
		gitfind_note(f, file, "a path in it is too long to be understood");
	else if (include)
		add_include(f, found, file);
	else if (worktree)
		found->worktree = value_copy(f);
	else if (found->hooks_count < HOOKS_MAX)
		found->hooks[found->hooks_count++] = value_copy(f);
	else
		gitfind_note(f, file, "more values of core.hooksPath than are looked at");
}

/* without - the text of @fd, @size bytes, without those from @start to @end. Or NULL. */
static const char *without(struct finder *f, int fd, size_t size, size_t start, size_t end)
{
	char *text = size <= SHOWN_MAX ? arena_alloc(f->arena, size + 1) : NULL;

	if (!text || pread(fd, text, size + 1, 0) != (ssize_t)size)
		return NULL;
	memmove(text + start, text + end, size - end);
	memset(text + size - (end - start), 0, end - start);
	return text;
}

static void read_config(struct finder *f, struct configured *found, const char *file)
{
	size_t start = 0, end = 0;
	unsigned seen = 0;
	int result;
	autofd int fd = gitpath_open(AT_FDCWD, file, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

	if (fd == -ENOENT)
		return;
	gitconfig_start(&f->config, fd);
	result = fd;
	while (fd >= 0 && (result = gitconfig_next(&f->config)) > 0) {
		take_entry(f, found, file);
		if (strcmp(f->config.name, "core.worktree") != 0)
			continue;
		seen++;
		start = f->config.start;
		end = f->config.end;
	}
	if (result == 0 && seen == 1 && file == found->files[0])
		found->shown = without(f, fd, f->config.total, start, end);
	if (result < 0)
		gitfind_note(f, file, "not a configuration that git would accept");
}

/* look_at_config - what it names; included files are protected as they are met. */
static void look_at_config(struct finder *f, const struct git_item *item,
	const struct git_names *n, struct configured *found)
{
	if (n->type[NAME_CONFIG])
		found->files[found->file_count++] = gitfind_join(f, item->path, "config");
	if (n->type[NAME_CONFIG_WORKTREE])
		found->files[found->file_count++] =
			gitfind_join(f, item->path, "config.worktree");
	for (size_t i = 0; i < found->file_count && !f->full; i++)
		read_config(f, found, found->files[i]);
}

/* protect_hooks - core.hooksPath is relative to the top of the work tree. */
static void protect_hooks(struct finder *f, const struct configured *found, const char *base)
{
	for (size_t i = 0; i < found->hooks_count && !f->full; i++) {
		const char *hooks = found->hooks[i];

		if (hooks[0] != '\0' && hooks[0] != '~' && hooks[0] != '%')
			(void)gitfind_protect_text(
				f, base, hooks, "core.hooksPath: git runs what is in it");
	}
}

/* --- submodules -------------------------------------------------------------------------------
 */

struct module_walk {
	struct module_directory {
		const char *path;
		unsigned depth;
	} * items;
	size_t count;
	bool truncated;
};

static void walk_push(struct finder *f, struct module_walk *w, const char *path, unsigned depth)
{
	if (f->budget == 0 || depth > MODULE_DEPTH_MAX) {
		w->truncated = true;
		return;
	}
	struct module_directory *grown =
		path ? arena_push(f->arena, w->items, w->count, sizeof(*grown)) : NULL;

	if (!grown) {
		f->full = true;
		return;
	}
	f->budget--;
	w->items = grown;
	grown[w->count++] = (struct module_directory){ path, depth };
}

/* walk_list - the directories in one that is not a git directory itself (modules, modules/libs) */
static void walk_list(
	struct finder *f, struct module_walk *w, const struct module_directory *at)
{
	const char *name;
	unsigned char type;
	unsigned seen = 0;
	int result;
	autofd int fd =
		gitpath_open(AT_FDCWD, at->path, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);

	f->list.fd = fd;
	f->list.at = f->list.length = 0;
	result = fd;
	while (fd >= 0 && (result = gitpath_next(&f->list, &name, &type)) > 0) {
		if (type == DT_DIR)
			walk_push(f, w, gitfind_join(f, at->path, name), at->depth + 1);
		if (++seen > LISTED_MAX || w->truncated || f->full)
			break;
	}
	w->truncated |= result != 0;
}

/* keep_closed - no hole in @modules; what was found in it so far is protected all the same. */
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
 * open_modules - @modules is read-only, so that none can be added that `git submodule update`
 * on the host would find and obey; those that are there are holes in it.
 */
static void open_modules(struct finder *f, const char *modules, bool closed)
{
	struct module_walk walk = { 0 };
	size_t first_rule = f->rule_count;

	if (!modules)
		return;
	walk_push(f, &walk, modules, 0);
	for (size_t i = 0; i < walk.count && !walk.truncated && !f->full; i++) {
		struct module_directory at = walk.items[i];
		const char *head = gitfind_join(f, at.path, "HEAD");

		if (at.depth > 0 && head && gitpath_type(AT_FDCWD, head) != 0) {
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

static void guard_modules(
	struct finder *f, const struct git_item *item, const struct git_names *n)
{
	const char *modules = gitfind_join(f, item->path, "modules");
	int type = n->type[NAME_MODULES];

	gitfind_protect(f, modules, type, modules_why);
	/* Those of ROLE_COMMON belong to the main work tree, which is not in the workspace. */
	if (type == DT_DIR && item->role != ROLE_COMMON)
		open_modules(f, modules, item->closed);
}

/* module_worktree - where the work tree of a submodule is; its gitfile gets protected. */
static const char *module_worktree(
	struct finder *f, const struct git_item *item, const char *text)
{
	if (!text || f->full) {
		gitfind_note(f, item->path, "does not say where its work tree is");
		return NULL;
	}
	autofd int base = gitpath_open(AT_FDCWD, item->path, O_PATH | O_DIRECTORY, 0);
	autofd int fd = base < 0 ? base : gitpath_open(base, text, O_PATH | O_DIRECTORY, 0);
	const char *path = fd < 0 ? NULL : gitfind_canonical(f, fd);

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
}

static void look_at_worktrees(struct finder *f, const char *worktrees)
{
	struct module_walk walk = { 0 }; /* a list of directories, one level of it */
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
	gitfind_rule(f, GITDIR_PROTECT, worktrees, true, "more of them than are looked at");
	gitfind_note(f, worktrees, "more worktrees than are looked at: all of it is read-only");
	for (size_t i = 0; i < f->item_count; i++)
		if (f->items[i].role == ROLE_WORKTREE &&
			gitfind_beneath(f->items[i].path, worktrees))
			gitfind_rule(f, GITDIR_WRITE, f->items[i].path, true,
				"the workspace's own part of the repository");
}

/* --- one git directory ------------------------------------------------------------------------
 */

static void guard_worktree(
	struct finder *f, const struct git_item *item, const struct git_names *n)
{
	guard_files(f, item->path, n, worktree_files,
		sizeof(worktree_files) / sizeof(*worktree_files));
	guard_modules(f, item, n);
}

/* guard_other - of a repository outside: what is the main work tree's alone. */
static void guard_other(
	struct finder *f, const struct git_item *item, const struct git_names *n)
{
	static const char why[] = "belongs to the main work tree";

	if (n->type[NAME_HEAD])
		gitfind_protect(
			f, gitfind_join(f, item->path, "HEAD"), n->type[NAME_HEAD], why);
	if (n->type[NAME_INDEX])
		gitfind_protect(
			f, gitfind_join(f, item->path, "index"), n->type[NAME_INDEX], why);
}

static void guard_main(struct finder *f, const struct git_item *item, const struct git_names *n)
{
	struct configured found = { 0 };
	const char *worktree = item->worktree;
	size_t first_rule;

	look_at_config(f, item, n, &found);
	first_rule = f->rule_count;
	guard_repository(f, item->path, n);
	if (item->role == ROLE_MODULE && !worktree)
		worktree = module_worktree(f, item, found.worktree);
	/* The first of the repository's files is its config. */
	if (item->role == ROLE_MODULE && !f->full && n->type[NAME_CONFIG] == DT_REG &&
		worktree && strcmp(worktree, f->workspace) != 0)
		f->rules[first_rule].shown = found.shown;
	if (item->role == ROLE_COMMON)
		guard_other(f, item, n);
	protect_hooks(f, &found, worktree ? worktree : item->path);
	guard_modules(f, item, n);
	if (n->type[NAME_WORKTREES] == DT_DIR)
		look_at_worktrees(f, gitfind_join(f, item->path, "worktrees"));
	else if (n->type[NAME_WORKTREES])
		gitfind_protect(f, gitfind_join(f, item->path, "worktrees"),
			n->type[NAME_WORKTREES], "leads git to other work trees");
}

void gitfind_directory(struct finder *f, const struct git_item *item)
{
	struct git_names n;
	autofd int fd = gitpath_open(
		AT_FDCWD, item->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);

	if (fd == -ENOENT) {
		gitfind_absent(f, item->path);
		return;
	}
	if (fd < 0 || gitfind_names(f, fd, &n) < 0) {
		gitfind_rule(f, GITDIR_PROTECT, item->path, true,
			"a git directory that cannot be read");
		return;
	}
	if (item->role == ROLE_WORKTREE)
		guard_worktree(f, item, &n);
	else
		guard_main(f, item, &n);
}

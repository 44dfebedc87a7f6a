/*
 * gitinside.c - the rules for one git directory: see gitfind.h.
 *
 * Runs in: the launcher, outside.
 * May not: decide that anything outside the workspace is writable (gittrust.c does). What is
 * protected is files that make git run or obey something: see docs/git.md for each of them.
 */
#include "host/git/gitfind.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/tree/plainfile.h"

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
	gitfind_protect(f, gitfind_join(f, path, "modules"), 0,
		"git obeys the configuration of every submodule in it");
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
	bool sha256;
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

	if (strcmp(name, "extensions.objectformat") == 0)
		found->sha256 = strcmp(f->config.value, "sha256") == 0;
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
	autofd int fd = plainfile_open(AT_FDCWD, file, 0, true);

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
	(void)gitfind_spend_config(f, f->config.total); /* seen before the next directory */
	if (result == 0 && seen == 1 && file == found->files[0] && !f->since)
		found->shown = without(f, fd, f->config.total, start, end);
	gitfind_missed(f, result);
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

/* --- one git directory ------------------------------------------------------------------------
 */

static void guard_worktree(
	struct finder *f, const struct git_item *item, const struct git_names *n)
{
	guard_files(f, item->path, n, worktree_files,
		sizeof(worktree_files) / sizeof(*worktree_files));
	if (item->worktree)
		gitfind_listed(f, item->worktree);
	gitfind_modules(f, item, n);
}

/* guard_other - protect, in a repository outside, what is the main work tree's alone. */
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

static void guard_main(struct finder *f, size_t index, const struct git_names *n)
{
	const struct git_item copy = f->items[index], *item = &copy; /* the list may move */
	struct configured found = { 0 };
	const char *worktree = item->worktree;
	size_t first_rule;

	look_at_config(f, item, n, &found);
	first_rule = f->rule_count;
	guard_repository(f, item->path, n);
	if (item->role == ROLE_MODULE && !worktree)
		worktree = gitfind_module_worktree(f, item, found.worktree);
	f->items[index].worktree = worktree;
	f->items[index].sha256 = found.sha256;
	/* The first of the repository's files is its config. */
	if (item->role == ROLE_MODULE && !f->full && n->type[NAME_CONFIG] == DT_REG &&
		worktree && strcmp(worktree, f->workspace) != 0)
		f->rules[first_rule].shown = found.shown;
	if (item->role == ROLE_COMMON)
		guard_other(f, item, n);
	else if (worktree)
		gitfind_listed(f, worktree);
	protect_hooks(f, &found, worktree ? worktree : item->path);
	gitfind_modules(f, item, n);
	if (n->type[NAME_WORKTREES] == DT_DIR)
		gitfind_worktrees(f, gitfind_join(f, item->path, "worktrees"));
	else if (n->type[NAME_WORKTREES])
		gitfind_protect(f, gitfind_join(f, item->path, "worktrees"),
			n->type[NAME_WORKTREES], "leads git to other work trees");
}

void gitfind_directory(struct finder *f, size_t index)
{
	const struct git_item item = f->items[index];
	struct git_names n;

	if (item.role == ROLE_OTHER || item.role == ROLE_CROWD)
		return;
	autofd int fd = gitfind_open(f, item.path);

	if (fd == -ENOENT) {
		gitfind_absent(f, item.path);
	} else if (!gitfind_spend(f, 0)) {
		gitfind_rule(f, GITDIR_PROTECT, item.path, true,
			"more git directories, or larger files in them, than are looked at");
	} else if (fd < 0 || gitfind_names(f, fd, &n) < 0) {
		gitfind_rule(f, GITDIR_PROTECT, item.path, true,
			"a git directory that cannot be read");
	} else {
		f->items[index].split = n.split;
		if (item.role == ROLE_WORKTREE)
			guard_worktree(f, &item, &n);
		else
			guard_main(f, index, &n);
	}
}

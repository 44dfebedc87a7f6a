/*
 * gitfind.h - what the files behind gitdirs_find() share. For them only.
 *
 * Runs in: the launcher, outside.
 */
#pragma once

#include <limits.h>

#include "host/git/gitconfig.h"
#include "host/git/gitdirs.h"
#include "host/git/gitindex.h"
#include "host/git/gitpath.h"

/* Names that matter in a git directory (or in a workspace that may be one). */
enum git_name {
	NAME_HEAD,
	NAME_OBJECTS,
	NAME_REFS,
	NAME_INDEX,
	NAME_CONFIG,
	NAME_CONFIG_WORKTREE,
	NAME_HOOKS,
	NAME_COMMONDIR,
	NAME_GITDIR,
	NAME_REMOTES,
	NAME_BRANCHES,
	NAME_MODULES,
	NAME_WORKTREES,
	NAME_DOT_GIT,
	NAME_COUNT,
};

struct git_names {
	unsigned char type[NAME_COUNT]; /* DT_*, 0 = absent */
	bool split;                     /* there are parts of an index that is split */
};

enum git_role {
	ROLE_MAIN,     /* a repository inside the workspace */
	ROLE_COMMON,   /* the repository, outside, whose linked worktree the workspace is */
	ROLE_WORKTREE, /* .git/worktrees/NAME of a work tree in the workspace */
	ROLE_MODULE,   /* .git/modules/NAME */
	ROLE_OTHER, /* .git/worktrees/NAME of a work tree elsewhere: no rules but the one on it */
	ROLE_CROWD, /* review: .git/worktrees with more in it than is looked at */
};

/* One git directory still to be looked at. */
struct git_item {
	const char *path;
	enum git_role role;
	const char *worktree; /* its work tree, or NULL where that is not known yet */
	bool closed;          /* read-only as a whole: no hole for a submodule in it */
	bool sha256;          /* its objects have names of 32 bytes, not 20 */
	bool split;           /* parts of its index are in files beside it */
};

struct finder {
	struct arena *arena;
	const char *workspace;
	size_t workspace_length;
	int workspace_fd; /* borrowed */
	uid_t caller;
	const char *above; /* git directory of the repository that the workspace is a part of */
	const char *above_worktree;
	const char *granted; /* writable outside the workspace, or NULL */
	struct gitdir_rule *rules;
	size_t rule_count;
	struct git_item *items;
	size_t item_count;
	unsigned budget; /* directories in modules that may still be looked at */
	unsigned
		worktrees; /* the same of worktrees: those of one repository hide no submodule of the next */
	unsigned gitlinks; /* entries of indexes that may still be looked at */
	unsigned listed;   /* submodules of .gitmodules, the same */
	uint64_t left;     /* bytes that may still be read */
	uint64_t names;    /* names that may still be listed in search of parts of indexes */
	size_t items_max;  /* git directories that are looked at */
	bool full;         /* the arena is; nothing found counts any more */
	int missed; /* of the review: why not all of it could be looked at, -errno; or 0 */
	const struct timespec
		*since; /* of the review: when the session started. Otherwise NULL */
	const struct gitdir_rule *start; /* of the review: what was found then */
	size_t start_count;
	struct gitpath_list list;
	struct gitconfig config;
	struct gitindex index;
	char path[PATH_MAX];
	char text[PATH_MAX + 16];
};

/* Rules and texts. All of them set f->full instead of failing. */
void gitfind_rule(struct finder *f, enum gitdir_kind kind, const char *path, bool exists,
	const char *why);
void gitfind_note(struct finder *f, const char *path, const char *why);
const char *gitfind_join(struct finder *f, const char *directory, const char *name);

/*
 * gitfind_missed - note the @result of a look. Some errors are answers (ENOENT, EACCES and others):
 * tools can bring them about, and the caller knows what they mean. Any other one (an I/O error, no
 * memory, no descriptor) may have hidden something from the review: it is kept in f->missed, and
 * the parent then goes by names alone.
 */
void gitfind_missed(struct finder *f, int result);

/*
 * gitfind_locked - in the review: tell the parent that @path (O_PATH: @place) cannot be listed or
 * passed, if the session made it so.
 */
void gitfind_locked(struct finder *f, int place, const char *path);

/*
 * gitfind_spend - count @bytes as read. Returns whether bytes and git directories are within their
 * bounds.
 */
bool gitfind_spend(struct finder *f, uint64_t bytes);

/* gitfind_spend_config - the same for a configuration, which takes longer. */
static inline bool gitfind_spend_config(struct finder *f, uint64_t bytes)
{
	return gitfind_spend(f, bytes * 16);
}

#define GITFIND_PARTS_MAX 32

/*
 * gitfind_parts - the files sharedindex.* in the git directory @fd (at any place of its listing), each file
 * once, whatever number of names it has. Their names are in the arena.
 * Returns their number; -E2BIG: there are more than GITFIND_PARTS_MAX, or far more names than git
 * leaves: of these in one directory, or of any in all such directories together.
 */
MUST_CHECK int gitfind_parts(
	struct finder *f, int fd, const char *ret_names[GITFIND_PARTS_MAX]);

/*
 * gitfind_open - open the directory @path (canonical), to be listed. In the review the parent is
 * told of one that the session made unlistable (GITDIR_LOCKED), since git can do without listing
 * it. A descriptor or -errno.
 */
MUST_CHECK int gitfind_open(struct finder *f, const char *path);

/*
 * gitfind_is_after - is a file's @time at or after @since? Some file systems keep whole seconds (ext4
 * with small inodes), or even ones (vfat): there the same second, and the one before, count as after.
 */
static inline bool gitfind_is_after(const struct timespec *time, const struct timespec *since)
{
	if (time->tv_nsec == 0)
		return time->tv_sec + 1 >= since->tv_sec;
	return time->tv_sec > since->tv_sec ||
		(time->tv_sec == since->tv_sec && time->tv_nsec >= since->tv_nsec);
}

/* gitfind_item - look at this git directory later, once. @path and @worktree: in the arena. */
void gitfind_item(struct finder *f, const char *path, enum git_role role, const char *worktree);

/* gitfind_beneath - is @path strictly below @directory? Texts only. */
bool gitfind_beneath(const char *path, const char *directory);

/* gitfind_canonical - the canonical path of @fd in the arena, or NULL where it has none. */
const char *gitfind_canonical(struct finder *f, int fd);

/* gitfind_names - which of the names are in @fd. 0 or -errno. */
MUST_CHECK int gitfind_names(struct finder *f, int fd, struct git_names *ret_names);

/* gitfind_ask - the same, name by name: for what is too large, or may not, be listed. */
MUST_CHECK int gitfind_ask(int fd, struct git_names *ret_names);

/* gitfind_name - @name's number, or NAME_COUNT. */
enum git_name gitfind_name(const char *name);

/* gitfind_is_git - has it the structure of a git directory of its own (not a worktree's)? */
static inline bool gitfind_is_git(const struct git_names *n)
{
	return n->type[NAME_HEAD] && n->type[NAME_OBJECTS] && n->type[NAME_REFS];
}

/*
 * gitfind_protect - protect @path, of which @type is known: a link is watched, and what it leads
 * to is protected where it could be written.
 */
void gitfind_protect(struct finder *f, const char *path, int type, const char *why);

/* gitfind_protect_text - protect what @text, relative to @directory, leads to, where it could be
 * written. Returns its path in the arena where it exists and could be written, else NULL. */
const char *gitfind_protect_text(
	struct finder *f, const char *directory, const char *text, const char *why);

/* gitfind_worktree - protect .git of the work tree @path (in the workspace), whatever it is. */
void gitfind_worktree(struct finder *f, const char *path);

/* gitfind_gitfile - the text after "gitdir: " in @path/.git, in f->text. 0 or -errno. */
MUST_CHECK int gitfind_gitfile(struct finder *f, const char *path);

/* gitfind_directory - all rules for f->items[@index], about which it learns more (gitinside.c). */
void gitfind_directory(struct finder *f, size_t index);

/*
 * gitfind_all - everything that gitdirs_find() finds, not yet sorted (gitdirs.c).
 * @f: zeroed memory of the arena; its workspace_fd is the caller's to close, also after failure.
 */
MUST_CHECK int gitfind_all(struct finder *f, struct arena *a, const char *workspace,
	uid_t caller, struct error *e);

/* gitfind_absent - the rules for a git directory @path that may come to be (gitinside.c). */
void gitfind_absent(struct finder *f, const char *path);

/* gitfind_modules - protect modules of @item, whose names are @n, with a hole for each that is
 * in it (gitbelow.c). */
void gitfind_modules(struct finder *f, const struct git_item *item, const struct git_names *n);

/* gitfind_module_worktree - where the work tree of submodule @item is, whose core.worktree is
 * @text or NULL; its gitfile gets protected. NULL where it is not in the workspace (gitbelow.c). */
const char *gitfind_module_worktree(
	struct finder *f, const struct git_item *item, const char *text);

/* gitfind_listed - protect what .gitmodules of @worktree lists (gitbelow.c). */
void gitfind_listed(struct finder *f, const char *worktree);

/*
 * gitfind_indexed - protect the submodules that the index of f->items[@i] names, listed in
 * .gitmodules or not: git obeys their configuration. All items have been looked at by then. It does
 * nothing in the review: an index is no witness of what was there when the session began
 * (gitbelow.c).
 */
void gitfind_indexed(struct finder *f, size_t i);

/*
 * gitfind_above - the nearest repository that has the workspace as a directory of its work tree:
 * f->above; the submodules that it lists there are protected (gitbelow.c).
 */
void gitfind_above(struct finder *f);

/* gitfind_worktrees - the rules for what is in the directory @worktrees (gitbelow.c). */
void gitfind_worktrees(struct finder *f, const char *worktrees);

/*
 * gitfind_outside - @fd (O_PATH) is the git directory, outside the workspace, that the workspace's .git
 * names: grant it where everything agrees, or say why not (gittrust.c).
 */
void gitfind_outside(struct finder *f, int fd, const char *path);

/*
 * gittrust.c - may a gitfile in the workspace open a directory outside it? See gitfind.h.
 *
 * Runs in: the launcher, outside, as the caller.
 * The gitfile is untrusted: an earlier session may have written it. It is believed only where
 * the place that it names says the same about the workspace, in files that tools could not
 * write, and is where git would have put it. Everything here grants or leaves a note.
 */
#include "host/git/gitfind.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/tree/plainfile.h"

/* owned_names - the names in @place (O_PATH), if it is a directory of the caller's. */
static bool owned_names(struct finder *f, int place, struct git_names *ret_names)
{
	struct stat st;

	if (fstat(place, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != f->caller)
		return false;
	autofd int fd = gitpath_open(place, ".", O_RDONLY | O_DIRECTORY, RESOLVE_BENEATH);

	return fd >= 0 && gitfind_names(f, fd, ret_names) == 0;
}

/*
 * is_callers - whether the workspace, and the gitfile in it, are the caller's. A worktree that was
 * removed leaves its directory in the repository, and anybody who can make that path again would be
 * let in.
 */
static bool is_callers(const struct finder *f)
{
	struct stat st;

	if (fstat(f->workspace_fd, &st) < 0 || st.st_uid != f->caller)
		return false;
	return fstatat(f->workspace_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		st.st_uid == f->caller;
}

/* read_line - a file of one line in @fd, into f->text. */
static bool read_line(struct finder *f, int fd, const char *name)
{
	ssize_t length = gitpath_read(fd, name, f->text, PATH_MAX - 1);

	while (length > 0 && f->text[length - 1] == '\n')
		f->text[--length] = '\0';
	return length > 0;
}

/* lies_at - is @path exactly @directory/@part/NAME? */
static bool lies_at(const char *path, const char *directory, const char *part)
{
	size_t length = strlen(directory), part_length = strlen(part);

	if (!gitfind_beneath(path, directory) ||
		strncmp(path + length + 1, part, part_length) != 0 ||
		path[length + 1 + part_length] != '/')
		return false;
	return strchr(path + length + part_length + 2, '/') == NULL;
}

/* points_back - does gitdir in @fd name the workspace's .git, and by no other way? */
static bool points_back(struct finder *f, int fd)
{
	if (!read_line(f, fd, "gitdir"))
		return false;
	autofd int dot_git = gitpath_open(fd, f->text, O_PATH | O_NOFOLLOW, 0);
	const char *path = dot_git < 0 ? NULL : gitfind_canonical(f, dot_git);

	/* By name, not by inode: a hard link to another work tree's gitfile is another name. */
	return path && gitfind_beneath(path, f->workspace) &&
		strcmp(path + f->workspace_length, "/.git") == 0;
}

/* linked_worktree - @path has a commondir. */
static void linked_worktree(struct finder *f, int fd, const char *path)
{
	struct git_names n;

	if (!read_line(f, fd, "commondir")) {
		gitfind_note(f, path, "not granted: its commondir cannot be read");
		return;
	}
	autofd int common = gitpath_open(fd, f->text, O_PATH | O_DIRECTORY, 0);
	const char *where = common < 0 ? NULL : gitfind_canonical(f, common);

	if (!where || !lies_at(path, where, "worktrees"))
		gitfind_note(f, path, "not granted: it is not in worktrees of its repository");
	else if (!owned_names(f, common, &n) || !gitfind_is_git(&n))
		gitfind_note(f, where, "not granted: not a repository of the caller's");
	else if (gitfind_beneath(f->workspace, where))
		gitfind_note(f, where, "not granted: the workspace lies in it");
	else if (!points_back(f, fd))
		gitfind_note(f, path, "not granted: it does not name this workspace");
	else {
		f->granted = where;
		gitfind_rule(f, GITDIR_WRITE, where, true,
			"the repository that this worktree is linked to");
		gitfind_item(f, path, ROLE_WORKTREE, f->workspace);
		gitfind_item(f, where, ROLE_COMMON, f->workspace);
	}
}

/* in_modules - is there a git directory S of the caller's with @path below S/modules? */
static bool in_modules(struct finder *f, const char *path)
{
	static const char part[] = "/modules/";
	const char *at = path;

	for (unsigned tries = 0; tries < 16 && (at = strstr(at, part)); tries++, at++) {
		struct git_names n = { 0 };
		const char *super = arena_copy(f->arena, path, (size_t)(at - path));
		autofd int fd = super ? gitpath_open(AT_FDCWD, super, O_PATH | O_DIRECTORY,
						RESOLVE_NO_SYMLINKS)
				      : -1;

		if (fd >= 0 && owned_names(f, fd, &n) && n.type[NAME_HEAD] &&
			(gitfind_is_git(&n) || n.type[NAME_COMMONDIR]))
			return true;
	}
	return false;
}

/* worktree_is_here - does core.worktree in @fd/config lead to the workspace? */
static bool worktree_is_here(struct finder *f, int fd)
{
	bool here = false;
	int result;
	autofd int config = plainfile_open(fd, "config", 0, false);

	if (config < 0)
		return false;
	gitconfig_start(&f->config, config);
	while ((result = gitconfig_next(&f->config)) > 0) {
		if (strcmp(f->config.name, "core.worktree") != 0)
			continue;
		autofd int tree = f->config.cut
			? -1
			: gitpath_open(fd, f->config.value, O_PATH | O_DIRECTORY, 0);
		const char *path = tree < 0 ? NULL : gitfind_canonical(f, tree);

		here = path && strcmp(path, f->workspace) == 0; /* the last one counts */
	}
	return result == 0 && here;
}

/* granted_before - in the review: what was writable is known, and nothing is granted any more. */
static void granted_before(struct finder *f, const char *path)
{
	for (size_t i = 0; i < f->start_count; i++) {
		const char *where = f->start[i].path;

		if (f->start[i].kind != GITDIR_WRITE || gitfind_beneath(where, f->workspace))
			continue;
		if (strcmp(path, where) == 0) {
			f->granted = where;
			gitfind_item(f, path, ROLE_MODULE, f->workspace);
			return;
		}
		if (lies_at(path, where, "worktrees")) {
			f->granted = where;
			gitfind_item(f, path, ROLE_WORKTREE, f->workspace);
			gitfind_item(f, where, ROLE_COMMON, f->workspace);
			return;
		}
	}
	gitfind_note(f, path, "was not granted");
}

void gitfind_outside(struct finder *f, int fd, const char *path)
{
	struct git_names n;

	if (f->since)
		granted_before(f, path);
	else if (!is_callers(f))
		gitfind_note(f, path,
			"not granted: the workspace, or the .git in it, is not the caller's");
	else if (gitfind_beneath(f->workspace, path) || strcmp(path, f->workspace) == 0)
		gitfind_note(f, path, "not granted: the workspace lies in it");
	else if (!owned_names(f, fd, &n) || n.type[NAME_HEAD] != DT_REG)
		gitfind_note(f, path, "not granted: not a git directory of the caller's");
	else if (n.type[NAME_COMMONDIR])
		linked_worktree(f, fd, path);
	else if (!gitfind_is_git(&n))
		gitfind_note(f, path, "not granted: not a git directory");
	else if (!in_modules(f, path))
		gitfind_note(f, path, "not granted: it is not in modules of a repository");
	else if (!worktree_is_here(f, fd))
		gitfind_note(f, path, "not granted: its core.worktree is not this workspace");
	else {
		f->granted = path;
		gitfind_rule(f, GITDIR_WRITE, path, true, "the repository of this submodule");
		gitfind_item(f, path, ROLE_MODULE, f->workspace);
	}
}

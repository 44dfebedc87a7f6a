/*
 * gittop.c - see gittop.h.
 *
 * Runs in: the launcher, outside.
 */
#include "host/git/gittop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "host/git/gitfind.h"
#include "host/git/gitpath.h"
#include "host/tree/plainfile.h"

#define GITFILE "gitdir: "

/* Whether `.git` in the directory @fd begins as a gitfile: 1, 0, or -errno where carrel could not look. */
static int is_gitfile(int fd)
{
	char text[sizeof(GITFILE)] = "";
	autofd int file = plainfile_open(fd, ".git", 0, false);
	ssize_t n = file < 0 ? file : read(file, text, sizeof(text) - 1);
	int r = file < 0 ? file : n < 0 ? -errno : 0;

	if (r < 0)
		return error_is_own(-r) ? r : 0;
	return n == (ssize_t)sizeof(text) - 1 && !strcmp(text, GITFILE);
}

/* Whether @st, the `.git` of the directory @fd, makes it a work tree: 1, 0, or -errno where carrel could not look. */
static int is_git(int fd, int dot_git, const struct stat *st)
{
	struct git_names names;

	if (!S_ISDIR(st->st_mode))
		return S_ISREG(st->st_mode) ? is_gitfile(fd) : 0;
	int r = gitfind_ask(dot_git, &names);
	return r == 0 ? gitfind_is_git(&names) : error_is_own(-r) ? r : 0;
}

/* 1, 0, -EPERM, as of gittop_find(), or another -errno: carrel could not look. @here: of the directory @fd. */
static int look_at(int fd, const struct stat *here, uid_t caller)
{
	struct stat st;
	autofd int dot_git = gitpath_open(fd, ".git", O_PATH, 0);

	if (dot_git < 0)
		return error_is_own(-dot_git) ? dot_git : 0;
	if (fstat(dot_git, &st) < 0)
		return -errno;
	int r = is_git(fd, dot_git, &st);
	if (r <= 0)
		return r;
	return here->st_uid == caller && st.st_uid == caller ? 1 : -EPERM;
}

int gittop_find(struct arena *a, const char *directory, uid_t caller, const char **ret_top)
{
	char *path = arena_copy(a, directory, strlen(directory));
	dev_t device = 0;
	struct stat st;

	if (!path || directory[0] != '/')
		return path ? -EINVAL : -ENOMEM;
	for (bool first = true;; first = false) {
		autofd int fd =
			gitpath_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);

		if (fd < 0)
			return fd;
		if (fstat(fd, &st) < 0)
			return -errno;
		/* Git does not look there either. */
		if (!first && st.st_dev != device)
			return 0;
		device = st.st_dev;
		int r = look_at(fd, &st, caller);
		if (r != 0)
			*ret_top = path;
		char *slash = strrchr(path, '/');
		if (r != 0 || !path[1])
			return r;
		slash[slash == path] = '\0';
	}
}

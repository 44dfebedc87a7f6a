/*
 * gitreview.h - what the files behind gitdirs_review() share. For them only.
 *
 * Runs in: the launcher, outside, when all processes of the session are dead.
 */
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include "host/gitfind.h"

#define REVIEW_TEXT_MAX (1u << 20)

struct review_level; /* a directory on the way down, gitreview_links.c */

struct review {
	struct finder *f;
	struct timespec since;
	const struct gitdir_rule *start;
	size_t start_count;
	const char **known; /* git directories whose links and states have been looked at */
	size_t known_count;
	char *text;                  /* REVIEW_TEXT_MAX + 1 bytes once one had to be read */
	struct review_level *levels; /* once one had to be walked */
};

static inline void review_quarantine(struct review *r, const char *path, const char *why)
{
	gitfind_rule(r->f, GITDIR_QUARANTINE, path, true, why);
}

/* review_is_new - did the session make or touch it? The change time is the kernel's, not the
 * tools'. What is moved keeps that of everything below it: see @moved where there is one. */
static inline bool review_is_new(const struct review *r, const struct stat *st)
{
	return gitfind_is_after(&st->st_ctim, &r->since);
}

static inline bool review_is_new_at(const struct review *r, int dirfd, const char *name)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && review_is_new(r, &st);
}

/*
 * review_links - the symbolic links that the session made where git writes, in the git directory
 * @fd = @path.
 */
void review_links(struct review *r, int fd, const char *path);

/* review_states - what an unfinished rebase, cherry-pick or am in @fd = @path would run or write
 * when it is continued. */
void review_states(struct review *r, int fd, const char *path);

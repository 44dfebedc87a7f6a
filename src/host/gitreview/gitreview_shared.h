/*
 * gitreview_shared.h - what the files behind gitreview() share. For them only.
 *
 * Runs in: the child that looks, when all processes of the session are dead. Only unread_all() runs outside of it.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "host/git/gitfind.h"

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

/*
 * review_is_new - did the session make or touch it? Tools cannot set the change time. What is moved
 * keeps the change times of everything below it: see `moved`.
 */
static inline bool review_is_new(const struct review *r, const struct stat *st)
{
	return gitfind_is_after(&st->st_ctim, &r->since);
}

/* review_is_new_at - the same of @name. What is not there is not new; what cannot be looked at may be. */
static inline bool review_is_new_at(const struct review *r, int dirfd, const char *name)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno != ENOENT && errno != ENOTDIR;
	return review_is_new(r, &st);
}

/*
 * review_all - in the child: the rules of gitreview(), GITDIR_LOCKED ones among them.
 * @since: one tick of the kernel's earlier than that of gitreview().
 * Returns 0; or -errno, also where one look failed for a reason that is no answer (gitfind_missed()); what was found by
 * then is returned, too.
 */
MUST_CHECK int review_all(struct arena *a, const char *workspace, uid_t caller,
	struct timespec since, const struct gitdir_rule *start, size_t start_count,
	struct gitdir_rule **ret_rules, size_t *ret_count, struct error *e);

/* The rules that come from the answer of a child, or from unread_all(). */
struct verdicts {
	struct arena *arena;
	struct gitdir_rule *rules;
	size_t count;
	bool full; /* the arena is */
};

/* verdict_add - one more. @path: in the arena, or NULL where that is full. */
void verdict_add(struct verdicts *v, enum gitdir_kind kind, const char *path, const char *why);

/*
 * verdict_take - the child's answer of @used bytes. Records, one behind the other: a letter (Q: to be quarantined,
 * L: its owner cannot list it), the number of a root as one letter from 'a' on, and two texts, each with a NUL
 * behind it: the path below that root, canonical, and why, printable.
 * Returns 0; -EPROTO where it is anything else, and then none of it is taken; -E2BIG where it has too many records;
 * -ENOMEM. Of the last two what was taken before is in @v.
 */
MUST_CHECK int verdict_take(struct verdicts *v, const char *const *roots, size_t root_count,
	const char *answer, size_t used);

/*
 * unread_all - outside, if the child could not say it: add what git would obey, without reading any
 * of it. It looks only at names and kinds of files, for a fifth of a second (gitreview_unread.c).
 */
void unread_all(struct verdicts *v, const char *workspace, const struct gitdir_rule *start,
	size_t start_count, struct timespec since);

/*
 * review_links - the symbolic links that the session made where git writes, in the git directory
 * @fd = @path.
 */
void review_links(struct review *r, int fd, const char *path);

/* review_states - what an unfinished rebase, cherry-pick or am in @fd = @path would run or write
 * when it is continued. */
void review_states(struct review *r, int fd, const char *path);

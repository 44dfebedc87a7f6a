/*
 * gitreview_child.c - the review of git in a child that can only read: gitreview() of gitreview.h.
 *
 * Runs in: the launcher, outside, when all processes of the session are dead; answer_review() and what it calls in
 * the child. May not: open or read, outside of the child, what tools made. Of an answer everything is
 * checked (gitreview_answer.c) before it is obeyed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/gitreview/gitreview.h"
#include "host/gitreview/gitreview_shared.h"
#include "host/process/confined.h"
#include "host/tree/beneath.h"
#include "plan/path.h"

enum {
	ROOTS_MAX = 16,
	ANSWER_MAX = 1 << 20,
	CHILDREN_MAX = 256,
	ROUNDS_MAX = 4, /* a directory that is made listable may hold another that is not */
};
#define PATIENCE_NS 5000000000 /* where nobody says how long it may take */
#define CLOCK_SLACK_NS 20000000

struct look {
	struct arena *arena;
	const char *workspace;
	uid_t caller;
	struct timespec since;
	const struct gitdir_rule *start;
	size_t start_count;
	const char *roots[ROOTS_MAX]; /* the workspace, and what was writable outside of it */
	size_t root_count;
};

/* --- in the child ------------------------------------------------------------------------------ */

/* wall - only the roots, and the repository that the workspace is a part of, are read from now on. */
static int wall(const struct look *l)
{
	struct finder *f = arena_alloc(l->arena, sizeof(*f));
	int places[ROOTS_MAX + 1], r = 0;
	size_t count = 0;

	if (!f)
		return -ENOMEM;
	f->arena = l->arena;
	f->workspace = l->workspace;
	f->workspace_length = strlen(l->workspace);
	f->since = &l->since;
	gitfind_above(f);
	if (f->missed < 0)
		return f->missed;
	for (size_t i = 0; i < l->root_count; i++)
		places[count++] = gitpath_open(
			AT_FDCWD, l->roots[i], O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	if (f->above)
		places[count++] = gitpath_open(
			AT_FDCWD, f->above, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	size_t open = 0;

	for (size_t i = 0; i < count; i++)
		if (places[i] >= 0)
			places[open++] = places[i];
		else
			gitfind_missed(f, places[i]);
	if (f->missed < 0)
		return f->missed;
	r = confined_only_below(places, open);
	for (size_t i = 0; i < open; i++)
		(void)close(places[i]);
	return r;
}

/* send_rule - answer with one rule as a record, if it is below a root. */
static int send_rule(
	const struct look *l, const struct gitdir_rule *rule, struct answer *answer)
{
	char head[2] = { rule->kind == GITDIR_LOCKED ? 'L' : 'Q', 'a' };
	const char *below = NULL;
	size_t i = 0;

	while (i < l->root_count && !(below = path_below(l->roots[i], rule->path)))
		i++;
	if (!below || (!*below && rule->kind == GITDIR_QUARANTINE))
		return 0;
	head[1] = (char)('a' + i);
	int r = answer_put(answer, head, sizeof(head));

	if (r >= 0)
		r = answer_put(answer, below, strlen(below) + 1);
	return r < 0 ? r : answer_put(answer, rule->why, strlen(rule->why) + 1);
}

static int answer_review(void *context, struct answer *answer)
{
	const struct look *l = context;
	struct gitdir_rule *rules = NULL;
	size_t count = 0;
	struct error e = { 0 };
	int r = wall(l);

	if (r < 0)
		return r;
	r = review_all(l->arena, l->workspace, l->caller, l->since, l->start, l->start_count,
		&rules, &count, &e);
	for (size_t i = 0; i < count; i++) {
		size_t used = answer->used;
		bool told =
			rules[i].kind == GITDIR_QUARANTINE || rules[i].kind == GITDIR_LOCKED;
		int said = told ? send_rule(l, &rules[i], answer) : 0;

		if (said < 0) {
			answer->used = used; /* whole records alone */
			return said;
		}
	}
	return r;
}

/* --- the parent -------------------------------------------------------------------------------- */

/* unlock - make @path its owner's again: a directory of the caller's that the session touched. */
static int unlock(const struct look *l, const char *path)
{
	struct stat st;
	autofd int place = gitpath_open(
		AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);

	if (place < 0 || fstat(place, &st) < 0 || st.st_uid != l->caller ||
		!gitfind_is_after(&st.st_ctim, &l->since))
		return -EPERM;
	/* Without a set-group-ID bit: our own filter (supervisor.policy) refuses to give one. */
	return beneath_chmod(place, (st.st_mode & 01777) | 0700);
}

/* unlock_all - unlock what the child could not list. Returns whether another look is worth it. */
static bool unlock_all(const struct look *l, struct verdicts *v)
{
	bool any = false;
	size_t kept = 0;

	for (size_t i = 0; i < v->count; i++) {
		if (v->rules[i].kind != GITDIR_LOCKED)
			v->rules[kept++] = v->rules[i];
		else if (unlock(l, v->rules[i].path) == 0)
			any = true;
	}
	v->count = kept;
	return any;
}

/* has_git_above - is there a .git, of whatever kind, in a directory that the workspace is in? */
static bool has_git_above(const struct look *l)
{
	size_t length = strlen(l->workspace);
	char *path = arena_alloc(l->arena, length + sizeof("/.git"));

	if (!path)
		return true;
	memcpy(path, l->workspace, length + 1);
	while (length > 0) {
		while (length > 0 && path[length - 1] != '/')
			length--;
		memcpy(path + length, ".git", sizeof(".git"));
		if (gitpath_type(AT_FDCWD, path) != 0)
			return true;
		while (length > 0 && path[length - 1] == '/')
			length--;
		path[length] = '\0';
	}
	return false;
}

/* has_git - does @directory, or one right in it, have a .git, or the HEAD of a bare repository? Names alone. */
static bool has_git(struct arena *a, const char *directory)
{
	struct gitpath_list *list = arena_alloc(a, sizeof(*list));
	char path[NAME_MAX + sizeof("/.git")];
	const char *name;
	unsigned char type;
	unsigned seen = 0;
	int result = -1;
	autofd int fd = gitpath_open(
		AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);

	if (fd < 0 || !list || gitpath_type(fd, ".git") != 0 || gitpath_type(fd, "HEAD") != 0)
		return true;
	list->fd = fd;
	while ((result = gitpath_next(list, &name, &type)) > 0) {
		(void)snprintf(path, sizeof(path), "%s/.git", name);
		/* No more of them than the start looks at. */
		if (++seen > CHILDREN_MAX || (type == DT_DIR && gitpath_type(fd, path) != 0))
			return true;
	}
	return result < 0;
}

/*
 * is_without_git - whether there is nothing of git's, now or when the session began: a child would
 * find no more than this does, and cost many times as much.
 */
static bool is_without_git(const struct look *l)
{
	for (size_t i = 0; i < l->start_count; i++)
		if (l->start[i].kind == GITDIR_WRITE ||
			(l->start[i].kind == GITDIR_PROTECT && l->start[i].exists) ||
			(l->start[i].kind == GITDIR_WATCH && l->start[i].exists))
			return false;
	return !has_git_above(l) && !has_git(l->arena, l->workspace);
}

static void find_roots(struct look *l)
{
	l->roots[l->root_count++] = l->workspace;
	for (size_t i = 0; i < l->start_count && l->root_count < ROOTS_MAX; i++) {
		const char *path = l->start[i].path;
		bool below = false;

		for (size_t j = 0; j < l->root_count; j++)
			below |= path_below(l->roots[j], path) != NULL;
		if (l->start[i].kind == GITDIR_WRITE && !below)
			l->roots[l->root_count++] = path;
	}
}

/* File times are as coarse as the kernel's tick. */
static struct timespec a_tick_before(struct timespec since)
{
	since.tv_nsec -= CLOCK_SLACK_NS;
	if (since.tv_nsec < 0) {
		since.tv_nsec += 1000000000;
		since.tv_sec--;
	}
	return since;
}

/* look_until - @answer: ANSWER_MAX bytes. */
static int look_until(struct look *l, int64_t deadline_ns, struct verdicts *v, char *answer)
{
	autofd int workspace =
		gitpath_open(AT_FDCWD, l->workspace, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	const struct confined what = {
		.work = answer_review,
		.context = l,
		.deadline_ns = deadline_ns,
		.foreign = workspace >= 0 && confined_is_foreign(workspace),
	};
	size_t used = 0;

	if (workspace < 0 && error_is_own(-workspace))
		return workspace;
	for (unsigned round = 0; round < ROUNDS_MAX; round++) {
		v->count = 0;
		int r = confined_run(&what, answer, ANSWER_MAX, &used);
		int taken = verdict_take(v, l->roots, l->root_count, answer, used);

		if (!unlock_all(l, v) || taken < 0)
			return r < 0 ? r : taken;
	}
	return -ELOOP;
}

int gitreview(struct arena *a, const char *workspace, uid_t caller, struct timespec since,
	const struct gitdir_rule *start, size_t start_count, int64_t deadline_ns,
	struct gitdir_rule **ret_rules, size_t *ret_count, struct error *e)
{
	struct look l = { .arena = a,
		.workspace = workspace,
		.caller = caller,
		.since = a_tick_before(since),
		.start = start,
		.start_count = start_count };
	struct verdicts v = { .arena = a };
	struct arena answer; /* not in @a, so that the child has all of that */

	*ret_rules = NULL;
	*ret_count = 0;
	if (is_without_git(&l))
		return 0;
	find_roots(&l);
	if (!deadline_ns)
		deadline_ns = clock_now_ns() + PATIENCE_NS;
	int r = arena_init(&answer, ANSWER_MAX);

	if (r >= 0) {
		r = look_until(&l, deadline_ns, &v, answer.base);
		arena_free(&answer);
	}
	if (r < 0)
		unread_all(&v, workspace, start, start_count, l.since);
	*ret_rules = v.rules;
	*ret_count = v.count;
	if (v.full)
		r = -ENOMEM;
	return r < 0
		? error_set(e, ERROR_LIMIT, "close", -r, workspace,
			  "files that git would obey could not be examined: they are quarantined unread")
		: 0;
}

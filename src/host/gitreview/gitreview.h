/*
 * gitreview.h - what a session left in git directories that no mount could prevent.
 *
 * Runs in: the supervisor and the sweep, outside. May not: read what tools made; a child does, which can do
 * nothing else. The reasons behind each rule are in docs/git.md.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/arena.h"
#include "base/error.h"
#include "host/git/gitdirs.h"

/*
 * gitreview - what the session left that no mount could prevent, and that makes git on the
 * host run or overwrite something: to be called when all its processes are dead, before
 * quarantine. Absent protected paths that appeared are the caller's to look at.
 * It finds: GITDIR_WATCH violated; symbolic links made in a git directory where git writes
 * (COMMIT_EDITMSG, FETCH_HEAD, logs/...); what an unfinished rebase, cherry-pick or am would run or
 * write; a new worktree's commondir that leads elsewhere and its config.worktree; repositories that
 * an index makes submodules although they are none (`git status` obeys their configuration), in one
 * another too. All of that is read by a child that can do nothing else (confined.h), which has until
 * @deadline_ns (CLOCK_MONOTONIC; 0: some seconds). It changes one thing: a git directory that the session made
 * unlistable gets its owner's rights back, since git can do without listing it.
 * @since: CLOCK_REALTIME when the session started; what is older is not its work.
 * @start, @start_count: what gitdirs_find() returned then.
 * @ret_rules, @ret_count: only GITDIR_QUARANTINE and GITDIR_NOTE. A path may lie below another.
 * Returns 0; or -errno: not all was reviewed, and the report has to say so. Then what was found so far is returned,
 * and besides, unread, what git writes or obeys in the git directories that are known, but for objects and refs:
 * the child died (-ECHILD), was late (-ETIMEDOUT), answered nonsense (-EPROTO), had more to say than it may (-E2BIG),
 * or to note than there is memory for (-ENOMEM).
 */
MUST_CHECK int gitreview(struct arena *a, const char *workspace, uid_t caller,
	struct timespec since, const struct gitdir_rule *start, size_t start_count,
	int64_t deadline_ns, struct gitdir_rule **ret_rules, size_t *ret_count,
	struct error *e);

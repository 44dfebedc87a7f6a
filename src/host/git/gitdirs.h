/*
 * gitdirs.h - what git needs to write in and around a workspace, and what must not be touched
 * because git on the host would obey it later.
 *
 * Runs in: the launcher, outside, as the caller: gitdirs_find() before anything of the session
 * exists. gitreview/gitreview.h looks at what is there when the session is over.
 * May not: write, follow a magic link, walk the work tree, believe what the workspace says about
 * places outside it. What is not understood grants less, never more, and says so in a note.
 * The reasons behind each rule are in docs/git.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/arena.h"
#include "base/error.h"

enum gitdir_kind {
	/* Writable. Outside the workspace: the repository of a linked worktree or a submodule;
	 * inside: a hole in a protected directory above it (one submodule in .git/modules). */
	GITDIR_WRITE,
	/* Read-only where `exists`; otherwise what appears there is quarantined. */
	GITDIR_PROTECT,
	/* Cannot be held by a mount, so it is looked at when the session ends. `exists`: a
	 * symbolic link that must still lead to `target`, else it is quarantined. Not `exists`: only a
	 * real directory may have appeared, everything else is quarantined. */
	GITDIR_WATCH,
	/* From gitreview() only: to be quarantined now. */
	GITDIR_QUARANTINE,
	/* Something was not understood, or not granted: for the report. Nothing to apply. */
	GITDIR_NOTE,
	/* Within the review only: a directory that its owner cannot list. */
	GITDIR_LOCKED,
};

struct gitdir_rule {
	enum gitdir_kind kind;
	const char *path; /* absolute, its directories canonical */
	bool exists;      /* when it was looked at */
	const char *why;
	const char *target; /* GITDIR_WATCH of a link: its text; otherwise NULL */
	/* GITDIR_PROTECT of a submodule's config: what to show in its place, read-only, if that
	 * can be done; otherwise NULL. It is the file without core.worktree, which a gitfile does
	 * not need, and which `git submodule update` insists on writing again where it is set. */
	const char *shown;
};

/*
 * gitdirs_find - the rules for one workspace.
 * @a:         owns everything that is returned.
 * @workspace: canonical path of the workspace.
 * @caller:    uid for whom the session is; nothing of another owner is granted.
 * @ret_rules, @ret_count: sorted by path, a directory before what is below it, no path and kind
 *             twice; of two rules the one for the longer path holds (PROTECT .git/modules,
 *             WRITE .git/modules/x, PROTECT .git/modules/x/config).
 * Returns 0; -ENOMEM where the arena is full; another -errno where the workspace itself cannot
 * be opened. On failure @e is set and the out-parameters are untouched.
 * See: gitrepository-layout(5), gitsubmodules(7), git-worktree(1), openat2(2).
 */
MUST_CHECK int gitdirs_find(struct arena *a, const char *workspace, uid_t caller,
	struct gitdir_rule **ret_rules, size_t *ret_count, struct error *e);

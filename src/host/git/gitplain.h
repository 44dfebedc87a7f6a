/*
 * gitplain.h - whether what appeared at a path of git's that was absent is only what git itself writes.
 *
 * Runs in: the launcher, outside. A child looks, which can read and answer, and nothing else
 * (confined.h). May not: change anything, follow a link, call "plain" what it could not look at
 * whole.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

/*
 * gitplain_check - judge @path, which was absent when the session began.
 * @root_fd: borrowed; the writable place (a directory; O_PATH is enough) that @path lies in.
 * @path: relative to it, canonical: no "." or ".." or link in it. Its name says what it has to be:
 *        .git       a repository that `git init` or `git clone` made: its hooks, config and info are plain, and
 *                   nothing in it leads elsewhere
 *        config     a file of one name (no other hard link), in which every key is of a short list that names
 *                   neither a program nor a path
 *        hooks      a directory of nothing but regular files *.sample
 *        branches   an empty directory
 *        Anything else is not plain.
 * @deadline_ns: CLOCK_MONOTONIC, when it has to be done; 0: within a second.
 * Returns 1 where it is plain, 0 where it is not (or nothing is there), or -errno where it cannot
 * be told: -ETIMEDOUT, -ECHILD where the child died, ... The caller treats each of those as not
 * plain. The answer is about the moment of the look: while tools live, look again when it changes.
 * See: docs/git.md.
 */
MUST_CHECK int gitplain_check(int root_fd, const char *path, int64_t deadline_ns);

/*
 * gittop.h - which work tree of git holds a directory.
 *
 * Runs in: the launcher, outside. May not: read a configuration, follow a gitfile, grant anything: where the
 * caller works is all that it says.
 */
#pragma once

#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * gittop_find - the nearest directory, @directory or one above it on the same file system, that has a `.git`: a
 * git directory, or a file that begins with "gitdir: ". As git(1) looks for it, without its variables.
 * @directory: canonical. @caller: the owner that both must have: nobody else may choose, by a
 * `.git`, what the caller works on. *@ret_top: its canonical path, in @a; set where the answer is 1
 * or -EPERM.
 * Returns 1; 0 where there is none; -EPERM: it belongs to somebody else; or -errno.
 */
MUST_CHECK int gittop_find(
	struct arena *a, const char *directory, uid_t caller, const char **ret_top);

/*
 * gitidentity.h - who the caller is to git: read from a configuration that a session does not get
 * to see.
 *
 * Runs in: the launcher, outside. May not: follow an include, let through what names a program, a
 * credential, a key or an address: only keys of a short list, each with values of one form.
 */
#pragma once

#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * gitidentity_read - make a configuration of the user.name, user.email, init.defaultBranch and
 * those aliases in @path that are a command of git with its options ("!..." and "-c ..." are left
 * out).
 * @path: canonical. @caller: the uid that must own the file. *@ret_text: in @a; NULL if there is
 * nothing to tell, no such file, or one that git would refuse. Returns 0 or -ENOMEM.
 */
MUST_CHECK int gitidentity_read(
	struct arena *a, const char *path, uid_t caller, const char **ret_text);

/*
 * gitidentity.h - who the caller is to git, out of a configuration that a session does not get to see.
 *
 * Runs in: the launcher, outside. May not: follow an include, let through what names a program, a credential, a key
 * or an address: only keys of a short list, each with values of one form.
 */
#pragma once

#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * gitidentity_read - a configuration with user.name, user.email, init.defaultBranch and those aliases of @path that
 * are a command of git's with its options ("!..." and "-c ..." are none).
 * @path: canonical. @caller: whose the file must be. *@ret_text: in @a; NULL where there is nothing to be told, no such
 * file, or one that git would refuse. Returns 0 or -ENOMEM.
 */
MUST_CHECK int gitidentity_read(
	struct arena *a, const char *path, uid_t caller, const char **ret_text);

/*
 * scratch_file.h - puts one file into a scratch, gets one out of it, or removes one, while tools write to it.
 *
 * Runs in: the client, with the caller's rights. May not: follow a link in the scratch, wait for a FIFO,
 * read or write what is no regular file there.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * scratch_put - make the file @name in the scratch from what can be read from @from.
 * Only the last component of @name counts, so that no name leads anywhere else: "../../x" is "x"; a name
 * without one ("..", "/") is refused. The file is made under another name and put in place when it
 * is complete, and then looked at again: it must be the very file that was written.
 * @force: replace a file or a link that has the name. @ret_name: where it is now, in @a.
 * Returns 0, or -errno with @e (ERROR_SCRATCH).
 */
MUST_CHECK int scratch_put(int scratch, const char *name, int from, bool force, struct arena *a,
	const char **ret_name, struct error *e);

/*
 * scratch_get - write the file @below (relative, several components allowed) to @to: as many bytes as it has when it
 * is opened. Returns 0, or -errno with @e: -ELOOP a link, -EINVAL no regular file.
 */
MUST_CHECK int scratch_get(int scratch, const char *below, int to, struct error *e);

/* scratch_remove - remove @below with all that is in it. -ENOENT: there is nothing. */
MUST_CHECK int scratch_remove(int scratch, const char *below, struct arena *a, struct error *e);

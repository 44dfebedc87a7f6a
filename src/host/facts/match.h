/*
 * match.h - the paths that a pattern of the policy stands for.
 *
 * Runs in: the launcher and carrel-policy, outside. Not glob(3): that brings user databases and
 * streams with it, and has no bound.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

enum {
	MATCH_MAX = 256,           /* paths that one pattern of a policy may stand for */
	MATCH_BENEATH_MAX = 10000, /* paths of a pattern that is looked for in a scratch */
};

/*
 * match_paths - expand @pattern (absolute; *, ? and [...] within one component, '\\' takes the meaning
 * from the next byte; a leading dot is matched by a dot alone: glob(7)).
 * @ret_paths, @ret_count: in @a. Directories that the caller may not read match nothing.
 * Returns 0, -E2BIG where more than MATCH_MAX match, -ENAMETOOLONG, -ENOMEM, or another -errno where carrel could not
 * look (error_is_own()) or a listing broke off.
 */
MUST_CHECK int match_paths(
	struct arena *a, const char *pattern, const char ***ret_paths, size_t *ret_count);

/*
 * match_beneath - the same for a pattern relative to the directory @dir, in a tree that tools wrote: no
 * link is followed, no mount is crossed. @ret_paths: relative to @dir, sorted.
 * Returns as match_paths(); -E2BIG where more than MATCH_BENEATH_MAX match.
 */
MUST_CHECK int match_beneath(struct arena *a, int dir, const char *pattern,
	const char ***ret_paths, size_t *ret_count);

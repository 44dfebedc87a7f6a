/*
 * hosts.h - the words of `allow` outside of a policy: names, and sets that stand for many.
 *
 * Runs in: a client of a live session, outside, as the caller.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * hosts_read - what @words stand for (HOST[:PORT,...], or @SET: a shipped one or the caller's own),
 * each as netrule_format() writes it.
 * @from: where the words were said, for messages. @arena: owns all of it; 16 MiB are enough.
 * 0, or -errno with @e (ERROR_POLICY, ERROR_LIMIT).
 */
MUST_CHECK int hosts_read(struct arena *arena, const char *from, const char *const *words,
	size_t word_count, const char *const *environment, const char ***ret_texts,
	size_t *ret_count, struct error *e);

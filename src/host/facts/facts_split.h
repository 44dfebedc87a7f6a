/*
 * facts_split.h - the directories on the way to something hidden, for a session without mounts.
 *
 * Runs in: the launcher and carrel-policy, outside. May not: change anything.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "plan/plan.h"

/*
 * facts_split - list into facts->splits every directory above something that is hidden in every
 * session or by the policy. A directory that cannot be listed counts as empty: what is in it cannot
 * be read then. Call it after facts_paths(). Returns 0, or -errno with @e (ERROR_LIMIT: too many
 * entries, no memory).
 */
MUST_CHECK int facts_split(struct facts *facts, struct arena *a, struct error *e);

/*
 * bare.h - a session without namespaces and mounts, where the machine refuses them and the policy says
 * `degraded`: Landlock stands for the mounts.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 *
 * A Landlock rule can only allow, and a rule for a directory allows everything below it. So a
 * directory on the way to something hidden gets no rule; each of its other entries gets one of its
 * own, as facts.splits list them. Such a directory can be passed, but not listed, and an entry that
 * appears later cannot be read. Nothing below a writable path can be hidden or made read-only.
 */
#pragma once

#include "plan/emit.h"

/*
 * bare_files - refuse what only a mount could do, and note the entries that the host side makes.
 * Returns 0, or -errno with the builder's error: ERROR_UNAVAILABLE (no Landlock), ERROR_PATH (a rule that only a
 * mount could meet).
 */
MUST_CHECK int bare_files(struct builder *b);

/* bare_closes - whether, without mounts, nothing at the place of @n may be opened. */
bool bare_closes(const struct node *n);

/* bare_landlock - OP_LANDLOCK_PATH for everything that may be read or written. 0 or -errno with @e. */
MUST_CHECK int bare_landlock(
	struct plan *plan, const struct tree *tree, uint64_t handled, struct error *e);

/*
 * bare_walls - state which walls stand. Call it after the walls of an ordinary session were stated.
 */
void bare_walls(struct plan *plan);

/*
 * bare.h - a session without namespaces and mounts, where the machine refuses them and the policy says
 * `degraded`: Landlock stands for the mounts.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 *
 * Landlock's rules only ever allow, and what is allowed for a directory is allowed for everything below
 * it. So nothing is said about a directory on the way to something hidden; each of its entries is allowed
 * for itself, as facts.splits list them. Such a directory can be passed, but not listed, and what
 * appears in it later cannot be read. Nothing can be taken out of what is writable.
 */
#pragma once

#include "plan/emit.h"

/*
 * bare_files - what the host side makes, and what can be said of the nodes without a mount.
 * Returns 0, or -errno with the builder's error: ERROR_UNAVAILABLE (no Landlock), ERROR_PATH (a rule that only a
 * mount could meet).
 */
MUST_CHECK int bare_files(struct builder *b);

/* bare_closes - whether without mounts nothing at the place of @n may be opened. */
bool bare_closes(const struct node *n);

/* bare_landlock - OP_LANDLOCK_PATH for everything that may be read or written. 0 or -errno with @e. */
MUST_CHECK int bare_landlock(
	struct plan *plan, const struct tree *tree, uint64_t handled, struct error *e);

/* bare_walls - state what stands, after the walls of an ordinary session were stated. */
void bare_walls(struct plan *plan);

/*
 * tree.h - from path rules to the tree that the session sees.
 *
 * Runs in: the launcher and carrel-policy. PURE. Rules and facts become nodes, one for each place
 * where something else than the surrounding mount is seen; sorted, so that a parent always comes
 * before what stands on it.
 */
#pragma once

#include "plan/tree_node.h"

/*
 * tree_build - collect, sort and thin out the nodes of a session.
 * @ret->arena must be set. Pins are included. Returns 0 or -errno with @e.
 */
MUST_CHECK int tree_build(struct tree *ret, const struct policy *policy,
	const struct facts *facts, struct error *e);

/* tree_find - index of the first node at @path or after it, in the order of the tree; the count: none. */
size_t tree_find(const struct tree *tree, const char *path);

/* tree_up - the nearest node that @n stands on, redundant ones passed over; NULL for "/". */
const struct node *tree_up(const struct tree *tree, const struct node *n);

/*
 * tree_check - refuse rules about the root, the workspace itself and what is every session's own.
 * Returns 0, or -errno with @e (ERROR_PATH).
 */
MUST_CHECK int tree_check(
	const struct policy *policy, const struct facts *facts, struct error *e);

/* tree_is_own - a place that is the session's own whatever a `read` says: /dev, /proc and below it. */
bool tree_is_own(const struct facts *facts, const struct path_fact *f);

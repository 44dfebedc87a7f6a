/*
 * tree_own.h - the nodes that every session has whatever the policy says, and what adding one takes.
 *
 * Runs in: the launcher and carrel-policy. PURE. For tree.c, which says in which order.
 */
#pragma once

#include "plan/tree.h"

/* Ranks: carrel's own furniture gives way to any rule; the session's own places never do. */
enum { RANK_BUILT_IN = 0, RANK_RULES = 1, RANK_SESSION = 100 };

/* tree_full - the error of a tree that holds no more, but for the hint (plan_build()). Returns -ENOMEM. */
int tree_full(struct error *e);

/* tree_add - one node more. 0 or -ENOMEM with @e. */
MUST_CHECK int tree_add(struct tree *t, struct node node, struct error *e);

/* tree_node_from_fact - a node for what a fact found. */
struct node tree_node_from_fact(const struct path_fact *f, enum node_kind kind);

/* tree_add_system - /proc, /dev, /run, /tmp, /var/tmp: never the host's. 0 or -errno with @e. */
MUST_CHECK int tree_add_system(struct tree *t, const struct facts *facts, struct error *e);

/* tree_add_workspace - the workspace in its mode. 0 or -errno with @e. */
MUST_CHECK int tree_add_workspace(struct tree *t, const struct policy *policy,
	const struct facts *facts, struct error *e);

/* tree_add_session - scratch, tool-results and what hides other sessions. 0 or -errno with @e. */
MUST_CHECK int tree_add_session(struct tree *t, const struct policy *policy,
	const struct facts *facts, struct error *e);

/* tree_name_appearance - @n, of the fact @f, is where another mount shows what is hidden or protected. 0 or -ENOMEM with @e. */
MUST_CHECK int tree_name_appearance(struct tree *t, const struct facts *facts,
	const struct path_fact *f, struct node *n, struct error *e);

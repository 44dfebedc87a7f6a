/*
 * tree_own.h - the nodes that every session has whatever the policy says.
 *
 * Runs in: the launcher and carrel-policy. PURE. For tree.c, which says in which order.
 */
#pragma once

#include "plan/tree_node.h"

/* tree_add_system - /proc, /dev, /run, /tmp, /var/tmp: never the host's. 0 or -errno with @e. */
MUST_CHECK int tree_add_system(struct tree *t, const struct facts *facts, struct error *e);

/* tree_add_workspace - the workspace in its mode. 0 or -errno with @e. */
MUST_CHECK int tree_add_workspace(struct tree *t, const struct policy *policy,
	const struct facts *facts, struct error *e);

/* tree_add_session - scratch, tool-results and what hides other sessions. 0 or -errno with @e. */
MUST_CHECK int tree_add_session(struct tree *t, const struct policy *policy,
	const struct facts *facts, struct error *e);

/*
 * tree_name_appearance - complete @n, made from @f: another mount shows there what is hidden or
 * protected. 0 or -ENOMEM with @e.
 */
MUST_CHECK int tree_name_appearance(struct tree *t, const struct facts *facts,
	const struct path_fact *f, struct node *n, struct error *e);

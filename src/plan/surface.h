/*
 * surface.h - what a path is to a session: the surface that a host's edit contracts go by.
 *
 * Runs in: S and the launcher. PURE. It says what the policy decided; whether the file's own mode then
 * lets the command read it is the file system's affair.
 */
#pragma once

#include "plan/plan.h"

struct surface {
	enum surface_kind kind;
	bool read, write;
	bool quarantined; /* it does not exist, and what is made there is moved away */
	const char *why;  /* for people; never NULL */
	const struct source *source; /* the line that says so, or NULL */
};

/* plan_surface - @path: canonical, as the session sees it; it need not exist. */
void plan_surface(const struct plan *plan, const char *path, struct surface *ret);

/*
 * plan_node_at - the node that is seen at @path, canonical: the deepest one on the way to it. Pins,
 * links and nodes that make no difference are passed over. NULL: nothing is seen there.
 */
const struct node *plan_node_at(const struct plan *plan, const char *path);

/*
 * plan_shows_host - whether what is seen at @path, canonical, is what the host has there, and nothing is made in
 * its place or on the way to something below it. False where that cannot be said.
 */
bool plan_shows_host(const struct plan *plan, const char *path);

/* plan_surface_name - the stable word, e.g. "tool-results". Never NULL. */
const char *plan_surface_name(enum surface_kind kind);

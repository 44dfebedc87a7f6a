/*
 * seen.h - what stands behind a path of the session: a part of the host's tree, or something of carrel's own.
 *
 * Runs in: carrel-policy. PURE. It reads the nodes of the plan, which are what the mounts are made of.
 */
#pragma once

#include "base/arena.h"
#include "plan/tree_node.h"

enum seen_backing {
	SEEN_NOTHING, /* no node shows anything there */
	SEEN_HOST,    /* what the host has at `host` */
	SEEN_MADE, /* carrel's own: it holds what is named below it, and what the session makes */
	SEEN_KERNEL, /* a file system of the kernel's: /proc, the terminals */
};

struct seen {
	enum seen_backing backing;
	const struct node *node; /* NULL for SEEN_NOTHING */
	const char *host;        /* SEEN_HOST: where the host has it; in the arena */
	const char *
		link; /* a link that carrel makes at exactly this path: its target; else NULL */
	bool exact;   /* the node stands at the path itself */
	bool on_the_way; /* something that is seen lies below the path */
};

/*
 * plan_seen - what stands behind @path (canonical, as the session sees it). 0, or -ENOMEM: the
 * arena is full.
 */
MUST_CHECK int plan_seen(
	const struct plan *plan, struct arena *arena, const char *path, struct seen *ret);

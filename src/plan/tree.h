/*
 * tree.h - from path rules to the tree that the session sees.
 *
 * Runs in: the launcher and carrel-policy. PURE. Rules and facts become nodes, one for each place
 * where something else than the surrounding mount is seen; sorted, so that a parent always comes
 * before what stands on it.
 */
#pragma once

#include "plan/plan.h"

enum node_kind {
	NODE_LINK,      /* a symbolic link, where the directory it lies in is ours */
	NODE_HOST_ROOT, /* "/" is the host's own */
	NODE_SHELL,   /* an empty read-only directory that holds only what is named below it */
	NODE_BIND,    /* something of the host, read-only or writable */
	NODE_PIN,     /* a directory bound onto itself, so that it cannot be renamed */
	NODE_PROTECT, /* read-only inside something writable */
	NODE_HIDE,    /* an empty directory or file on top */
	NODE_TMPFS,   /* empty writable memory */
	NODE_DEV,     /* a device node */
	NODE_PROC,
	NODE_DEVPTS,
	NODE_SHM,
	NODE_OVERLAY, /* the workspace, copy on write */
	NODE_SCRATCH, /* the scratch: a directory of the session, or bounded memory */
	NODE_TMP,     /* /tmp and /var/tmp: the scratch's tmp/ */
};

#define NODE_NO_UP ((size_t)-1)

struct node {
	enum node_kind kind;
	const char *path;   /* where it is seen */
	const char *source; /* what is shown; the target of a link */
	const char *shown;  /* protect: a text to show in its place, or NULL */
	bool writable;
	bool is_dir;
	bool is_link;        /* protect: the thing itself is a symbolic link */
	bool exists;         /* there is something at `path` on the host to mount on */
	bool open_to_others; /* mode lets any uid read (and pass) it */
	bool checked;        /* dev and ino are known */
	bool shows_host; /* derived while walking: below it lies a part of the host's tree */
	bool idmapped;   /* derived: through plan.idmaps[idmap] */
	bool redundant;  /* derived: the place looks the same without it */
	bool in_session; /* furnished by making entries in the session directory */
	uint16_t idmap;
	uint16_t slot;      /* derived: furnished through this slot, else PLAN_NO_SLOT */
	const char *prefix; /* derived: directory in that slot (or in the session directory) */
	const struct node
		*mount;      /* derived: the node whose mount it is seen on; NULL: the root's */
	uint16_t mount_slot; /* derived: its own mount, 0 where it has none */
	dev_t dev;
	ino_t ino;
	uid_t uid;
	gid_t gid;
	uint64_t size;
	size_t up;     /* index of the node this one stands on, NODE_NO_UP for "/" */
	unsigned rank; /* of two for one path the higher wins */
	const char *why;
	const struct source *line;
};

struct tree {
	struct node *nodes;
	size_t count;
	struct arena *arena;
};

/*
 * tree_build - collect, sort and thin out the nodes of a session.
 * @ret->arena must be set. Pins are included. Returns 0 or -errno with @e.
 */
MUST_CHECK int tree_build(struct tree *ret, const struct policy *policy,
	const struct facts *facts, struct error *e);

/* tree_find - index of the first node at @path or after it, in the order of the tree; the count: none. */
size_t tree_find(const struct tree *tree, const char *path);

/* tree_up - the node that really stands below @n (redundant ones passed over); NULL for "/". */
const struct node *tree_up(const struct tree *tree, const struct node *n);

/* tree_host_root - whether "/" inside is the host's own, read-only. */
bool tree_host_root(const struct tree *tree);

/*
 * tree_check - refuse rules about the root, the workspace itself and what is every session's own.
 * Returns 0, or -errno with @e (ERROR_PATH).
 */
MUST_CHECK int tree_check(
	const struct policy *policy, const struct facts *facts, struct error *e);

/* tree_is_own - a place that is the session's own whatever a `read` says: /dev, /proc and below it. */
bool tree_is_own(const struct facts *facts, const struct path_fact *f);

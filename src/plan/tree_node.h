/*
 * tree_node.h - what stands at one place of the session's tree, and how it gets there.
 *
 * Runs in: the launcher and carrel-policy. PURE.
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
	const char *shown;  /* bind, protect: a text to show in its place, or NULL */
	bool writable;
	bool is_dir;
	bool is_link;        /* protect: the thing itself is a symbolic link */
	bool exists;         /* there is something at `path` on the host to mount on */
	bool open_to_others; /* mode lets any uid read (and pass) it */
	bool checked;        /* dev and ino are known */
	bool shows_host; /* derived while walking: below it lies a part of the host's tree */
	bool idmapped;   /* derived: through plan.idmaps[idmap] */
	bool redundant;  /* derived: the place looks the same without it */
	bool in_session; /* filled by making entries in the session directory */
	bool may_go;     /* a socket of the host: where it is gone there is nothing to cover */
	uint16_t idmap;
	uint16_t slot;      /* derived: filled through this slot, else PLAN_NO_SLOT */
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

/* Ranks: carrel's own skeleton gives way to any rule; the session's own places never do. */
enum { RANK_BUILT_IN = 0, RANK_RULES = 1, RANK_SESSION = 100 };

/* tree_full - the error of a tree that holds no more, without its hint. Returns -ENOMEM. */
int tree_full(struct error *e);

/* tree_full_hint - the hint for that error: whether the policy or git repositories have so many paths. */
void tree_full_hint(const struct facts *facts, struct error *e);

/* tree_add - one node more. 0 or -ENOMEM with @e. */
MUST_CHECK int tree_add(struct tree *t, struct node node, struct error *e);

/* tree_node_from_fact - a node for what a fact found. */
struct node tree_node_from_fact(const struct path_fact *f, enum node_kind kind);

/* tree_host_root - whether "/" inside is the host's own, read-only. */
bool tree_host_root(const struct tree *tree);

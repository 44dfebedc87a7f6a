/*
 * bare.c - see bare.h.
 *
 * Runs in: the launcher and carrel-policy. PURE: no system calls.
 */
#include "plan/bare.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plan/path.h"
#include "plan/uapi.h"

static const uint64_t reading =
	LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
static const uint64_t on_files = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
	LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |
	LANDLOCK_ACCESS_FS_IOCTL_DEV | LANDLOCK_ACCESS_FS_RESOLVE_UNIX;

/* What a node is without a mount on it. */
enum meaning {
	MEANS_NOTHING, /* as what surrounds it */
	MEANS_CLOSED,
	MEANS_READABLE,
	MEANS_WRITABLE,
	MEANS_DEVICE,
};

static enum meaning meaning(const struct node *n)
{
	switch (n->kind) {
	case NODE_HOST_ROOT:
	case NODE_PROC: /* the container's: readable, except what it says of other processes */
		return MEANS_READABLE;
	case NODE_BIND:
		return n->writable ? MEANS_WRITABLE : MEANS_READABLE;
	case NODE_SCRATCH:
		return MEANS_WRITABLE;
	case NODE_DEV:
		return MEANS_DEVICE;
	case NODE_SHELL:
	case NODE_HIDE:
	case NODE_TMP:
	case NODE_DEVPTS:
	case NODE_SHM:
	case NODE_TMPFS:
	case NODE_OVERLAY:
		return MEANS_CLOSED;
	case NODE_LINK:
	case NODE_PIN:
	case NODE_PROTECT:
		return MEANS_NOTHING;
	}
	return MEANS_CLOSED;
}

bool bare_closes(const struct node *n)
{
	return meaning(n) == MEANS_CLOSED;
}

/* --- what only a mount could do --------------------------------------------------------------- */

static int refuse_node(struct builder *b, const struct node *n, const char *what)
{
	const struct policy *policy = b->plan->policy;
	char place[256], on[1024];

	if (n->line)
		policy_format_source(
			n->line, policy_source_setting(policy, n->line), place, sizeof(place));
	(void)snprintf(on, sizeof(on), "%s%s%s%s", n->path, n->line ? " (" : "",
		n->line ? place : "", n->line ? ")" : "");
	int r = error_set(b->e, ERROR_PATH, "plan", ERROR_OWN(ENOTSUP), on, "%s", what);

	error_hint(b->e,
		"this machine refuses mounts, and Landlock cannot do this; the report "
		"and `carrel plan` say why they are refused");
	return r;
}

static int refuse_setting(struct builder *b, const char *what, const char *setting)
{
	int r = error_set(b->e, ERROR_UNAVAILABLE, "plan", ERROR_OWN(ENOTSUP),
		b->plan->facts->refused_namespaces, "%s needs namespaces", what);

	error_hint(b->e, "leave out `%s`, or let the machine allow namespaces", setting);
	return r;
}

static int check_settings(struct builder *b)
{
	const struct policy *policy = b->plan->policy;
	const struct facts *facts = b->plan->facts;

	if (!policy->degraded.on)
		return error_set(b->e, ERROR_UNAVAILABLE, "plan", ERROR_OWN(ENOTSUP),
			facts->refused_namespaces,
			"this machine cannot build the walls of a session");
	if (facts->landlock_abi == 0) {
		int r = error_set(b->e, ERROR_UNAVAILABLE, "plan", ERROR_OWN(ENOTSUP),
			facts->refused_namespaces,
			"this machine has neither mounts nor Landlock: nothing would protect the files");

		error_hint(b->e, "`degraded` accepts weaker walls, not none");
		return r;
	}
	if (policy->nested.on)
		return refuse_setting(b, "a session inside", "nested");
	if (policy->workspace_mode == WORKSPACE_OVERLAY)
		return refuse_setting(b, "a copy-on-write workspace", "workspace-mode overlay");
	if (policy->scratch_size.set)
		return refuse_setting(b, "a scratch of bounded size", "scratch-size");
	return 0;
}

/* The nearest node above that has a meaning of its own. */
static const struct node *meaningful_up(const struct tree *t, const struct node *n)
{
	do
		n = n->up == NODE_NO_UP ? NULL : &t->nodes[n->up];
	while (n && meaning(n) == MEANS_NOTHING);
	return n;
}

static int check_node(struct builder *b, const struct node *n)
{
	const struct node *up = meaningful_up(&b->tree, n);

	if (n->kind == NODE_BIND && n->source && strcmp(n->path, n->source) != 0)
		return refuse_node(b, n, "a path cannot be shown at another one");
	if (n->kind == NODE_TMPFS)
		return refuse_node(b, n, "no memory can be put at a path");
	if (!up || meaning(up) != MEANS_WRITABLE)
		return 0;
	if (meaning(n) == MEANS_CLOSED)
		return refuse_node(b, n, "a path inside a writable one cannot be hidden");
	if (meaning(n) == MEANS_READABLE)
		return refuse_node(b, n, "a path inside a writable one cannot be read-only");
	return 0;
}

int bare_files(struct builder *b)
{
	int r = check_settings(b);

	for (size_t i = 0; i < b->tree.count && r >= 0; i++) {
		struct node *n = &b->tree.nodes[i];

		n->shows_host = n->kind == NODE_BIND || n->kind == NODE_HOST_ROOT;
		r = check_node(b, n);
	}
	if (r < 0)
		return r;
	r = emit_entry(b, "tool-results", false);
	if (r < 0)
		return r;
	r = emit_entry(b, "scratch", false);
	if (r < 0)
		return r;
	return emit_entry(b, "scratch/tmp", false);
}

/* --- Landlock --------------------------------------------------------------------------------- */

struct allower {
	struct plan *plan;
	const struct tree *tree;
	uint64_t handled;
	struct error *e;
};

static uint64_t rights_of(const struct allower *a, const struct node *n)
{
	uint64_t rights = 0;

	switch (meaning(n)) {
	case MEANS_READABLE:
		rights = reading;
		break;
	case MEANS_WRITABLE:
		rights = a->handled;
		break;
	case MEANS_DEVICE:
		rights = on_files & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE;
		break;
	case MEANS_CLOSED:
	case MEANS_NOTHING:
		break;
	}
	return rights & a->handled & (n->is_dir ? ~UINT64_C(0) : on_files);
}

static int allow(struct allower *a, struct op op)
{
	op.kind = OP_LANDLOCK_PATH;
	return emit_to(a->plan, op, a->e);
}

/* The first node at @path or below it, from the sorted ones; NULL: none. */
static const struct node *first_below(const struct allower *a, const char *path)
{
	size_t first = tree_find(a->tree, path);
	const struct node *n = first < a->tree->count ? &a->tree->nodes[first] : NULL;

	return n && path_below(path, n->path) ? n : NULL;
}

static bool is_at_end(const struct allower *a, const struct node *n)
{
	return n == a->tree->nodes + a->tree->count;
}

/* Whether something at @path or below it is closed; with @inside only what is below it counts. */
static bool has_closed(const struct allower *a, const char *path, bool inside)
{
	const struct node *n = first_below(a, path);

	for (; n && !is_at_end(a, n) && path_below(path, n->path); n++)
		if (meaning(n) == MEANS_CLOSED && (!inside || strcmp(n->path, path) != 0))
			return true;
	return false;
}

/* Find the node around @path, a directory that may be split. */
static const struct node *node_around(const struct allower *a, const char *path)
{
	const struct node *around = NULL;

	for (size_t i = 0; i < a->tree->count; i++) {
		const struct node *n = &a->tree->nodes[i];

		if (path_below(n->path, path) && meaning(n) != MEANS_NOTHING)
			around = n;
	}
	return around;
}

/* The entries of a directory that cannot be allowed as a whole. */
static int allow_entries(
	struct allower *a, const struct split_fact *split, const struct node *around)
{
	uint64_t rights = reading & a->handled;
	int r = 0;

	for (size_t i = 0; i < split->count && r >= 0; i++) {
		const struct split_entry *entry = &split->entries[i];
		const char *path = arena_format(a->plan->arena, "%s/%s",
			strcmp(split->path, "/") != 0 ? split->path : "", entry->name);
		const struct node *there = path ? first_below(a, path) : NULL;

		/* Skip an entry that has a rule of its own, and one on the way to something closed. */
		if (path && there && !strcmp(there->path, path) &&
			meaning(there) != MEANS_NOTHING)
			continue;
		if (path && has_closed(a, path, false))
			continue;
		r = !path ? emit_no_memory(a->e)
			  : allow(a,
				    (struct op){ .path = path,
					    .flags = OPF_OPTIONAL,
					    .value = entry->is_dir ? rights : rights & on_files,
					    .why = around->why,
					    .source = around->line });
	}
	return r;
}

int bare_landlock(struct plan *plan, const struct tree *tree, uint64_t handled, struct error *e)
{
	struct allower a = { plan, tree, handled, e };
	const struct facts *facts = plan->facts;
	int r = 0;

	for (size_t i = 0; i < tree->count && r >= 0; i++) {
		const struct node *n = &tree->nodes[i];
		uint64_t rights = rights_of(&a, n);

		if (rights && !has_closed(&a, n->path, true))
			r = allow(&a,
				(struct op){ .path = n->path,
					.value = rights,
					.why = n->kind == NODE_PROC ? "the machine's own"
								    : n->why,
					.source = n->line });
	}
	for (size_t i = 0; i < facts->split_count && r >= 0; i++) {
		const struct split_fact *split = &facts->splits[i];
		const struct node *around = node_around(&a, split->path);

		if (around && meaning(around) == MEANS_READABLE &&
			has_closed(&a, split->path, true))
			r = allow_entries(&a, split, around);
	}
	return r;
}

/* --- the walls -------------------------------------------------------------------------------- */

void bare_walls(struct plan *plan)
{
	const struct facts *facts = plan->facts;
	const char *refused = facts->refused_namespaces;
	struct wall_fact *w = plan->walls;
	const struct {
		enum wall wall;
		const char *why;
	} gone[] = {
		{ WALL_USER_NS, refused },
		{ WALL_MOUNT_NS, refused },
		{ WALL_PID_NS,
			facts->landlock_abi >= 6
				? "other processes can be seen, but neither looked into nor "
				  "signalled"
				: "other processes can be seen, and those of the same user "
				  "signalled: Landlock ABI < 6" },
		{ WALL_IPC_NS, "queues and shared memory of others can be reached" },
		{ WALL_UTS_NS, refused },
		{ WALL_CGROUP_NS, refused },
		{ WALL_MOUNTS,
			"Landlock alone: hidden files can be seen to exist, protected paths "
			"in the workspace written, modes and times of own files changed" },
	};

	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		w[gone[i].wall] = (struct wall_fact){ WALL_UNAVAILABLE, gone[i].why };
	if (plan->policy->net == NET_NONE)
		w[WALL_NET_NS] = (struct wall_fact){
			WALL_UNAVAILABLE,
			"instead, sockets other than unix ones are refused; there is no loopback"
		};
	if (facts->uid == 0)
		w[WALL_UNPRIVILEGED_UID] = (struct wall_fact){ WALL_UNAVAILABLE,
			"root stays root, without capabilities" };
}

/*
 * plan_build.c - from the tree of nodes to numbered operations; see plan_build.h.
 *
 * Runs in: the launcher and carrel-policy. PURE: no system calls.
 *
 * Sources are taken into slots first and attached last, parents before children, with the root
 * sealed in between: at no time is a writable mount of the host reachable by a path.
 */
#include "plan/plan_build.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>

#include "plan/absent.h"
#include "plan/bare.h"
#include "plan/emit.h"
#include "plan/env.h"
#include "plan/path.h"
#include "plan/process.h"
#include "plan/tree_node.h"

/* An empty directory inside one of carrel's own needs no mount of its own. */
static bool is_in_shell(const struct node *n, const struct node *up)
{
	return n->kind == NODE_SHELL && up && up->kind == NODE_SHELL && up->mount &&
		strcmp(n->path, "/dev") != 0;
}

static int place_in_shell(struct builder *b, struct node *n, const struct node *up)
{
	n->slot = up->slot;
	n->mount = up->mount;
	n->prefix = arena_join(b->plan->arena, up->prefix, '/', path_below(up->path, n->path));
	return n->prefix ? 0 : emit_full(b);
}

static int place_shell(struct builder *b, struct node *n)
{
	const struct node *up = tree_up(&b->tree, n);

	if (is_in_shell(n, up))
		return place_in_shell(b, n, up);
	n->slot = SLOT_SKELETON;
	n->prefix = arena_format(b->plan->arena, "%u", b->shells++);
	if (!n->prefix)
		return emit_full(b);
	int r = emit_op(b,
		(struct op){ .kind = OP_MKDIR,
			.slot = SLOT_SKELETON,
			.path = n->prefix,
			.value = 0755,
			.why = n->why,
			.source = n->line });
	if (r < 0)
		return r;
	if (n->up != NODE_NO_UP)
		return emit_pick(b, n, SLOT_SKELETON, n->prefix);
	r = emit_slot(b, &b->root_slot);
	return r < 0 ? r
		     : emit_op(b,
			       (struct op){ .kind = OP_PICK,
				       .slot = b->root_slot,
				       .from = SLOT_SKELETON,
				       .path = n->prefix,
				       .flags = OPF_RDONLY,
				       .why = n->why });
}

/* The well-known links of a /dev that is ours. */
static int make_dev_links(struct builder *b, const struct node *dev)
{
	static const char *const links[][2] = {
		{ "fd", "/proc/self/fd" },
		{ "stdin", "/proc/self/fd/0" },
		{ "stdout", "/proc/self/fd/1" },
		{ "stderr", "/proc/self/fd/2" },
		{ "ptmx", "pts/ptmx" },
	};

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		int r = emit_make(b, dev, OP_SYMLINK, links[i][0], links[i][1], dev);
		if (r < 0)
			return r;
	}
	return 0;
}

static int place_bind(struct builder *b, struct node *n, unsigned flags)
{
	uint16_t slot = PLAN_NO_SLOT;
	int r = emit_clone(b, n, flags, &slot);

	n->shows_host = true;
	return r < 0 ? r : emit_attach(b, n, slot);
}

/* Show a text in the place of a file. */
static int place_text(struct builder *b, struct node *n)
{
	const char *name = arena_format(b->plan->arena, "text%u", b->shells++);
	int r = name ? emit_op(b,
			       (struct op){ .kind = OP_MKFILE,
				       .slot = SLOT_SKELETON,
				       .path = name,
				       .text = n->shown,
				       .value = 0444,
				       .why = n->why,
				       .source = n->line })
		     : emit_full(b);

	return r < 0 ? r : emit_pick(b, n, SLOT_SKELETON, name);
}

static int place_new(struct builder *b, struct node *n, enum op_kind kind)
{
	uint16_t slot = PLAN_NO_SLOT;
	int r = emit_slot(b, &slot);

	n->slot = slot;
	n->prefix = "";
	if (kind == OP_PROC)
		b->proc_slot = slot;
	if (r >= 0)
		r = emit_op(b,
			(struct op){ .kind = kind,
				.slot = slot,
				.value = n->size,
				.flags = kind == OP_TMPFS ? OPF_OWNED : 0,
				.why = n->why,
				.source = n->line });
	return r < 0 ? r : emit_attach(b, n, slot);
}

/*
 * Show the machine's own /proc, with what the machine has mounted over parts of it. Its pid 1 is
 * not the session's. What it says of processes outside the user namespace, the kernel refuses:
 * ptrace(2).
 */
static int place_old_proc(struct builder *b, struct node *n)
{
	n->source = n->path;
	n->checked = false;
	n->writable = false;
	n->why = "the machine's own: a new one is refused";
	return place_bind(b, n, OPF_NOEXEC);
}

/* The scratch: a directory of the session on disk, or memory where a size is asked for. */
static int place_scratch(struct builder *b, struct node *n)
{
	if (b->plan->policy->scratch_size.set) {
		n->slot = b->scratch_slot;
		n->prefix = "";
		n->idmapped = false;
		int r = emit_attach(b, n, n->slot);
		if (r >= 0)
			b->attaches[b->attach_count - 1].flags |= OPF_SHARED;
		return r;
	}
	int r = place_bind(b, n, 0);

	/* The launcher makes the mount points below it, in the session directory. */
	n->in_session = true;
	n->prefix = "scratch";
	n->shows_host = false;
	return r;
}

/* /tmp and /var/tmp: both are the scratch's tmp/. */
static int place_tmp(struct builder *b, struct node *n)
{
	const struct facts *facts = b->plan->facts;

	if (b->plan->policy->scratch_size.set) {
		n->slot = b->scratch_slot;
		n->prefix = "tmp";
		n->idmapped = false;
		return emit_pick(b, n, b->scratch_slot, "tmp");
	}
	n->checked = false;
	n->uid = facts->uid;
	n->gid = facts->gid;
	n->idmapped = false;
	n->in_session = true;
	n->prefix = "scratch/tmp";
	n->source = arena_join(b->plan->arena, facts->session_dir, '/', "scratch/tmp");
	if (!n->source)
		return emit_full(b);
	int r = emit_choose_idmap(b, n, NULL);
	if (r >= 0)
		r = place_bind(b, n, 0);
	n->shows_host = false;
	return r;
}

/*
 * The upper layer is not idmapped: overlayfs works on it as whoever mounted it, and through an
 * idmapped mount root would be nobody there. It belongs to the payload's kernel ids instead.
 */
static int add_overlay_entries(struct builder *b)
{
	struct plan *p = b->plan;
	int r = emit_entry(b, "overlay/upper", false);

	if (r >= 0) {
		p->entries[p->entry_count - 1].owned = true;
		p->entries[p->entry_count - 1].mode = p->facts->workspace_perm;
		r = emit_entry(b, "overlay/work", false);
	}
	return r;
}

static int place_overlay(struct builder *b, struct node *n)
{
	struct node lower = *n;
	struct node store = { .path = n->path,
		.is_dir = true,
		.writable = true,
		.why = n->why,
		.line = n->line };
	uint16_t lower_slot = PLAN_NO_SLOT, store_slot = PLAN_NO_SLOT, slot = PLAN_NO_SLOT;

	lower.writable = false;
	store.source = arena_join(b->plan->arena, b->plan->facts->session_dir, '/', "overlay");
	int r = store.source ? add_overlay_entries(b) : emit_full(b);
	if (r < 0)
		return r;
	r = emit_clone(b, &lower, 0, &lower_slot);
	if (r < 0)
		return r;
	r = emit_clone(b, &store, 0, &store_slot);
	if (r < 0)
		return r;
	r = emit_slot(b, &slot);
	if (r < 0)
		return r;
	r = emit_op(b,
		(struct op){ .kind = OP_OVERLAY,
			.slot = slot,
			.from = lower_slot,
			.value = store_slot,
			.why = n->why,
			.source = n->line });
	n->shows_host = true;
	return r < 0 ? r : emit_attach(b, n, slot);
}

/* Whether the place looks the same without this node. */
static bool is_redundant(const struct node *n, const struct node *up)
{
	switch (n->kind) {
	case NODE_BIND:
		return up->shows_host && up->kind != NODE_OVERLAY && n->exists && !n->shown &&
			emit_is_part(n, up) && n->writable == up->writable &&
			n->idmapped == up->idmapped && (!n->idmapped || n->idmap == up->idmap);
	case NODE_PROTECT:
		return !up->shows_host || !up->writable || up->kind == NODE_OVERLAY;
	case NODE_HIDE:
	case NODE_LINK:
		return n->kind == NODE_LINK ? up->shows_host : !up->shows_host;
	case NODE_PIN:
		return !up->shows_host;
	case NODE_SHELL:
		return up->shows_host ? !n->exists : false;
	case NODE_HOST_ROOT:
	case NODE_TMPFS:
	case NODE_DEV:
	case NODE_PROC:
	case NODE_DEVPTS:
	case NODE_SHM:
	case NODE_OVERLAY:
	case NODE_SCRATCH:
	case NODE_TMP:
		return false;
	}
	return false;
}

static int place_node(struct builder *b, struct node *n)
{
	switch (n->kind) {
	case NODE_LINK:
		return 0; /* filled by its caller */
	case NODE_HOST_ROOT:
		n->shows_host = true;
		return 0;
	case NODE_SHELL: {
		int r = place_shell(b, n);

		return r < 0 || strcmp(n->path, "/dev") != 0 ? r : make_dev_links(b, n);
	}
	case NODE_BIND:
	case NODE_PROTECT:
		return n->shown ? place_text(b, n) : place_bind(b, n, 0);
	case NODE_PIN:
		return place_bind(b, n, 0);
	case NODE_HIDE:
		n->slot = SLOT_SKELETON;
		return n->is_dir ? place_shell(b, n)
				 : emit_pick(b, n, SLOT_SKELETON, SKELETON_EMPTY_FILE);
	case NODE_TMPFS:
		return place_new(b, n, OP_TMPFS);
	case NODE_DEV:
		return place_bind(b, n, OPF_DEV | OPF_NOEXEC);
	case NODE_PROC:
		return b->plan->facts->refused_proc ? place_old_proc(b, n)
						    : place_new(b, n, OP_PROC);
	case NODE_DEVPTS:
		return place_new(b, n, OP_DEVPTS);
	case NODE_SHM:
		n->slot = SLOT_SKELETON;
		n->prefix = SKELETON_SHM;
		return emit_pick(b, n, SLOT_SKELETON, SKELETON_SHM);
	case NODE_OVERLAY:
		return place_overlay(b, n);
	case NODE_SCRATCH:
		return place_scratch(b, n);
	case NODE_TMP:
		return place_tmp(b, n);
	}
	return -EINVAL;
}

static int visit_node(struct builder *b, struct node *n)
{
	const struct node *up = tree_up(&b->tree, n);
	int r = 0;

	if (n->kind == NODE_BIND || n->kind == NODE_PIN || n->kind == NODE_PROTECT ||
		n->kind == NODE_SCRATCH || n->kind == NODE_OVERLAY)
		r = emit_choose_idmap(b, n, up);
	if (r < 0)
		return r;
	if (up && is_redundant(n, up)) {
		n->redundant = true;
		return 0;
	}
	if (up && n->kind == NODE_LINK)
		return emit_way(b, n, up, OP_SYMLINK);
	if (up)
		r = emit_mount_point(b, n, up);
	return r < 0 ? r : place_node(b, n);
}

static int emit_skeleton(struct builder *b)
{
	static const struct {
		enum op_kind kind;
		const char *path;
		unsigned mode;
	} pieces[] = {
		{ OP_MKDIR, SKELETON_SHM, 01777 },
		{ OP_MKFILE, SKELETON_EMPTY_FILE, 0444 },
	};
	int r = emit_op(b,
		(struct op){ .kind = OP_TMPFS,
			.slot = SLOT_SKELETON,
			.why = "skeleton: empty directories, files and mount points; /dev/shm" });

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]) && r >= 0; i++)
		r = emit_op(b,
			(struct op){ .kind = pieces[i].kind,
				.slot = SLOT_SKELETON,
				.path = pieces[i].path,
				.value = pieces[i].mode,
				.why = "skeleton" });
	return r;
}

static int emit_scratch_in_memory(struct builder *b)
{
	const struct number_value *size = &b->plan->policy->scratch_size;
	int r = emit_slot(b, &b->scratch_slot);

	if (r < 0)
		return r;
	r = emit_op(b,
		(struct op){ .kind = OP_TMPFS,
			.slot = b->scratch_slot,
			.flags = OPF_OWNED,
			.value = size->value,
			.why = "scratch",
			.source = &size->source });
	return r < 0 ? r
		     : emit_op(b,
			       (struct op){ .kind = OP_MKDIR,
				       .slot = b->scratch_slot,
				       .path = "tmp",
				       .value = 01777,
				       .why = "scratch" });
}

/* The places of the session directory: made on disk, or in memory where the scratch is bounded. */
static int emit_session(struct builder *b)
{
	const struct policy *policy = b->plan->policy;
	int r = b->plan->facts->saves_outputs ? emit_entry(b, "tool-results", false) : 0;

	if (r < 0)
		return r;
	r = emit_entry(b, "scratch", false);
	if (r < 0)
		return r;
	if (!policy->scratch_size.set)
		r = emit_entry(b, "scratch/tmp", false);
	if (r < 0)
		return r;
	if (policy->workspace_mode == WORKSPACE_OVERLAY)
		r = emit_entry(b, "overlay", false);
	if (r < 0)
		return r;
	return policy->scratch_size.set ? emit_scratch_in_memory(b) : 0;
}

static int emit_files(struct builder *b)
{
	int r = emit_skeleton(b);

	if (r >= 0)
		r = emit_session(b);

	for (size_t i = 0; i < b->tree.count && r >= 0; i++)
		r = visit_node(b, &b->tree.nodes[i]);
	if (r < 0)
		return r;
	r = emit_op(b,
		tree_host_root(&b->tree)
			? (struct op){ .kind = OP_ROOT_SEAL, .path = "/", .why = "readable" }
			: (struct op){ .kind = OP_ROOT_NEW,
				  .slot = b->root_slot,
				  .why = "a root of nothing but what is named" });
	for (size_t i = 0; i < b->attach_count && r >= 0; i++)
		r = emit_op(b, b->attaches[i]);
	if (r >= 0 && !tree_host_root(&b->tree))
		r = emit_op(b,
			(struct op){ .kind = OP_ROOT_PIVOT,
				.slot = b->root_slot,
				.why = "nothing of the host's root stays" });
	return r;
}

/* files -> what must stay absent -> environment -> the process itself. */
static int build_operations(struct builder *b)
{
	struct plan *plan = b->plan;
	int r = tree_build(&b->tree, plan->policy, plan->facts, b->e);

	if (r < 0)
		return r;
	r = plan->clone_flags ? emit_files(b) : bare_files(b);
	if (r < 0)
		return r;
	r = absent_collect(b);
	if (r < 0)
		return r;
	r = plan_environment(plan, b->e);
	return r < 0 ? r : plan_process(plan, &b->tree, b->proc_slot, b->e);
}

int plan_build(struct plan *ret, struct arena *arena, const struct policy *policy,
	const struct facts *facts, const char *const *argv, const struct sock_filter *filter,
	unsigned short filter_count, struct error *e)
{
	*ret = (struct plan){
		.policy = policy,
		.facts = facts,
		.arena = arena,
		.argv = argv,
		.filter = filter,
		.filter_count = filter_count,
		.slot_count = 1, /* the skeleton */
		.clone_flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			CLONE_NEWCGROUP,
	};
	struct builder b = { .plan = ret, .tree = { .arena = arena }, .e = e };

	if (policy->net != NET_HOST)
		ret->clone_flags |= CLONE_NEWNET;
	if (!facts->privileged)
		ret->clone_flags |= CLONE_NEWUSER;
	if (facts->refused_namespaces)
		ret->clone_flags = 0;
	if (facts->privileged) {
		ret->idmaps[0] = (struct idmap){ facts->uid, facts->gid };
		ret->idmap_count = 1;
	}
	int r = build_operations(&b);
	ret->nodes = b.tree.nodes;
	ret->node_count = b.tree.count;
	if (r == -ENOMEM)
		tree_full_hint(facts, e);
	return r;
}

/*
 * emit.c - see emit.h.
 *
 * Runs in: the launcher and carrel-policy. PURE: no system calls.
 */
#include "plan/emit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plan/path.h"
#include "plan/tree_node.h"

int emit_full(struct builder *b)
{
	return tree_full(b->e);
}

int emit_no_memory(struct error *e)
{
	return error_set(e, ERROR_LIMIT, "plan", ERROR_OWN(ENOMEM), NULL,
		"the plan needs more memory than is set aside");
}

int emit_to(struct plan *p, struct op op, struct error *e)
{
	struct op *ops = arena_push_many(p->arena, p->ops, p->op_count, sizeof(op));

	if (!ops)
		return emit_no_memory(e);
	p->ops = ops;
	p->ops[p->op_count++] = op;
	return 0;
}

int emit_op(struct builder *b, struct op op)
{
	return emit_to(b->plan, op, b->e);
}

/*
 * Name a place by the mount it is on, if nobody but carrel can have put a link on the way: if it
 * lies right in that mount's root, or in directories of the skeleton. NULL otherwise.
 */
static const char *name_on_mount(const struct node *on, const struct node *up, const char *path)
{
	const char *rest = on ? path_below(on->path, path) : NULL;
	bool ours = up && !up->shows_host && !up->in_session && up->slot == SLOT_SKELETON &&
		up->kind == NODE_SHELL;

	return rest && *rest && (ours || !strchr(rest, '/')) ? rest : NULL;
}

int emit_attach(struct builder *b, struct node *n, uint16_t slot)
{
	struct op *ops =
		arena_push_many(b->plan->arena, b->attaches, b->attach_count, sizeof(*ops));
	const struct node *up = tree_up(&b->tree, n);
	const struct node *on = up ? up->mount : NULL;
	const char *name = name_on_mount(on, up, n->path);

	if (!ops)
		return emit_full(b);
	b->attaches = ops;
	b->attaches[b->attach_count++] = (struct op){
		.kind = OP_ATTACH,
		.slot = slot,
		.from = name ? on->mount_slot : 0,
		.path = n->path,
		.text = name,
		.flags = (n->is_link ? OPF_LINK : 0U) | (n->may_go ? OPF_OPTIONAL : 0U),
		.why = n->why,
		.source = n->line,
	};
	n->mount = n;
	n->mount_slot = slot;
	return 0;
}

int emit_slot(struct builder *b, uint16_t *ret_slot)
{
	if (b->plan->slot_count >= PLAN_SLOT_MAX)
		return emit_full(b);
	*ret_slot = (uint16_t)b->plan->slot_count++;
	return 0;
}

/* Find the index of an owner among the plan's idmaps; an owner that is not there yet is added. */
static int find_idmap(struct builder *b, uid_t uid, gid_t gid, uint16_t *ret_index)
{
	struct plan *p = b->plan;
	size_t i = 0;

	while (i < p->idmap_count &&
		(p->idmaps[i].disk_uid != uid || p->idmaps[i].disk_gid != gid))
		i++;
	if (i == PLAN_IDMAP_MAX) {
		int r = error_set(b->e, ERROR_LIMIT, "plan", ERROR_OWN(E2BIG), NULL,
			"the writable paths have more than %d different owners",
			PLAN_IDMAP_MAX);
		error_hint(b->e, "run carrel as the owner of the files instead of root");
		return r;
	}
	if (i == p->idmap_count)
		p->idmaps[p->idmap_count++] = (struct idmap){ uid, gid };
	*ret_index = (uint16_t)i;
	return 0;
}

bool emit_is_part(const struct node *n, const struct node *up)
{
	const char *place = path_below(up->path, n->path);
	const char *thing = up->source && n->source ? path_below(up->source, n->source) : NULL;

	return place && thing && !strcmp(place, thing);
}

int emit_choose_idmap(struct builder *b, struct node *n, const struct node *up)
{
	if (!b->plan->facts->privileged || n->kind == NODE_DEV)
		return 0;
	if (up && up->shows_host && up->idmapped && emit_is_part(n, up) &&
		(n->kind == NODE_PIN || n->kind == NODE_PROTECT || !n->writable)) {
		n->idmapped = true;
		n->idmap = up->idmap;
		return 0;
	}
	if (!n->writable && (n->open_to_others || n->kind == NODE_PROTECT))
		return 0;
	n->idmapped = true;
	return find_idmap(b, n->uid, n->gid, &n->idmap);
}

int emit_clone(struct builder *b, const struct node *n, unsigned flags, uint16_t *ret_slot)
{
	struct op op = {
		.kind = OP_CLONE,
		.flags = flags,
		.path = n->source,
		.dev = n->dev,
		.ino = n->ino,
		.why = n->why,
		.source = n->line,
	};

	int r = emit_slot(b, ret_slot);

	if (r < 0)
		return r;
	op.slot = *ret_slot;
	if (n->checked)
		op.flags |= OPF_CHECKED;
	if (n->is_dir)
		op.flags |= OPF_RECURSIVE;
	if (n->is_link)
		op.flags |= OPF_LINK;
	if (!n->writable)
		op.flags |= OPF_RDONLY;
	if (n->idmapped) {
		op.flags |= OPF_IDMAP;
		op.from = n->idmap;
	}
	return emit_op(b, op);
}

int emit_entry(struct builder *b, const char *path, bool is_file)
{
	struct plan *p = b->plan;

	for (size_t i = 0; i < p->entry_count; i++)
		if (!strcmp(p->entries[i].path, path))
			return 0;
	struct session_entry *entries =
		arena_push(p->arena, p->entries, p->entry_count, sizeof(*entries));
	if (!entries)
		return emit_full(b);
	p->entries = entries;
	p->entries[p->entry_count++] =
		(struct session_entry){ .path = path, .is_file = is_file };
	return 0;
}

/* One directory, file or link in a place that carrel fills; a directory that is there already is fine. */
int emit_make(struct builder *b, const struct node *place, enum op_kind kind,
	const char *relative, const char *target, const struct node *n)
{
	const char *path = !*place->prefix ? relative
		: !*relative               ? place->prefix
			     : arena_join(b->plan->arena, place->prefix, '/', relative);

	if (!path)
		return emit_full(b);
	if (place->in_session)
		return kind == OP_SYMLINK ? 0 : emit_entry(b, path, kind == OP_MKFILE);
	for (size_t i = 0; i < b->plan->op_count; i++) {
		const struct op *op = &b->plan->ops[i];

		if ((op->kind == OP_MKDIR || op->kind == OP_SYMLINK) &&
			op->slot == place->slot && !strcmp(op->path, path))
			return 0;
	}
	return emit_op(b,
		(struct op){ .kind = kind,
			.slot = place->slot,
			.path = path,
			.text = target,
			.value = kind == OP_MKDIR ? 0755 : 0444,
			.why = n->why,
			.source = n->line });
}

/* Make the directories on the way to @n in a place that carrel fills, and @kind at their end. */
int emit_way(struct builder *b, const struct node *n, const struct node *up, enum op_kind kind)
{
	const char *rest = path_below(up->path, n->path);

	for (const char *end = strchr(rest, '/'); end; end = strchr(end + 1, '/')) {
		const char *part = arena_copy(b->plan->arena, rest, (size_t)(end - rest));
		int r = part ? emit_make(b, up, OP_MKDIR, part, NULL, n) : emit_full(b);
		if (r < 0)
			return r;
	}
	return emit_make(b, up, kind, rest, kind == OP_SYMLINK ? n->source : NULL, n);
}

/*
 * Whether @up is a bind of another directory, and that has nothing at the place where @n is
 * mounted.
 */
static bool is_unseated(const struct builder *b, const struct node *n, const struct node *up)
{
	const struct facts *facts = b->plan->facts;

	if ((up->kind != NODE_BIND && up->kind != NODE_PIN) || !strcmp(up->path, up->source))
		return false;
	size_t length = strlen(up->source);
	const char *rest = path_below(up->path, n->path);
	for (size_t i = 0; i < facts->unseated_count; i++) {
		const char *seen = facts->unseated[i];

		if (!strncmp(seen, up->source, length) && seen[length] == '/' &&
			!strcmp(seen + length + 1, rest))
			return true;
	}
	return false;
}

static int fail_unseated(struct builder *b, const struct node *n, const struct node *up)
{
	const struct facts *facts = b->plan->facts;
	const struct policy *policy = b->plan->policy;
	bool scratch = path_below(facts->session_dir, n->path) != NULL;
	char place[256], on[1024];

	policy_format_source(
		up->line, policy_source_setting(policy, up->line), place, sizeof(place));
	(void)snprintf(
		on, sizeof(on), "%s (%s)", scratch ? facts->scratch_base : n->path, place);
	int r = error_set(b->e, ERROR_PATH, "plan", ERROR_OWN(ENOENT), on,
		"the source of the bind here or above has nothing to mount this on");
	if (scratch)
		error_hint(b->e,
			"the scratch is made here: choose another destination, or another base with "
			"--scratch-base");
	else
		error_hint(b->e, "choose another destination, or have %s/%s there", up->source,
			path_below(up->path, n->path));
	return r;
}

/* Make the place where node @n stands: nothing on the host's tree, directories in ours. */
int emit_mount_point(struct builder *b, const struct node *n, const struct node *up)
{
	if (up->shows_host) {
		if (n->exists)
			return is_unseated(b, n, up) ? fail_unseated(b, n, up) : 0;
		int r = error_set(b->e, ERROR_PATH, "plan", ERROR_OWN(ENOENT), n->path,
			"the destination does not exist, and no placeholder is made on the host");
		error_hint(b->e, "name a destination that exists, or one below a `tmpfs` line");
		return r;
	}
	return emit_way(b, n, up, n->is_dir ? OP_MKDIR : OP_MKFILE);
}

/* Show a directory or file of a slot that carrel filled at the node's place. */
int emit_pick(struct builder *b, struct node *n, uint16_t from, const char *path)
{
	uint16_t slot = PLAN_NO_SLOT;
	int r = emit_slot(b, &slot);

	if (r >= 0)
		r = emit_op(b,
			(struct op){ .kind = OP_PICK,
				.slot = slot,
				.from = from,
				.path = path,
				.flags = n->writable ? 0 : OPF_RDONLY | OPF_NOEXEC,
				.why = n->why,
				.source = n->line });
	return r < 0 ? r : emit_attach(b, n, slot);
}

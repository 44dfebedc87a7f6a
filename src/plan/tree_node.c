/*
 * tree_node.c - see tree_node.h.
 *
 * Runs in: the launcher and carrel-policy. PURE: no system calls.
 */
#include "plan/tree_node.h"

#include <errno.h>
#include <sys/stat.h>

int tree_full(struct error *e)
{
	(void)error_set(e, ERROR_LIMIT, "plan", 0, NULL,
		"there are more paths to mount than the %d that a plan can hold",
		PLAN_SLOT_MAX);
	return -ENOMEM;
}

void tree_full_hint(const struct facts *facts, struct error *e)
{
	if (facts->git_mounts > PLAN_SLOT_MAX / 2)
		error_hint(e,
			"%zu of them are for git repositories in the workspace: name one of these, or a directory with "
			"fewer, with --workspace; or take --workspace-mode ro",
			facts->git_mounts);
	else
		error_hint(e, "name directories instead of many single files");
}

int tree_add(struct tree *t, struct node node, struct error *e)
{
	struct node *nodes = arena_push_many(t->arena, t->nodes, t->count, sizeof(node));

	if (!nodes || t->count >= PLAN_SLOT_MAX * 4)
		return tree_full(e);
	t->nodes = nodes;
	t->nodes[t->count++] = node;
	return 0;
}

static bool open_to_others(const struct path_fact *f)
{
	mode_t need = S_ISDIR(f->mode) ? S_IROTH | S_IXOTH : S_IROTH;

	return (f->mode & need) == need;
}

struct node tree_node_from_fact(const struct path_fact *f, enum node_kind kind)
{
	return (struct node){
		.kind = kind,
		.path = f->path,
		.source = f->source,
		.shown = f->shown,
		.is_dir = S_ISDIR(f->mode),
		.is_link = f->is_link,
		.exists = f->dest_exists,
		.open_to_others = open_to_others(f),
		.checked = true,
		.dev = f->dev,
		.ino = f->ino,
		.uid = f->uid,
		.gid = f->gid,
		.rank = RANK_RULES + (f->rule ? (unsigned)f->rule->source.layer : 0),
		.line = f->rule ? &f->rule->source : NULL,
	};
}

bool tree_host_root(const struct tree *tree)
{
	for (size_t i = 0; i < tree->count; i++)
		if (tree->nodes[i].kind == NODE_HOST_ROOT)
			return true;
	return false;
}

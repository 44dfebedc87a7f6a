/*
 * absent.c - see absent.h.
 *
 * Runs in: the launcher and carrel-policy. PURE: no system calls.
 */
#include "plan/absent.h"

#include <errno.h>
#include <string.h>

#include "plan/path.h"

/* The node whose file system is seen at @path. */
static const struct node *find_seen(const struct builder *b, const char *path)
{
	const struct tree *t = &b->tree;
	size_t i = tree_find(t, path);

	/* If no node stands at the path, those that it lies in are the node before it and what that stands on. */
	if (i == t->count || strcmp(t->nodes[i].path, path) != 0)
		i = i ? i - 1 : NODE_NO_UP;
	for (; i != NODE_NO_UP; i = t->nodes[i].up) {
		const struct node *n = &t->nodes[i];

		/* A node that protects the path itself is not a directory that the path lies in. */
		if (n->kind != NODE_LINK && n->kind != NODE_PROTECT && !n->redundant &&
			path_below(n->path, path))
			return n;
	}
	return NULL;
}

static bool lets_host_change(const struct node *n)
{
	return n && n->writable && n->shows_host && n->kind != NODE_OVERLAY;
}

static bool is_elsewhere(const struct node *n)
{
	return n->source && strcmp(n->path, n->source) != 0;
}

/*
 * Find the root of the writable place on the host in which tools can make the protected path of
 * @f, at its own path or where a bind shows it. NULL: they cannot. *@ret is -ENOMEM if the arena
 * is full.
 */
static const char *find_absent_root(struct builder *b, const struct path_fact *f, int *ret)
{
	const struct node *seen = find_seen(b, f->path);

	*ret = 0;
	if (lets_host_change(seen) && !is_elsewhere(seen))
		return seen->path;
	for (size_t i = 0; i < b->tree.count; i++) {
		const struct node *n = &b->tree.nodes[i];

		if (n->kind != NODE_BIND || !n->writable || !is_elsewhere(n))
			continue;
		const char *rest = path_below(n->source, f->path);
		const char *there =
			!rest || !*rest ? NULL : arena_join(b->plan->arena, n->path, '/', rest);

		if (rest && *rest && !there)
			*ret = -ENOMEM;
		if (there && lets_host_change(find_seen(b, there)))
			return n->source;
	}
	return NULL;
}

static int keep_path(struct builder *b, const struct path_fact *f, const char *root)
{
	struct plan *p = b->plan;
	struct kept_path *kept = arena_push(p->arena, p->kept, p->kept_count, sizeof(*kept));

	if (!kept)
		return emit_full(b);
	p->kept = kept;
	p->kept[p->kept_count++] = (struct kept_path){
		.root = root,
		.path = f->path,
		.dev = f->dev,
		.ino = f->ino,
	};
	return 0;
}

int absent_collect(struct builder *b)
{
	struct plan *p = b->plan;
	const struct facts *facts = p->facts;

	for (size_t i = 0; i < facts->path_count; i++) {
		const struct path_fact *f = &facts->paths[i];
		int r;

		if (f->rule->kind != PATH_PROTECT || f->rule->glob)
			continue;
		const char *root = find_absent_root(b, f, &r);
		if (r < 0)
			return emit_full(b);
		if (!root)
			continue;
		if (f->exists) {
			r = keep_path(b, f, root);
			if (r < 0)
				return r;
			continue;
		}
		struct absent_path *absents =
			arena_push(p->arena, p->absents, p->absent_count, sizeof(*absents));
		if (!absents)
			return emit_full(b);
		p->absents = absents;
		p->absents[p->absent_count++] = (struct absent_path){
			.root = root,
			.path = f->path,
			.existing_prefix = f->parent_exists,
			.source = &f->rule->source,
		};
	}
	return 0;
}

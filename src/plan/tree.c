/*
 * tree.c - collecting and sorting the nodes of a session; see tree.h.
 *
 * Runs in: the launcher and carrel-policy. PURE: no system calls.
 */
#include "plan/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "plan/path.h"
#include "plan/tree_own.h"

static struct node node_from_rule(const struct path_fact *f)
{
	struct node n = tree_node_from_fact(f, NODE_BIND);

	switch (f->rule->kind) {
	case PATH_READ:
		n.why = !f->shown ? "readable"
			: f->rule->source.file && !strcmp(f->rule->source.file, "net")
			? "the session's own resolver and hosts"
			: "who the user is to git, and nothing else";
		if (!strcmp(f->path, "/"))
			n.kind = NODE_HOST_ROOT;
		break;
	case PATH_WRITE:
		n.why = "writable";
		n.writable = true;
		break;
	case PATH_BIND_RO:
		n.why = "bound, read-only";
		break;
	case PATH_BIND_RW:
		n.why = "bound, writable";
		n.writable = true;
		break;
	case PATH_HIDE:
		n.kind = NODE_HIDE;
		n.why = f->rule->socket ? "a unix socket of the host" : "hidden";
		n.may_go = f->rule->socket;
		break;
	case PATH_PROTECT:
		n.kind = NODE_PROTECT;
		n.why = "protected";
		break;
	case PATH_TMPFS:
		n.kind = NODE_TMPFS;
		n.why = "empty memory";
		n.writable = true;
		n.is_dir = true;
		n.size = f->rule->size;
		break;
	case PATH_DEV:
		n.kind = NODE_DEV;
		n.why = "device";
		break;
	}
	return n;
}

/* A path that is hidden or protected stays so where a bind shows it at another path. */
static int add_derived(struct tree *t, const struct facts *facts, const struct path_fact *bind,
	struct error *e)
{
	for (size_t i = 0; i < facts->path_count; i++) {
		const struct path_fact *f = &facts->paths[i];
		const char *rest = path_below(bind->source, f->path);

		if (!rest || !*rest || !f->exists || strcmp(f->path, f->source) != 0 ||
			(f->rule->kind != PATH_HIDE && f->rule->kind != PATH_PROTECT))
			continue;
		struct node n = node_from_rule(f);

		n.path = arena_join(t->arena, bind->path, '/', rest);
		if (!n.path)
			return tree_full(e);
		n.exists = true;
		int r = tree_add(t, n, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * The places of sockets, processes and other sessions are not the host's either where a bind shows
 * them.
 */
static int add_derived_places(struct tree *t, const struct facts *facts,
	const struct path_fact *bind, struct error *e)
{
	static const enum system_path places[] = { SYSTEM_PROC, SYSTEM_DEV, SYSTEM_RUN,
		SYSTEM_TMP, SYSTEM_VAR_TMP };
	const size_t count = sizeof(places) / sizeof(places[0]);

	const char *const own[] = { facts->scratch_base, facts->runtime_dir, facts->state_dir };

	for (size_t i = 0; i < count + 3; i++) {
		const struct path_fact *f = i < count ? &facts->system[places[i]] : NULL;
		const char *path = f ? f->path : own[i - count];
		const char *rest = path ? path_below(bind->source, path) : NULL;

		if (!rest || !*rest || (f && !f->exists))
			continue;
		struct node n = { .kind = NODE_SHELL,
			.is_dir = true,
			.exists = true,
			.rank = path == facts->state_dir ? RANK_SESSION : RANK_BUILT_IN,
			.line = &bind->rule->source,
			.why = "never the host's, nor where a bind shows it" };

		n.path = arena_join(t->arena, bind->path, '/', rest);
		int r = n.path ? tree_add(t, n, e) : tree_full(e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_rules(struct tree *t, const struct facts *facts, struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < facts->path_count && r >= 0; i++) {
		const struct path_fact *f = &facts->paths[i];

		if ((!f->exists && f->rule->kind != PATH_TMPFS) || f->covered)
			continue; /* optional; or absent, and to stay so; or not seen */
		if (tree_is_own(facts, f))
			continue; /* a `read` line: it can be read as it is */
		struct node n = node_from_rule(f);
		r = f->same_as ? tree_name_appearance(t, facts, f, &n, e) : 0;
		if (r >= 0)
			r = tree_add(t, n, e);
		if (r < 0 || !f->rule->dest || !strcmp(f->path, f->source))
			continue;
		r = add_derived(t, facts, f, e);
		if (r >= 0)
			r = add_derived_places(t, facts, f, e);
	}
	return r;
}

static int add_links_and_closed(struct tree *t, const struct facts *facts, struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < facts->link_count && r >= 0; i++) {
		struct node n = { .kind = NODE_LINK,
			.path = facts->links[i].path,
			.source = facts->links[i].target,
			.rank = RANK_BUILT_IN,
			.why = "link on the way to a named path" };

		r = tree_add(t, n, e);
	}
	for (size_t i = 0; i < facts->closed_count && r >= 0; i++) {
		struct node n = { .kind = NODE_SHELL,
			.path = facts->closed_dirs[i],
			.is_dir = true,
			.exists = true,
			.rank = RANK_BUILT_IN,
			.why = "closed to others; only what is named below it is shown" };

		/* In the workspace the payload is the owner. */
		if (path_below(facts->workspace, facts->closed_dirs[i]))
			continue;
		r = tree_add(t, n, e);
	}
	return r;
}

static int compare_nodes(const void *pa, const void *pb)
{
	const struct node *a = pa, *b = pb;
	int order = path_compare(a->path, b->path);

	if (order)
		return order;
	/* The winner of a place comes first: a link only where nothing else is there. */
	if ((a->kind == NODE_LINK) != (b->kind == NODE_LINK))
		return a->kind == NODE_LINK ? 1 : -1;
	if (a->rank != b->rank)
		return a->rank > b->rank ? -1 : 1;
	/* Same layer, same path: the stricter one; conflicts were refused by the policy. */
	if (a->kind != b->kind)
		return a->kind > b->kind ? -1 : 1;
	if (a->writable != b->writable)
		return a->writable ? 1 : -1;
	/* Still the same: any one will do, but always the same one, whatever qsort(3) does. */
	order = a->source && b->source ? strcmp(a->source, b->source) : 0;
	if (order || !a->line || !b->line)
		return order;
	return (a->line->line > b->line->line) - (a->line->line < b->line->line);
}

static void sort_and_thin(struct tree *t)
{
	size_t kept = 0;

	qsort(t->nodes, t->count, sizeof(t->nodes[0]), compare_nodes);
	for (size_t i = 0; i < t->count; i++)
		if (!kept || strcmp(t->nodes[kept - 1].path, t->nodes[i].path) != 0)
			t->nodes[kept++] = t->nodes[i];
	t->count = kept;
}

/* An overlay is not the host's: a pin in it would show the host's own directory, writable. */
static bool is_host_writable(const struct node *n)
{
	return n->writable && n->kind == NODE_BIND;
}

/* The host's path that is seen at @path, which lies in @root; NULL: the arena is full. */
static const char *seen_in(struct tree *t, const struct node *root, const char *path)
{
	if (!strcmp(root->path, root->source))
		return path;
	return arena_join(t->arena, root->source, '/', path_below(root->path, path));
}

/*
 * Pin every directory between something that stands in a writable tree and that tree's root:
 * rename(2) refuses a mount point (EBUSY), so an ancestor can no longer be moved away from under
 * a protected path. A pin is not checked against device and inode: if it were swapped between
 * facts and launch, what it guards is no longer where the facts say, and that is checked.
 */
static int add_pins_for(
	struct tree *t, const struct node *root, const char *path, struct error *e)
{
	size_t end = path_parent_length(path);

	while (end > strlen(root->path)) {
		struct node pin = { .kind = NODE_PIN,
			.is_dir = true,
			.exists = true,
			.writable = true,
			.rank = RANK_BUILT_IN,
			.line = root->line,
			.why = "pinned: something below it is protected" };

		pin.path = arena_copy(t->arena, path, end);
		pin.source = pin.path ? seen_in(t, root, pin.path) : NULL;
		if (!pin.source)
			return tree_full(e);
		int r = tree_add(t, pin, e);
		if (r < 0)
			return r;
		end = path_parent_length(pin.path);
	}
	return 0;
}

/* The nearest node that node @i stands on; sorted order makes this linear over all nodes. */
static void link_up(struct tree *t)
{
	for (size_t i = 0; i < t->count; i++) {
		size_t up = i ? i - 1 : NODE_NO_UP;

		while (up != NODE_NO_UP &&
			(t->nodes[up].kind == NODE_LINK ||
				!path_below(t->nodes[up].path, t->nodes[i].path)))
			up = t->nodes[up].up;
		t->nodes[i].up = up;
	}
}

static int add_pins(struct tree *t, struct error *e)
{
	size_t count = t->count;
	int r = 0;

	link_up(t);
	for (size_t i = 0; i < count && r >= 0; i++) {
		const struct node *n = &t->nodes[i];

		if (n->kind == NODE_LINK || n->up == NODE_NO_UP)
			continue;
		const struct node root = t->nodes[n->up]; /* a copy: the array may move */
		if (is_host_writable(&root))
			r = add_pins_for(t, &root, n->path, e);
	}
	return r;
}

size_t tree_find(const struct tree *tree, const char *path)
{
	size_t low = 0, high = tree->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (path_compare(tree->nodes[middle].path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct node *tree_up(const struct tree *tree, const struct node *n)
{
	while (n->up != NODE_NO_UP) {
		n = &tree->nodes[n->up];
		if (!n->redundant)
			return n;
	}
	return NULL;
}

static int add_nodes(
	struct tree *t, const struct policy *policy, const struct facts *facts, struct error *e)
{
	const struct node root = { .kind = NODE_SHELL,
		.path = "/",
		.is_dir = true,
		.rank = RANK_BUILT_IN,
		.why = "a root of nothing but what is named" };
	int r = tree_check(policy, facts, e);

	if (r < 0)
		return r;
	r = add_rules(t, facts, e);
	if (r < 0)
		return r;
	r = tree_add(t, root, e);
	if (r < 0)
		return r;
	r = tree_add_system(t, facts, e);
	if (r < 0)
		return r;
	r = add_links_and_closed(t, facts, e);
	if (r < 0)
		return r;
	r = tree_add_workspace(t, policy, facts, e);
	return r < 0 ? r : tree_add_session(t, policy, facts, e);
}

int tree_build(struct tree *ret, const struct policy *policy, const struct facts *facts,
	struct error *e)
{
	int r = add_nodes(ret, policy, facts, e);

	if (r < 0)
		return r;
	sort_and_thin(ret);
	size_t sorted = ret->count;
	r = add_pins(ret, e);
	if (r < 0 || ret->count == sorted)
		return r;
	sort_and_thin(ret);
	link_up(ret);
	return 0;
}

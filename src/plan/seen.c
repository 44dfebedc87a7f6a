/*
 * seen.c - see seen.h.
 *
 * Runs in: carrel-policy. PURE.
 */
#include "plan/seen.h"

#include <errno.h>
#include <string.h>

#include "plan/path.h"
#include "plan/surface.h"

static enum seen_backing backing_of(const struct node *n)
{
	switch (n->kind) {
	case NODE_HOST_ROOT:
	case NODE_BIND:
	case NODE_PIN:
	case NODE_DEV:
	case NODE_OVERLAY:
		return SEEN_HOST;
	case NODE_PROTECT:
		return n->shown ? SEEN_MADE : SEEN_HOST;
	case NODE_SHELL:
	case NODE_HIDE:
	case NODE_TMPFS:
	case NODE_SHM:
	case NODE_SCRATCH:
	case NODE_TMP:
		return SEEN_MADE;
	case NODE_PROC:
	case NODE_DEVPTS:
		return SEEN_KERNEL;
	case NODE_LINK:
		break;
	}
	return SEEN_NOTHING;
}

/* The links of a /dev that is ours lead into /proc, which is the kernel's. */
static bool is_dev_link(const char *path)
{
	static const char *const links[] = { "/dev/fd", "/dev/stdin", "/dev/stdout",
		"/dev/stderr", "/dev/ptmx" };

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		if (!strcmp(path, links[i]))
			return true;
	return false;
}

/* Other nodes can make this place a link, or a directory on the way to something. */
static void look_around(const struct plan *plan, const char *path, struct seen *ret)
{
	for (size_t i = 0; i < plan->node_count; i++) {
		const struct node *n = &plan->nodes[i];
		const char *rest = n->redundant ? NULL : path_below(path, n->path);

		if (rest && !*rest && n->kind == NODE_LINK)
			ret->link = n->source;
		if (rest && *rest)
			ret->on_the_way = true;
	}
}

int plan_seen(const struct plan *plan, struct arena *arena, const char *path, struct seen *ret)
{
	const struct node *n = plan_node_at(plan, path);
	struct seen s = { .node = n, .backing = n ? backing_of(n) : SEEN_NOTHING };

	if (!n) {
		*ret = s;
		return 0;
	}
	const char *rest = path_below(n->path, path);
	const char *source = n->source ? n->source : n->path;

	s.exact = !*rest;
	if (plan->clone_flags) {
		look_around(plan, path, &s);
	} else { /* without mounts everything is the host's */
		s.backing = n->kind == NODE_PROC ? SEEN_KERNEL : SEEN_HOST;
		source = n->path;
	}
	if (s.backing == SEEN_MADE && is_dev_link(path))
		s.backing = SEEN_KERNEL;
	if (s.backing == SEEN_HOST) {
		s.host = !*rest                ? source
			: !strcmp(source, "/") ? arena_join(arena, "", '/', rest)
					       : arena_join(arena, source, '/', rest);
		if (!s.host)
			return -ENOMEM;
	}
	*ret = s;
	return 0;
}

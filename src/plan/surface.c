/*
 * surface.c - see surface.h.
 *
 * Runs in: S and the launcher. PURE.
 */
#include "plan/surface.h"

#include <string.h>

#include "plan/bare.h"
#include "plan/path.h"
#include "plan/tree.h"

static const char *const names[] = {
	[SURFACE_OUTSIDE] = "outside",
	[SURFACE_READABLE] = "readable",
	[SURFACE_WORKSPACE] = "workspace",
	[SURFACE_SCRATCH] = "scratch",
	[SURFACE_TOOL_RESULTS] = "tool-results",
	[SURFACE_PROTECTED] = "protected",
	[SURFACE_HIDDEN] = "hidden",
};

const char *plan_surface_name(enum surface_kind kind)
{
	return names[kind];
}

/*
 * Whether a node decides what is seen at its place. A pin shows what it stands on. A redundant node
 * is not mounted: a hidden path that is not seen anyway, or a protected one in the scratch or an
 * overlay. A redundant bind still says what its place is.
 */
static bool is_seen(const struct plan *plan, const struct node *n)
{
	if (n->kind == NODE_PIN || n->kind == NODE_LINK)
		return false;
	if (n->redundant)
		return n->kind == NODE_BIND;
	return plan->clone_flags || n->kind != NODE_PROTECT; /* without mounts: plan/bare.h */
}

const struct node *plan_node_at(const struct plan *plan, const char *path)
{
	const struct node *best = NULL;

	for (size_t i = 0; i < plan->node_count; i++) {
		const struct node *n = &plan->nodes[i];

		if (!is_seen(plan, n) || !path_below(n->path, path))
			continue;
		if (!best || strlen(n->path) >= strlen(best->path))
			best = n;
	}
	return best;
}

static enum surface_kind kind_of_bind(const struct plan *plan, const struct node *n)
{
	const char *rest = path_below(plan->facts->session_dir, n->path);

	if (rest && !strcmp(rest, "tool-results"))
		return SURFACE_TOOL_RESULTS;
	return !strcmp(n->path, plan->facts->workspace) ? SURFACE_WORKSPACE : SURFACE_READABLE;
}

static enum surface_kind kind_of(const struct plan *plan, const struct node *n)
{
	switch (n->kind) {
	case NODE_SCRATCH:
	case NODE_TMP:
		return SURFACE_SCRATCH;
	case NODE_OVERLAY:
		return SURFACE_WORKSPACE;
	case NODE_PROTECT:
		return SURFACE_PROTECTED;
	case NODE_HIDE:
		return SURFACE_HIDDEN;
	case NODE_SHELL:
		return SURFACE_OUTSIDE;
	case NODE_BIND:
		return kind_of_bind(plan, n);
	case NODE_LINK:
	case NODE_PIN:
	case NODE_HOST_ROOT:
	case NODE_TMPFS:
	case NODE_DEV:
	case NODE_PROC:
	case NODE_DEVPTS:
	case NODE_SHM:
		return SURFACE_READABLE;
	}
	return SURFACE_OUTSIDE;
}

static const struct absent_path *find_absent(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->absent_count; i++)
		if (path_below(plan->absents[i].path, path))
			return &plan->absents[i];
	return NULL;
}

void plan_surface(const struct plan *plan, const char *path, struct surface *ret)
{
	const struct node *n = plan_node_at(plan, path);
	const struct absent_path *absent = find_absent(plan, path);
	struct surface s = { .kind = SURFACE_OUTSIDE,
		.why = "nothing of the host is shown here" };

	if (n) {
		s.kind = kind_of(plan, n);
		s.read = s.kind != SURFACE_OUTSIDE && s.kind != SURFACE_HIDDEN;
		s.write = s.read && s.kind != SURFACE_PROTECTED && n->writable;
		s.why = n->why ? n->why : s.why;
		s.source = n->line;
	}
	if (n && !plan->clone_flags && bare_closes(n)) {
		s.kind = n->kind == NODE_HIDE ? SURFACE_HIDDEN : SURFACE_OUTSIDE;
		s.read = s.write = false;
	}
	if (absent && s.write) {
		s.kind = SURFACE_PROTECTED;
		s.write = false;
		s.quarantined = true;
		s.why = "protected; what appears here is quarantined";
		s.source = absent->source;
	}
	*ret = s;
}

bool plan_shows_host(const struct plan *plan, const char *path)
{
	const struct node *n = plan_node_at(plan, path);

	for (size_t i = 0; i < plan->node_count; i++)
		if (path_below(path, plan->nodes[i].path))
			return false;
	if (!n)
		return false;
	return n->kind == NODE_HOST_ROOT || n->kind == NODE_OVERLAY ||
		(n->kind == NODE_BIND && n->source && !strcmp(n->source, n->path));
}

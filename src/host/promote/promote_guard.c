/*
 * promote_guard.c - see promote_guard.h.
 *
 * Runs in: the supervisor and the client (host side).
 */
#include "host/promote/promote_guard.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "host/facts/resolve.h"
#include "host/git/gitdirs.h"
#include "plan/path.h"

/* --- before the launch ------------------------------------------------------------------------- */

static int fail_rule(const struct promote_rule *rule, enum error_code code, int errnum,
	const char *path, const char *what, struct error *e)
{
	char on[1024], place[256];

	policy_format_source(
		&rule->source, rule->pattern ? "promote" : "promote-to", place, sizeof(place));
	(void)snprintf(on, sizeof(on), "%s (%s)", path, place);
	return error_set(e, code, "facts", errnum, on, "%s", what);
}

static bool has_dots(const char *path)
{
	for (const char *at = path; (at = strstr(at, "..")); at += 2)
		if ((at == path || at[-1] == '/') && (!at[2] || at[2] == '/'))
			return true;
	return false;
}

static int resolve_root(struct facts *facts, struct resolver *res,
	const struct promote_rule *rule, struct error *e)
{
	struct promote_root *grown = arena_push(
		res->arena, facts->promote_roots, facts->promote_root_count, sizeof(*grown));
	struct resolved found;

	if (!grown)
		return fail_rule(
			rule, ERROR_LIMIT, ERROR_OWN(ENOMEM), rule->dir, "out of memory", e);
	facts->promote_roots = grown;
	int r = resolve_path(res, rule->dir, 0, &found);
	if (r == 0 && !found.exists)
		r = -ENOENT;
	if (r == 0 && !S_ISDIR(found.st.st_mode))
		r = -ENOTDIR;
	if (r < 0)
		return fail_rule(
			rule, ERROR_PATH, -r, rule->dir, "cannot promote to this directory", e);
	if (!strcmp(found.path, "/") || path_below(found.path, facts->session_dir))
		return fail_rule(rule, ERROR_PATH, 0, rule->dir,
			"this directory holds the session itself", e);
	grown[facts->promote_root_count++] = (struct promote_root){
		.path = found.path, .dev = found.st.st_dev, .ino = found.st.st_ino
	};
	return 0;
}

static bool is_below_root(const struct facts *facts, const char *path)
{
	if (path_below(facts->workspace, path))
		return true;
	for (size_t i = 0; i < facts->promote_root_count; i++)
		if (path_below(facts->promote_roots[i].path, path))
			return true;
	return false;
}

static int check_rule(const struct facts *facts, struct resolver *res,
	const struct promote_rule *rule, struct error *e)
{
	struct resolved found;
	int r;

	if (!promote_pattern_below(res->arena, facts->scratch_dir, rule->pattern)) {
		r = fail_rule(rule, ERROR_POLICY, 0, rule->pattern,
			"only what is in the scratch can be promoted", e);
		error_hint(e, "the GLOB of GLOB:DIR is relative to the scratch");
		return r;
	}
	r = has_dots(rule->dir) ? -EINVAL : resolve_path(res, rule->dir, 0, &found);
	if (r == 0 && is_below_root(facts, found.path))
		return 0;
	r = fail_rule(rule, ERROR_POLICY, r == -EINVAL ? 0 : -r, rule->dir,
		"artifacts cannot be promoted there", e);
	error_hint(e,
		"name a directory of the workspace, or one that `promote-to` names, without '..'");
	return r;
}

int promote_guard_resolve(
	struct facts *facts, struct arena *a, const struct policy *policy, struct error *e)
{
	struct resolver res = { .arena = a };
	int r = 0;

	for (size_t i = 0; i < policy->promote_to_count && r == 0; i++)
		r = resolve_root(facts, &res, &policy->promote_tos[i], e);
	for (size_t i = 0; i < policy->promote_count && r == 0; i++)
		r = check_rule(facts, &res, &policy->promotes[i], e);
	return r;
}

/* If @pattern begins with the path @dir, return the rest of it. @pattern has special bytes quoted, @dir has not. */
static const char *behind(const char *dir, const char *pattern)
{
	for (; *dir; dir++, pattern++) {
		if (*pattern == '\\' && pattern[1])
			pattern++;
		if (*pattern != *dir)
			return NULL;
	}
	return *pattern == '/' ? pattern + 1 : NULL;
}

const char *promote_pattern_below(struct arena *a, const char *scratch_dir, const char *pattern)
{
	const char *rest = behind(scratch_dir, pattern);

	if (!rest) {
		rest = behind("/tmp", pattern);
		rest = rest ? rest : behind("/var/tmp", pattern);
		rest = rest && *rest ? arena_format(a, "tmp/%s", rest) : NULL;
	}
	return rest && *rest && !has_dots(rest) ? rest : NULL;
}

/* --- the guard --------------------------------------------------------------------------------- */

struct list {
	struct arena *arena;
	const char **paths;
	size_t count;
	int error;
};

static void list_path(struct list *l, const char *path)
{
	const char **grown = arena_push(l->arena, (void *)l->paths, l->count, sizeof(*grown));

	if (!path)
		return;
	if (!grown) {
		l->error = -ENOMEM;
		return;
	}
	l->paths = grown;
	l->paths[l->count++] = path;
}

/* The slot of a scratch that is memory, or PLAN_NO_SLOT. */
static uint16_t scratch_slot(const struct plan *plan)
{
	for (size_t i = 0; i < plan->op_count; i++)
		if (plan->ops[i].kind == OP_ATTACH &&
			!strcmp(plan->ops[i].path, plan->facts->scratch_dir))
			return plan->ops[i].slot;
	return PLAN_NO_SLOT;
}

/* The plan makes these in the scratch: "tmp", and mount points below it. */
static void note_mount_points(struct list *l, const struct plan *plan)
{
	uint16_t slot = plan->policy->scratch_size.set ? scratch_slot(plan) : PLAN_NO_SLOT;

	for (size_t i = 0; i < plan->entry_count; i++) {
		const char *below = path_below("scratch", plan->entries[i].path);

		if (below && *below)
			list_path(l, below);
	}
	for (size_t i = 0; i < plan->op_count && slot != PLAN_NO_SLOT; i++)
		if ((plan->ops[i].kind == OP_MKDIR || plan->ops[i].kind == OP_MKFILE) &&
			plan->ops[i].slot == slot)
			list_path(l, plan->ops[i].path);
}

static bool is_denied(const struct facts *facts, const struct path_fact *f)
{
	const char *below = path_below(facts->workspace, f->path);

	switch (f->rule->kind) {
	case PATH_HIDE:
	case PATH_PROTECT:
		return true;
	case PATH_READ:
	case PATH_BIND_RO:
	case PATH_DEV:
		return below && *below;
	case PATH_WRITE:
	case PATH_BIND_RW:
	case PATH_TMPFS:
		break;
	}
	return false;
}

static void deny_all(struct list *l, const struct plan *plan)
{
	const struct facts *facts = plan->facts;

	list_path(l, facts->session_dir);
	for (size_t i = 0; i < facts->path_count; i++)
		if (facts->paths[i].path && is_denied(facts, &facts->paths[i]))
			list_path(l, facts->paths[i].path);
	for (size_t i = 0; i < facts->git_rule_count; i++)
		if (facts->git_rules[i].kind == GITDIR_PROTECT ||
			facts->git_rules[i].kind == GITDIR_WATCH)
			list_path(l, facts->git_rules[i].path);
	for (size_t i = 0; i < plan->kept_count; i++)
		list_path(l, plan->kept[i].path);
	for (size_t i = 0; i < plan->absent_count; i++)
		list_path(l, plan->absents[i].path);
}

int promote_guard_from_plan(struct promote_guard *ret, struct arena *a, const struct plan *plan)
{
	const struct facts *facts = plan->facts;
	struct list l = { .arena = a }, mount_points = { .arena = a };
	struct promote_root *roots =
		arena_array(a, facts->promote_root_count + 1, sizeof(*roots));

	deny_all(&l, plan);
	note_mount_points(&mount_points, plan);
	if (!roots || l.error < 0 || mount_points.error < 0)
		return -ENOMEM;
	roots[0] = (struct promote_root){ .path = facts->workspace,
		.dev = facts->workspace_dev,
		.ino = facts->workspace_ino };
	for (size_t i = 0; i < facts->promote_root_count; i++)
		roots[i + 1] = facts->promote_roots[i];
	*ret = (struct promote_guard){ .roots = roots,
		.root_count = facts->promote_root_count + 1,
		.denied = l.paths,
		.denied_count = l.count,
		.mount_points = mount_points.paths,
		.mount_point_count = mount_points.count,
		.bounded = plan->policy->scratch_size.set,
		.mode = plan->policy->workspace_mode };
	return 0;
}

static int check(
	const struct promote_guard *g, const char *path, const char *shown, struct error *e)
{
	for (size_t i = 0; i < g->denied_count; i++) {
		if (!path_below(g->denied[i], path) && !path_below(path, g->denied[i]))
			continue;
		int r = error_set(e, ERROR_PROMOTE, "promote", ERROR_OWN(EPERM), shown,
			"the destination is protected");
		error_hint(e, "the policy protects or hides %s", g->denied[i]);
		return r;
	}
	return 0;
}

int promote_guard_check_inside(
	const struct promote_guard *g, struct arena *a, const char *dir, struct error *e)
{
	/* A name that nothing else has: the directory itself may hold what is protected. */
	const char *path = arena_join(a, dir, '/', ".carrel-promote");

	if (!path)
		return error_set(
			e, ERROR_PROMOTE, "promote", ERROR_OWN(ENOMEM), dir, "out of memory");
	return check(g, path, dir, e);
}

int promote_guard_check(const struct promote_guard *g, const char *path, struct error *e)
{
	return check(g, path, path, e);
}

int promote_guard_foresee(const struct plan *plan, struct arena *a, struct error *e)
{
	const struct policy *policy = plan->policy;
	struct resolver res = { .arena = a };
	struct promote_guard guard;
	struct error why = { 0 };
	int r = policy->promote_count ? promote_guard_from_plan(&guard, a, plan) : 0;

	if (r < 0)
		return error_no_memory(e, "plan");
	for (size_t i = 0; i < policy->promote_count && r == 0; i++) {
		const struct promote_rule *rule = &policy->promotes[i];
		struct resolved found;

		if (resolve_path(&res, rule->dir, 0, &found) < 0)
			continue; /* it changed since the facts were found: said at the end */
		r = promote_guard_check_inside(&guard, a, found.path, &why);
		if (r == 0)
			continue;
		r = fail_rule(rule, ERROR_POLICY, 0, rule->dir, why.what, e);
		error_hint(e, "%s", why.hint);
	}
	return r;
}

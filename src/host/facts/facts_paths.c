/*
 * facts_paths.c - resolving the policy's paths; see facts.h.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#include "host/facts/facts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "host/facts/facts_cover.h"
#include "host/facts/facts_gituser.h"
#include "host/facts/facts_mounts.h"
#include "host/facts/match.h"
#include "host/facts/resolve.h"
#include "host/git/gitdirs.h"
#include "plan/path.h"

struct finder {
	struct facts *facts;
	struct resolver res;
	struct error *e;
};

static int no_memory(struct finder *f)
{
	return error_set(f->e, ERROR_LIMIT, "facts", ERROR_OWN(ENOMEM), NULL,
		"the policy names more paths than fit");
}

static int path_error(
	struct finder *f, const struct path_rule *rule, int errnum, const char *what)
{
	char place[256], on[1024];

	policy_format_source(&rule->source,
		rule->socket ? "unix-socket" : policy_path_setting(rule->kind), place,
		sizeof(place));
	(void)snprintf(on, sizeof(on), "%s (%s)", rule->path ? rule->path : rule->dest, place);
	int r = error_set(f->e, ERROR_PATH, "facts", errnum, on, "%s", what);
	if (r == -ENOENT && rule->path)
		error_hint(f->e, "where it may be missing, write -%s", rule->path);
	return r;
}

static int add_fact(struct finder *f, struct path_fact fact)
{
	return facts_add(f->facts, f->res.arena, &fact) < 0 ? no_memory(f) : 0;
}

static int find_shown(struct finder *f, const struct path_rule *rule)
{
	struct resolved found;

	if (rule->optional && resolve_is_absent(&f->res, rule->path))
		return 0;
	int r = resolve_path(&f->res, rule->path, 0, &found);
	if (r < 0 && rule->optional && !error_is_own(-r))
		return 0;
	if (r < 0)
		return path_error(f, rule, -r, "cannot look at a path of the policy");
	if (!found.exists && rule->optional)
		return 0;
	if (!found.exists)
		return path_error(f, rule, ERROR_OWN(ENOENT), "there is no such path");
	if (rule->kind == PATH_DEV && !S_ISCHR(found.st.st_mode) && !S_ISBLK(found.st.st_mode))
		return path_error(f, rule, ERROR_OWN(ENODEV), "this is not a device");
	if (rule->socket && !S_ISSOCK(found.st.st_mode))
		return path_error(f, rule, ERROR_OWN(ENOTSOCK), "this is not a unix socket");
	struct path_fact fact = facts_path(rule, &found);
	if (rule->dest) {
		struct resolved dest;

		r = resolve_path(&f->res, rule->dest, 0, &dest);
		if (r < 0)
			return path_error(f, rule, -r, "cannot look at the destination");
		fact.path = dest.path;
		fact.dest_exists =
			dest.exists && S_ISDIR(dest.st.st_mode) == S_ISDIR(found.st.st_mode);
	}
	return add_fact(f, fact);
}

static int find_tmpfs(struct finder *f, const struct path_rule *rule)
{
	struct resolved dest;
	int r = resolve_path(&f->res, rule->dest, 0, &dest);

	if (r < 0)
		return path_error(f, rule, -r, "cannot look at the destination");
	struct path_fact fact = facts_path(rule, &dest);
	fact.dest_exists = dest.exists && S_ISDIR(dest.st.st_mode);
	return add_fact(f, fact);
}

/*
 * A protected path is looked at without following its end: a link is protected as the thing it is,
 * and so is what it points to.
 */
static int find_protected(struct finder *f, const struct path_rule *rule)
{
	struct resolved found;

	int r = resolve_path(&f->res, rule->path, RESOLVE_KEEP_LAST | RESOLVE_PREFIX, &found);

	if (r == -EACCES || r == -ELOOP || r == -ENAMETOOLONG)
		return 0; /* what the caller cannot reach the tools cannot reach either */
	if (r < 0)
		return path_error(f, rule, -r, "cannot look at a protected path");
	struct path_fact fact = facts_path(rule, &found);
	r = add_fact(f, fact);
	if (r < 0 || !fact.is_link)
		return r;
	r = resolve_path(&f->res, rule->path, RESOLVE_PREFIX, &found);
	if (r < 0 && error_is_own(-r))
		return path_error(f, rule, -r, "cannot look at a protected path");
	if (r < 0)
		return 0; /* a link that leads nowhere anyone can follow */
	return add_fact(f, facts_path(rule, &found));
}

static int find_hidden(struct finder *f, const struct path_rule *rule, const char *path)
{
	struct resolved found;

	if (resolve_is_absent(&f->res, path))
		return 0;
	int r = resolve_path(&f->res, path, 0, &found);
	if (r == -EACCES || r == -ELOOP || r == -ENAMETOOLONG || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return path_error(f, rule, -r, "cannot look at a hidden path");
	return found.exists ? add_fact(f, facts_path(rule, &found)) : 0;
}

static int find_glob(struct finder *f, const struct path_rule *rule)
{
	const char **paths = NULL;
	size_t count = 0;
	int r = match_paths(f->res.arena, rule->path, &paths, &count);

	if (r == -ENOMEM)
		return no_memory(f);
	if (r < 0)
		return path_error(f, rule, -r, "the pattern matches too many paths");
	for (size_t i = 0; i < count && r >= 0; i++)
		r = find_hidden(f, rule, paths[i]);
	return r;
}

static int find_rule(struct finder *f, const struct path_rule *rule)
{
	switch (rule->kind) {
	case PATH_READ:
	case PATH_WRITE:
	case PATH_BIND_RO:
	case PATH_BIND_RW:
	case PATH_DEV:
		return find_shown(f, rule);
	case PATH_TMPFS:
		return find_tmpfs(f, rule);
	case PATH_PROTECT:
		return find_protected(f, rule);
	case PATH_HIDE:
		return rule->glob ? find_glob(f, rule) : find_hidden(f, rule, rule->path);
	}
	return -EINVAL;
}

static int add_note(struct finder *f, const struct gitdir_rule *rule)
{
	struct note_fact *grown = arena_push(
		f->res.arena, (void *)f->facts->notes, f->facts->note_count, sizeof(*grown));

	if (!grown)
		return no_memory(f);
	f->facts->notes = grown;
	grown[f->facts->note_count++] =
		(struct note_fact){ .path = rule->path, .why = rule->why };
	return 0;
}

/* Find what git needs outside the workspace, and what git on the host would obey inside it. */
static int find_git(struct finder *f, struct policy *policy)
{
	struct gitdir_rule *rules = NULL;
	size_t count = 0;
	struct arena *a = f->res.arena;
	int r = gitdirs_find(a, f->facts->workspace, f->facts->uid, &rules, &count, f->e);

	f->facts->git_rules = rules;
	f->facts->git_rule_count = count;
	for (size_t i = 0; i < count && r >= 0; i++) {
		if (rules[i].kind == GITDIR_NOTE)
			r = add_note(f, &rules[i]);
		f->facts->git_mounts += rules[i].kind == GITDIR_WRITE ||
			(rules[i].kind == GITDIR_PROTECT && rules[i].exists);
		if (rules[i].kind != GITDIR_WRITE && rules[i].kind != GITDIR_PROTECT)
			continue;
		struct path_rule *rule = arena_alloc(a, sizeof(*rule));

		if (!rule)
			return no_memory(f);
		*rule = (struct path_rule){
			.kind = rules[i].kind == GITDIR_WRITE ? PATH_WRITE : PATH_PROTECT,
			.path = rules[i].path,
			.optional = true,
			.source = { .layer = LAYER_DEFAULT, .file = "git" },
		};
		if (rule->kind == PATH_WRITE && policy->workspace_mode != WORKSPACE_DIRECT)
			continue;
		size_t before = f->facts->path_count;
		r = find_rule(f, rule);
		if (r >= 0 && rules[i].shown && f->facts->path_count == before + 1)
			f->facts->paths[before].shown = rules[i].shown;
	}
	return r;
}

/*
 * A link in the workspace on the way to a named path is protected itself: a directory in its place
 * would lead the host elsewhere than to what was protected.
 */
static int find_links(struct finder *f)
{
	static const struct path_rule rule = { .kind = PATH_PROTECT,
		.optional = true,
		.source = { .layer = LAYER_DEFAULT, .file = "link" } };
	int r = 0;

	for (size_t i = 0; i < f->res.link_count && r >= 0; i++) {
		const char *path = f->res.links[i].path;
		const char *below = path_below(f->facts->workspace, path);
		struct resolved found = { .path = path, .existing = strlen(path) };

		if (!below || !*below)
			continue;
		if (lstat(path, &found.st) < 0) {
			if (error_is_own(errno))
				return path_error(f, &rule, errno,
					"cannot look at a link on the way to a path of the policy");
			continue;
		}
		found.exists = true;
		r = add_fact(f, facts_path(&rule, &found));
	}
	return r;
}

static int find_system(struct finder *f)
{
	for (int i = 0; i < SYSTEM_PATH_COUNT; i++) {
		struct resolved found;
		int r = resolve_path(&f->res, plan_system_paths[i], 0, &found);

		if (r < 0 && r != -EACCES)
			return error_set(f->e, ERROR_INTERNAL, "facts", -r,
				plan_system_paths[i], "cannot look at a system directory");
		if (r < 0)
			found = (struct resolved){ .path = plan_system_paths[i] };
		f->facts->system[i] = facts_path(NULL, &found);
	}
	return 0;
}

static int add_closed(struct finder *f, const char *path)
{
	struct facts *facts = f->facts;

	for (size_t i = 0; i < facts->closed_count; i++)
		if (!strcmp(facts->closed_dirs[i], path))
			return 0;
	const char **grown = arena_push(
		f->res.arena, (void *)facts->closed_dirs, facts->closed_count, sizeof(*grown));
	if (!grown)
		return no_memory(f);
	facts->closed_dirs = grown;
	facts->closed_dirs[facts->closed_count++] = path;
	return 0;
}

/* The directories on the way to @path that the payload's uid, a stranger to them, cannot pass. */
static int find_closed_above(struct finder *f, const char *path)
{
	char *part = arena_copy(f->res.arena, path, strlen(path));
	struct stat st;
	int r = 0;

	if (!part)
		return no_memory(f);
	for (char *slash = strchr(part + 1, '/'); slash && r >= 0;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (stat(part, &st) == 0 && S_ISDIR(st.st_mode) && !(st.st_mode & S_IXOTH)) {
			const char *copy = arena_copy(f->res.arena, part, strlen(part));

			r = copy ? add_closed(f, copy) : no_memory(f);
		}
		*slash = '/';
	}
	return r;
}

static int find_closed(struct finder *f)
{
	struct facts *facts = f->facts;
	int r = find_closed_above(f, facts->workspace);

	if (r >= 0)
		r = find_closed_above(f, facts->session_dir);
	for (size_t i = 0; i < facts->path_count && r >= 0; i++) {
		const struct path_fact *fact = &facts->paths[i];

		if (fact->exists && fact->rule->kind != PATH_HIDE &&
			fact->rule->kind != PATH_PROTECT)
			r = find_closed_above(f, fact->path);
	}
	return r;
}

static int find_sockets(struct finder *f, const struct policy *policy)
{
	int r = facts_sockets(f->facts, &f->res, policy);

	if (r == -ENOMEM)
		return no_memory(f);
	return r < 0 ? error_set(f->e, ERROR_PATH, "facts", -r, "/proc/self/net/unix",
			       "the host's sockets that are to be hidden cannot be found")
		     : 0;
}

static int find_all(struct finder *f, struct arena *a, struct policy *policy)
{
	struct facts *facts = f->facts;
	int r = find_system(f);

	if (r < 0)
		return r;
	r = find_git(f, policy);
	for (size_t i = 0; i < policy->path_count && r >= 0; i++)
		r = find_rule(f, &policy->paths[i]);
	if (r < 0)
		return r;
	r = find_sockets(f, policy);
	if (r < 0)
		return r;
	if (facts_cover(facts, &f->res, policy) < 0)
		return no_memory(f);
	r = facts_mounts(facts, a, policy, f->e);
	if (r < 0)
		return r;
	r = find_links(f);
	if (r < 0)
		return r;
	if (facts->privileged && facts_gituser(facts, &f->res) < 0)
		return no_memory(f);
	if (policy->net == NET_ALLOW && facts_hosts(facts, &f->res) < 0)
		return no_memory(f);
	r = facts->privileged ? find_closed(f) : 0;
	if (r < 0)
		return r;
	return facts_seats(facts, a) < 0 ? no_memory(f) : 0;
}

int facts_paths(struct facts *facts, struct arena *a, struct policy *policy, struct error *e)
{
	struct finder f = { .facts = facts,
		.e = e,
		.res = { .arena = a,
			.local = policy->local,
			.links = facts->links,
			.link_count = facts->link_count } };
	int r = find_all(&f, a, policy);

	resolve_done(&f.res);
	facts->links = f.res.links;
	facts->link_count = f.res.link_count;
	return r;
}

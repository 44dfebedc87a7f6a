/*
 * tree_own.c - see tree_own.h.
 *
 * Runs in: the launcher and carrel-policy. PURE: no system calls.
 */
#include "plan/tree_own.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "plan/path.h"

const char *const plan_system_paths[SYSTEM_PATH_COUNT] = {
	[SYSTEM_PROC] = "/proc",
	[SYSTEM_DEV] = "/dev",
	[SYSTEM_RUN] = "/run",
	[SYSTEM_TMP] = "/tmp",
	[SYSTEM_VAR_TMP] = "/var/tmp",
	[SYSTEM_DEV_NULL] = "/dev/null",
	[SYSTEM_DEV_ZERO] = "/dev/zero",
	[SYSTEM_DEV_FULL] = "/dev/full",
	[SYSTEM_DEV_RANDOM] = "/dev/random",
	[SYSTEM_DEV_URANDOM] = "/dev/urandom",
	[SYSTEM_DEV_TTY] = "/dev/tty",
};

static int add_devices(struct tree *t, const struct facts *facts, struct error *e)
{
	for (int i = SYSTEM_DEV_NULL; i <= SYSTEM_DEV_TTY; i++) {
		if (!facts->system[i].exists)
			continue;
		struct node n = tree_node_from_fact(&facts->system[i], NODE_DEV);

		n.path = plan_system_paths[i];
		n.rank = RANK_BUILT_IN;
		n.why = "minimal /dev";
		int r = tree_add(t, n, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* /proc, /dev, /run, /tmp, /var/tmp: never the host's. */
int tree_add_system(struct tree *t, const struct facts *facts, struct error *e)
{
	static const struct {
		enum system_path path;
		enum node_kind kind;
		bool writable;
		const char *why;
	} places[] = {
		{ SYSTEM_PROC, NODE_PROC, false, "only the session's processes" },
		{ SYSTEM_DEV, NODE_SHELL, false, "minimal /dev" },
		{ SYSTEM_RUN, NODE_SHELL, false, "the host's sockets live here" },
		{ SYSTEM_TMP, NODE_TMP, true, "temporary files land in the scratch" },
		{ SYSTEM_VAR_TMP, NODE_TMP, true, "temporary files land in the scratch" },
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const struct path_fact *f = &facts->system[places[i].path];
		struct node n = tree_node_from_fact(f, places[i].kind);

		/* A place that the host does not have is needed only where the session has a root of its own. */
		if (!f->exists && tree_host_root(t))
			continue;
		if (!f->exists)
			n.path = plan_system_paths[places[i].path];
		n.is_dir = true;
		n.rank = RANK_BUILT_IN;
		n.writable = places[i].writable;
		n.why = places[i].why;
		int r = tree_add(t, n, e);
		if (r < 0)
			return r;
	}
	const struct node pts = { .kind = NODE_DEVPTS,
		.path = "/dev/pts",
		.is_dir = true,
		.writable = true,
		.why = "own terminals" };
	const struct node shm = { .kind = NODE_SHM,
		.path = "/dev/shm",
		.is_dir = true,
		.writable = true,
		.why = "own shared memory" };
	int r = tree_add(t, pts, e);
	if (r >= 0)
		r = tree_add(t, shm, e);
	return r < 0 ? r : add_devices(t, facts, e);
}

int tree_add_workspace(
	struct tree *t, const struct policy *policy, const struct facts *facts, struct error *e)
{
	static const char *const why[] = {
		[WORKSPACE_DIRECT] = "workspace (direct)",
		[WORKSPACE_RO] = "workspace (read-only)",
		[WORKSPACE_OVERLAY] = "workspace (overlay)",
	};
	struct node n = {
		.kind = policy->workspace_mode == WORKSPACE_OVERLAY ? NODE_OVERLAY : NODE_BIND,
		.path = facts->workspace,
		.source = facts->workspace,
		.writable = policy->workspace_mode != WORKSPACE_RO,
		.is_dir = true,
		.exists = true,
		.checked = true,
		.dev = facts->workspace_dev,
		.ino = facts->workspace_ino,
		.uid = facts->workspace_uid,
		.gid = facts->workspace_gid,
		.rank = RANK_SESSION,
		.why = why[policy->workspace_mode],
		.line = &policy->workspace.source,
	};

	return tree_add(t, n, e);
}

/*
 * Whether @path shows in the session what the host has there: nothing else is put over it, or over
 * what holds it.
 */
static bool shows_host(const struct tree *t, const char *path)
{
	const struct node *best = NULL;

	for (size_t i = 0; i < t->count; i++) {
		const struct node *n = &t->nodes[i];
		size_t length = strlen(n->path);

		if (n->kind == NODE_LINK || n->kind == NODE_PIN || !path_below(n->path, path))
			continue;
		if (!best || length > strlen(best->path) ||
			(length == strlen(best->path) && n->rank > best->rank))
			best = n;
	}
	return best && best->kind != NODE_HIDE && best->kind != NODE_TMPFS &&
		(best->kind == NODE_HOST_ROOT ||
			(best->source && !strcmp(best->path, best->source)));
}

/* Whoever writes a record makes the host side move and remove what is the caller's. */
static int add_state_dir(struct tree *t, const struct facts *facts, struct error *e)
{
	const struct node records = { .kind = NODE_HIDE,
		.path = facts->state_dir,
		.is_dir = true,
		.exists = true,
		.rank = RANK_SESSION,
		.why = "the records of sessions lie here" };

	return facts->state_dir && shows_host(t, facts->state_dir) ? tree_add(t, records, e)
								   : 0;
}

int tree_add_session(
	struct tree *t, const struct policy *policy, const struct facts *facts, struct error *e)
{
	const char *scratch = facts->scratch_dir;
	const char *results = arena_join(t->arena, facts->session_dir, '/', "tool-results");

	if (!results)
		return tree_full(e);
	struct node nodes[] = {
		{ .kind = NODE_SHELL,
			.path = facts->scratch_base,
			.is_dir = true,
			.exists = true,
			.rank = RANK_BUILT_IN,
			.why = "other sessions' scratch lies here" },
		{ .kind = NODE_SHELL,
			.path = facts->session_dir,
			.is_dir = true,
			.exists = true,
			.rank = RANK_SESSION,
			.why = "session directory" },
		{ .kind = NODE_SCRATCH,
			.path = scratch,
			.source = scratch,
			.is_dir = true,
			.exists = true,
			.writable = true,
			.rank = RANK_SESSION,
			.why = "scratch" },
		{ .kind = facts->saves_outputs ? NODE_BIND : NODE_SHELL,
			.path = results,
			.source = facts->saves_outputs ? results : NULL,
			.is_dir = true,
			.exists = true,
			.rank = RANK_SESSION,
			.why = "tool-results" },
	};
	nodes[2].size = policy->scratch_size.set ? policy->scratch_size.value : 0;
	for (size_t i = 0; i < 4; i++) {
		nodes[i].uid = facts->uid;
		nodes[i].gid = facts->gid;
		int r = tree_add(t, nodes[i], e);
		if (r < 0)
			return r;
	}
	int r = add_state_dir(t, facts, e);
	if (r < 0 || !facts->runtime_dir)
		return r;
	const struct node sockets = { .kind = NODE_SHELL,
		.path = facts->runtime_dir,
		.is_dir = true,
		.exists = true,
		.rank = RANK_SESSION,
		.why = "sockets live here, other sessions' too" };

	return tree_add(t, sockets, e);
}

int tree_name_appearance(struct tree *t, const struct facts *facts, const struct path_fact *f,
	struct node *n, struct error *e)
{
	const char *const kept[] = { facts->state_dir, facts->runtime_dir };

	n->why = arena_format(t->arena, "%s: a mount shows %s here",
		f->rule->kind == PATH_PROTECT ? "protected" : "hidden", f->same_as);
	if (!n->why)
		return tree_full(e);
	/* As at their own place, no rule uncovers them. */
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (kept[i] && f->rule->kind == PATH_HIDE && !strcmp(kept[i], f->same_as))
			n->rank = RANK_SESSION;
	return 0;
}

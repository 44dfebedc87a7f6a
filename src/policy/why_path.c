/*
 * why_path.c - what a command would find at a path, and which line says so.
 *
 * Runs in: carrel-policy, outside, as the caller.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "plan/seen.h"
#include "policy/why.h"

struct place {
	const struct plan *plan;
	struct seen seen;
	struct surface surface;
	mode_t mode;
};

/* --- what is there ---------------------------------------------------------------------------- */

/* A redundant node is not mounted: find the node above it that is. */
static const struct node *mounted(const struct plan *plan, const struct node *n)
{
	while (n->redundant && n->up != NODE_NO_UP)
		n = &plan->nodes[n->up];
	return n;
}

/* An idmapped mount shows the files of one owner as the payload's: outside, that owner has the payload's rights. */
static struct why_ids ids_at(const struct plan *plan, const struct seen *seen)
{
	const struct node *n = mounted(plan, seen->node);
	struct why_ids ids = { .change = plan->facts->privileged,
		.uid = plan->facts->kernel_uid,
		.gid = plan->facts->kernel_gid };

	if (ids.change && n->idmapped) {
		ids.mapped = true;
		ids.overlay = n->kind == NODE_OVERLAY;
		ids.uid = plan->idmaps[n->idmap].disk_uid;
		ids.gid = plan->idmaps[n->idmap].disk_gid;
	}
	return ids;
}

/* Without mounts, a directory on the way to a hidden path can be passed but not listed: plan/bare.h. */
static bool is_split(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->facts->split_count && !plan->clone_flags; i++)
		if (!strcmp(plan->facts->splits[i].path, path))
			return true;
	return false;
}

int why_open(const struct plan *plan, const struct seen *seen, const char *path,
	struct why_thing *ret)
{
	const struct wall_fact *walls = plan->walls;
	struct surface surface;
	struct why_thing t = { .ids = ids_at(plan, seen),
		.device = seen->node->kind == NODE_DEV,
		.mounts = plan->clone_flags != 0,
		.landlock = walls[WALL_LANDLOCK].state == WALL_ON,
		.sockets = walls[WALL_UNIX_SOCKETS].state == WALL_ON };

	plan_surface(plan, path, &surface);
	t.read = surface.read && !is_split(plan, path);
	t.write = surface.write;
	t.fd = fd_open_at(AT_FDCWD, seen->host, O_PATH | O_NOFOLLOW, 0);
	/* The session makes this entry itself, so on the host it need not exist. */
	if (t.fd < 0 && t.fd != -EACCES && !(t.fd == -ENOENT && seen->exact))
		return t.fd;
	if (t.fd < 0)
		t.refused = t.fd == -EACCES ? EACCES : 0;
	if (t.fd < 0) {
		t.st.st_mode = S_IFDIR;
	} else if (fstat(t.fd, &t.st) < 0) {
		int error = errno;

		fd_close(&t.fd);
		return -error;
	}
	*ret = t;
	return 0;
}

static int try_host(
	const struct place *at, const char *path, struct why_answer *a, mode_t *ret_mode)
{
	struct why_thing t;
	int r = why_open(at->plan, &at->seen, path, &t);

	if (r < 0)
		return r;
	*ret_mode = t.st.st_mode;
	r = why_try(&t, a);
	fd_close(&t.fd);
	return r;
}

/* A directory on the way to something in memory is init's, and root's init is not the payload: box/apply.c. */
static int write_made(const struct place *at)
{
	bool inits =
		!at->seen.exact && !at->seen.node->in_session && at->plan->facts->privileged;

	return !at->surface.write ? EROFS : inits ? EACCES : 0;
}

static void try_made(const struct place *at, struct why_answer *a)
{
	a->outcome[TRY_READ] = 0;
	if (S_ISDIR(at->mode))
		a->outcome[TRY_WRITE] = write_made(at);
	else
		a->outcome[TRY_WRITE] = EACCES; /* mode 0444 */
}

/* Whether something could be made in the directory, which exists: an outcome, or less than WHY_UNKNOWN. */
static int try_make(struct place *at, struct arena *arena, const char *dir)
{
	struct why_thing t;
	int r = plan_seen(at->plan, arena, dir, &at->seen);

	if (r < 0)
		return r;
	plan_surface(at->plan, dir, &at->surface);
	if (at->seen.backing == SEEN_MADE)
		return write_made(at);
	if (at->seen.backing != SEEN_HOST)
		return WHY_UNKNOWN;
	r = why_open(at->plan, &at->seen, dir, &t);
	if (r < 0)
		return r;
	r = why_try_make(&t);
	fd_close(&t.fd);
	return r;
}

/* --- the line --------------------------------------------------------------------------------- */

const char *why_rule(
	struct arena *arena, const struct policy *policy, const struct source *source)
{
	enum { ROOM = 4 * PATH_MAX + POLICY_SYSCALL_MAX }; /* a path with each byte escaped */
	char *text = malloc(ROOM);
	int length = text ? policy_print_rule(policy, source, text, ROOM) : 0;
	const char *copy = length > 0 ? arena_copy(arena, text, (size_t)length) : NULL;

	free(text);
	return copy;
}

int why_add_line(struct why *w, const struct policy *policy, const struct source *source,
	struct why_answer *a)
{
	struct why_line *line = &a->lines[a->line_count];
	char place[512];

	if (!source || source->layer == LAYER_DEFAULT || !source->file)
		return 0;
	policy_format_source(
		source, policy_source_setting(policy, source), place, sizeof(place));
	line->text = why_rule(&w->arena, policy, source);
	line->place = arena_copy(&w->arena, place, strlen(place));
	a->line_count++;
	return line->place ? 0 : -ENOMEM;
}

/* Mode and owner decide, and no line: say whose it is. */
static int blame_mode(
	struct why *w, const struct plan *plan, const char *path, struct why_answer *a)
{
	struct seen seen;
	struct stat st;
	int r = plan_seen(plan, &w->arena, path, &seen);

	if (r < 0 || seen.backing != SEEN_HOST || lstat(seen.host, &st) < 0)
		return r;
	a->because = arena_format(&w->arena, "%s has mode %04o and belongs to %u:%u", path,
		(unsigned)st.st_mode & 07777, (unsigned)st.st_uid, (unsigned)st.st_gid);
	return a->because ? 0 : -ENOMEM;
}

/* If something is missing because it lies below a hidden place, say that. */
static int explain(struct why *w, const struct prepared *p, const struct place *at,
	const struct why_walked *found, struct why_answer *a)
{
	const char *node = at->seen.node ? at->seen.node->path : NULL;

	if (a->exists && is_split(&p->plan, found->path)) {
		a->because = "something below it is hidden: without mounts it cannot be listed";
		return why_add_line(w, &p->policy, at->surface.source, a);
	}
	if (found->refused ||
		(!strcmp(a->seen, "closed") && at->seen.backing == SEEN_HOST &&
			at->surface.read)) {
		const char *dir = arena_copy(&w->arena, found->path, found->existing);

		return dir ? blame_mode(w, &p->plan, dir, a) : -ENOMEM;
	}
	a->because = at->surface.why;
	if (node && strcmp(node, found->path) != 0 && strcmp(node, "/") != 0)
		a->because = arena_format(&w->arena, "%s: %s", node, at->surface.why);
	if (!a->because)
		return -ENOMEM;
	return why_add_line(w, &p->policy, at->surface.source, a);
}

static int look_at(struct why *w, const struct prepared *p, struct place *at,
	const struct why_walked *found, struct why_answer *a)
{
	if (!found->known || at->seen.backing == SEEN_KERNEL)
		return 0; /* all outcomes stay unknown */
	if (a->exists && at->seen.backing == SEEN_HOST)
		return try_host(at, found->path, a, &at->mode);
	if (a->exists) {
		try_made(at, a);
		return 0;
	}
	a->outcome[TRY_READ] = a->outcome[TRY_WRITE] = found->refused ? found->refused : ENOENT;
	if (found->refused) {
		a->outcome[TRY_MAKE] = found->refused;
		return 0;
	}
	struct place above = { .plan = &p->plan };
	const char *dir = arena_copy(&w->arena, found->path, found->existing);
	int r = dir ? try_make(&above, &w->arena, dir) : -ENOMEM;
	a->outcome[TRY_MAKE] = r;
	return r < WHY_UNKNOWN ? r : 0;
}

static int fail(struct error *e, int r, const char *asked)
{
	return error_set(e, ERROR_PATH, "plan", -r, asked, "this path cannot be looked up");
}

int why_path(struct why *w, const struct prepared *p, const char *asked, struct why_answer *a,
	struct error *e)
{
	struct place at = { .plan = &p->plan };
	struct why_walked found;
	int r = why_walk(&p->plan, &w->arena, asked, &found);

	if (r >= 0)
		r = plan_seen(&p->plan, &w->arena, found.path, &at.seen);
	if (r < 0)
		return fail(e, r, asked);
	for (int i = 0; i < TRY_COUNT; i++)
		a->outcome[i] = WHY_UNKNOWN;
	plan_surface(&p->plan, found.path, &at.surface);
	at.mode = found.st.st_mode;
	a->path = found.path;
	a->exists = found.exists;
	r = look_at(w, p, &at, &found, a);
	if (r < 0)
		return fail(e, r, asked);
	why_judge(a, at.surface.kind, at.surface.quarantined, at.mode);
	r = explain(w, p, &at, &found, a);
	return r < 0 ? fail(e, r, asked) : 0;
}

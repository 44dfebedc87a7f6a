/*
 * why_path.c - what a command would find at a path, and which line says so.
 *
 * Runs in: carrel-policy, outside, as the caller.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/path.h"
#include "plan/seen.h"
#include "policy/why.h"

struct place {
	const struct plan *plan;
	struct seen seen;
	struct surface surface;
	struct stat st;
};

static bool wall_is_on(const struct plan *plan, enum wall wall)
{
	return plan->walls[wall].state == WALL_ON;
}

/* --- what is there ---------------------------------------------------------------------------- */

static bool is_device(mode_t mode)
{
	return S_ISCHR(mode) || S_ISBLK(mode);
}

/* Opening what the host has there for writing; in a directory, making something. */
static int try_write(const struct place *at)
{
	mode_t mode = at->st.st_mode;
	int r = why_access(at->plan, &at->seen, S_ISDIR(mode) ? X_OK : W_OK);

	if (at->seen.node->kind == NODE_DEV)
		return r;
	if (S_ISDIR(mode)) /* entered, then the mount is looked at, then the mode */
		return r                     ? r
			: !at->surface.write ? EROFS
					     : why_access(at->plan, &at->seen, W_OK);
	if (S_ISFIFO(mode)) /* no mount keeps them read-only, only Landlock does */
		return r || at->surface.write || !wall_is_on(at->plan, WALL_LANDLOCK) ? r
										      : EACCES;
	/* The mode is looked at first: open(2). */
	return r || at->surface.write ? r : EROFS;
}

/* Without mounts a directory on the way to what is hidden is passed, not listed: plan/bare.h. */
static bool is_split(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->facts->split_count && !plan->clone_flags; i++)
		if (!strcmp(plan->facts->splits[i].path, path))
			return true;
	return false;
}

static void try_host(const struct place *at, struct why_answer *a)
{
	mode_t mode = at->st.st_mode;

	if (S_ISSOCK(mode)) {
		int r = why_access(at->plan, &at->seen, W_OK);

		if (r == 0 && !at->surface.write && wall_is_on(at->plan, WALL_UNIX_SOCKETS))
			r = EACCES;
		a->outcome[TRY_CONNECT] = r;
		a->outcome[TRY_READ] = a->outcome[TRY_WRITE] = ENXIO;
		return;
	}
	a->outcome[TRY_READ] = why_access(at->plan, &at->seen, R_OK);
	a->outcome[TRY_WRITE] = try_write(at);
	if (is_device(mode) && at->seen.node->kind != NODE_DEV)
		a->outcome[TRY_READ] = a->outcome[TRY_WRITE] = EACCES; /* nodev */
	/* Without mounts what is not allowed is refused by Landlock. */
	if (!at->plan->clone_flags && (!at->surface.read || is_split(at->plan, a->path)))
		a->outcome[TRY_READ] = EACCES;
	if (!at->plan->clone_flags && !at->surface.write && a->outcome[TRY_WRITE] == EROFS)
		a->outcome[TRY_WRITE] = EACCES;
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
	if (S_ISDIR(at->st.st_mode))
		a->outcome[TRY_WRITE] = write_made(at);
	else
		a->outcome[TRY_WRITE] = EACCES; /* mode 0444 */
}

/* --- what is not there ------------------------------------------------------------------------ */

/* Whether something could be made in the directory that is there. */
static int try_make(struct place *at, struct arena *arena, const char *dir)
{
	int r = plan_seen(at->plan, arena, dir, &at->seen);

	if (r < 0)
		return r;
	plan_surface(at->plan, dir, &at->surface);
	if (at->seen.backing == SEEN_MADE)
		return write_made(at);
	if (at->seen.backing != SEEN_HOST)
		return WHY_UNKNOWN;
	if (!at->surface.write)
		return at->plan->clone_flags ? EROFS : EACCES;
	return why_access(at->plan, &at->seen, W_OK | X_OK);
}

/* --- the word and the line -------------------------------------------------------------------- */

static const char *word_for(
	const struct why_answer *a, enum surface_kind surface, bool quarantined, mode_t mode)
{
	int read = a->outcome[TRY_READ], write = a->outcome[TRY_WRITE];

	if (!a->exists && read == EACCES)
		return "closed";
	if (!a->exists)
		return quarantined && a->outcome[TRY_MAKE] == 0 ? "quarantined" : "absent";
	if (S_ISSOCK(mode))
		return a->outcome[TRY_CONNECT] > 0 ? "closed" : "socket";
	if (read == WHY_UNKNOWN && write == WHY_UNKNOWN)
		return "own";
	if (read && write)
		return "closed";
	if (surface == SURFACE_HIDDEN || surface == SURFACE_OUTSIDE)
		return "empty";
	return write == 0 ? "writable" : "read-only";
}

void why_judge(struct why_answer *a, enum surface_kind surface, bool quarantined, mode_t mode)
{
	a->surface = plan_surface_name(surface);
	a->seen = word_for(a, surface, quarantined, mode);
}

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

/* Modes and owners decide, and no line: whose it is is what there is to say. */
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

/* What lies below a hidden place is missing because of that. */
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
	if (a->exists) {
		if (at->seen.backing == SEEN_HOST)
			try_host(at, a);
		else
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
	at.st = found.st;
	a->path = found.path;
	a->exists = found.exists;
	r = look_at(w, p, &at, &found, a);
	if (r < 0)
		return fail(e, r, asked);
	why_judge(a, at.surface.kind, at.surface.quarantined, at.st.st_mode);
	r = explain(w, p, &at, &found, a);
	return r < 0 ? fail(e, r, asked) : 0;
}

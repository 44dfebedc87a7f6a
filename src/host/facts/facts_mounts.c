/*
 * facts_mounts.c - see facts_mounts.h.
 *
 * Runs in: the launcher and carrel-policy, outside. The table of mounts is read once. A path is looked for by
 * (file system, path in it): the mount that it lies on tells both, and each mount of the same file system says
 * whether it shows that. Only what is found there is looked at.
 */
#include "host/facts/facts_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "box/sys.h"
#include "host/facts/facts_cover.h"
#include "host/facts/mountinfo.h"
#include "plan/path.h"
#include "plan/tree.h"

enum { ONCE_MAX = 64 }; /* mounts: more are not compared with each other */

struct place {
	const char *path;
	struct stat st;
};

struct search {
	struct facts *facts;
	const struct policy *policy;
	struct arena work, kept;
	struct path_fact *found; /* in `kept`: what is to be added */
	size_t found_count;
	struct mountinfo table;
	struct place *places; /* where one thing is seen: first what was named */
	size_t count;
	const char *begun; /* the path they are for: its first `begun_length` bytes */
	size_t begun_length;
	size_t table_end,
		work_most; /* of `work`: behind that is what one search needs, so far that much */
	bool unlisted;     /* something lies on a mount that the table lacks */
	bool parts;        /* mounts of what lies below the thing count as well */
};

static const struct path_rule never_ours = { .kind = PATH_HIDE,
	.optional = true,
	.source = { .layer = LAYER_DEFAULT, .file = "mount" } };

static int no_memory(struct error *e)
{
	return error_set(e, ERROR_LIMIT, "facts", ERROR_OWN(ENOMEM), NULL,
		"more mounts than fit show hidden files");
}

static const char *join_kept(struct search *s, const char *dir, const char *rest)
{
	return arena_join(&s->work, strcmp(dir, "/") != 0 ? dir : "", '/', rest);
}

/*
 * Look at @path. 0; 1: nobody with the caller's rights can look there, a file system that is dead included; -errno:
 * carrel could not look.
 */
static int stat_path(const char *path, struct stat *ret)
{
	autofd int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_NOFOLLOW,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	int r = fd < 0 ? fd : fstat(fd, ret) < 0 ? -errno : 0;

	return r == 0 || error_is_own(-r) ? r : 1;
}

static int add_place(struct search *s, const char *path)
{
	struct place p = { .path = path };

	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->places[i].path, path))
			return 0;
	int r = s->count ? stat_path(path, &p.st) : 0;
	if (r != 0)
		return r < 0 ? r : 0;
	struct place *grown = arena_push(&s->work, s->places, s->count, sizeof(p));
	if (!grown)
		return -ENOMEM;
	s->places = grown;
	s->places[s->count++] = p;
	return 0;
}

/* Whether mount @m shows @inner of its file system: *@ret_rest is where, below its root; NULL: only a part of it. */
static bool shows(const struct search *s, const struct mount_entry *m, struct mount_head head,
	const char *inner, const char **ret_rest)
{
	*ret_rest = mountinfo_may_lead(m->root_head, head) ? path_below(m->root, inner) : NULL;
	return *ret_rest ||
		(s->parts && mountinfo_may_lead(head, m->root_head) &&
			path_below(inner, m->root));
}

/*
 * Add every place at which a mount shows @inner, a path in the file system @device, and no other
 * mount covers it.
 */
static int add_shown(struct search *s, uint64_t device, const char *inner)
{
	const struct mount_head head = mountinfo_head(inner);

	for (size_t i = 0; i < s->table.count; i++) {
		const struct mount_entry *m = &s->table.mounts[i];
		const char *path = m->point, *rest;

		if (m->device != device || !shows(s, m, head, inner, &rest))
			continue;
		if (rest && *rest)
			path = join_kept(s, m->point, rest);
		if (!path)
			return -ENOMEM;
		int r = mountinfo_find(&s->table, path) == m ? add_place(s, path) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* Add what an overlay and its layers share: it shows what is in them, and they have what is in it. */
static int add_layers(
	struct search *s, const struct mount_entry *m, const char *inner, const char *path)
{
	for (size_t i = 0; i < s->table.layer_count; i++) {
		const struct mount_layer *l = &s->table.layers[i];
		const struct mount_entry *overlay = &s->table.mounts[l->overlay];
		const char *rest = path_below(l->path, path);
		int r = 0;

		if (overlay == m) {
			const char *below = join_kept(s, l->path, inner + 1);

			r = below ? add_place(s, *(inner + 1) ? below : l->path) : -ENOMEM;
		}
		if (rest && r >= 0) {
			const char *shown = join_kept(s, "/", rest);

			r = shown ? add_shown(s, overlay->device, shown) : -ENOMEM;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* The memory of the search before is used again: there are hundreds, and each page of it costs a launch some µs. */
static void forget_places(struct search *s)
{
	if (s->work.used > s->work_most)
		s->work_most = s->work.used;
	s->work.used = s->table_end;
	s->places = NULL;
	s->count = 0;
}

/*
 * Find all places where the same is seen as at the first @length bytes of @path; these are the
 * first place.
 */
static int find_places(struct search *s, const char *path, size_t length, bool parts)
{
	int r = 0;

	if (s->begun && s->begun_length == length && !memcmp(s->begun, path, length) &&
		s->parts == parts)
		return 0;
	forget_places(s);
	s->begun = path;
	s->begun_length = length;
	s->parts = parts;
	if (path[length])
		path = arena_copy(&s->work, path, length);
	if (!path)
		return -ENOMEM;
	r = add_place(s, path);
	for (size_t i = 0; i < s->count && r >= 0; i++) {
		const char *at = s->places[i].path;
		const struct mount_entry *m = mountinfo_find(&s->table, at);
		const char *rest = m ? path_below(m->point, at) : NULL;

		if (!rest) {
			s->unlisted = true;
			continue;
		}
		const char *inner = *rest ? join_kept(s, m->root, rest) : m->root;
		if (!inner)
			return -ENOMEM;
		r = add_shown(s, m->device, inner);
		if (r >= 0)
			r = add_layers(s, m, inner, at);
	}
	return r;
}

static int keep_fact(struct search *s, struct path_fact fact)
{
	struct path_fact *grown =
		arena_push(&s->kept, s->found, s->found_count, sizeof(*grown));

	fact.path = fact.source = arena_copy(&s->kept, fact.path, strlen(fact.path));
	if (!grown || !fact.path)
		return -ENOMEM;
	s->found = grown;
	s->found[s->found_count++] = fact;
	return 0;
}

static int add_appearance(struct search *s, const struct path_fact *origin,
	const struct path_rule *rule, const char *same_as, const struct place *p)
{
	const struct resolved found = {
		.path = p->path, .exists = true, .existing = strlen(p->path), .st = p->st
	};
	struct path_fact fact = facts_path(rule, &found);

	fact.same_as = same_as;
	fact.shown = origin ? origin->shown : NULL;
	fact.covered = facts_is_covered(s->facts, p->path);
	/* A place that is the session's own needs no rule. */
	return tree_is_own(s->facts, &fact) ? 0 : keep_fact(s, fact);
}

/* --- what is hidden --------------------------------------------------------------------------- */

/*
 * A rule about a place at which the home or a part of the system is seen once more hides that place
 * alone, not the home.
 */
static bool is_needed(const struct facts *facts, const char *path)
{
	static const char *const system[] = { "/", "/bin", "/etc", "/home", "/lib", "/lib64",
		"/opt", "/root", "/sbin", "/usr", "/var" };

	for (size_t i = 0; i < sizeof(system) / sizeof(system[0]); i++)
		if (!strcmp(path, system[i]))
			return true;
	return facts->home && path_below(path, facts->home);
}

static int find_hidden(struct search *s, const struct path_fact *f)
{
	int r = find_places(s, f->path, strlen(f->path), true);

	for (size_t i = 1; i < s->count && r >= 0; i++)
		if (is_needed(s->facts, s->places[i].path))
			return 0;
	for (size_t i = 1; i < s->count && r >= 0; i++)
		r = add_appearance(s, f, f->rule, f->path, &s->places[i]);
	return r;
}

/* --- what is protected ------------------------------------------------------------------------ */

static bool is_writable(const struct search *s, const char *path)
{
	const struct facts *facts = s->facts;

	if (s->policy->workspace_mode == WORKSPACE_DIRECT && path_below(facts->workspace, path))
		return true;
	for (size_t i = 0; i < facts->path_count; i++) {
		const struct path_fact *f = &facts->paths[i];

		if (f->exists &&
			(f->rule->kind == PATH_WRITE || f->rule->kind == PATH_BIND_RW) &&
			path_below(f->source, path))
			return true;
	}
	return false;
}

/* The path does not exist, so it is seen nowhere else; but the directory in which it would be made may be. */
static int find_absent(struct search *s, const struct path_fact *f)
{
	size_t length = f->parent_exists;
	const char *rest = f->path + length + (length > 1);

	/*
	 * If the path lies in something writable it is watched there, and found whatever place it
	 * was made by.
	 */
	if (!length || is_writable(s, f->path))
		return 0;
	int r = find_places(s, f->path, length, false);
	for (size_t i = 1; i < s->count && r >= 0; i++) {
		const char *at = s->places[i].path;
		struct path_fact fact = *f;

		fact.path = join_kept(s, at, rest);
		if (!fact.path)
			return -ENOMEM;
		fact.same_as = f->path;
		fact.parent_exists = strlen(at);
		if (is_writable(s, fact.path))
			r = keep_fact(s, fact);
	}
	return r;
}

static int find_protected(struct search *s, const struct path_fact *f)
{
	if (!f->exists)
		return find_absent(s, f);
	int r = find_places(s, f->path, strlen(f->path), false);
	for (size_t i = 1; i < s->count && r >= 0; i++)
		if (is_writable(s, s->places[i].path))
			r = add_appearance(s, f, f->rule, f->path, &s->places[i]);
	return r;
}

/* --- what is never the host's inside ---------------------------------------------------------- */

static int find_own(struct search *s, const char *path, bool parts)
{
	int r = path ? find_places(s, path, strlen(path), parts) : 0;

	for (size_t i = 1; path && i < s->count && r >= 0; i++)
		r = add_appearance(s, NULL, &never_ours, path, &s->places[i]);
	return r;
}

/* Another procfs shows the same processes. */
static int find_procs(struct search *s)
{
	for (size_t i = 0; i < s->table.count; i++) {
		const struct mount_entry *m = &s->table.mounts[i];
		struct place p = { .path = m->point };

		if (!m->is_proc || strcmp(m->root, "/") != 0 || path_below("/proc", m->point) ||
			mountinfo_find(&s->table, m->point) != m)
			continue;
		int r = stat_path(p.path, &p.st);
		if (r == 0)
			r = add_appearance(s, NULL, &never_ours, "/proc", &p);
		if (r < 0)
			return r;
	}
	return 0;
}

static int find_all_own(struct search *s)
{
	static const enum system_path places[] = { SYSTEM_DEV, SYSTEM_RUN, SYSTEM_TMP,
		SYSTEM_VAR_TMP };
	const struct facts *facts = s->facts;
	int r = find_procs(s);

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && r >= 0; i++)
		if (facts->system[places[i]].exists)
			r = find_own(s, facts->system[places[i]].path, false);
	if (r < 0)
		return r;
	r = find_own(s, facts->scratch_base, false);
	if (r < 0)
		return r;
	r = find_own(s, facts->runtime_dir, true);
	if (r < 0)
		return r;
	return find_own(s, facts->state_dir, true);
}

/* Every file system is mounted at one place, and none is a layer of another one, as on most machines. */
static bool is_each_seen_once(const struct mountinfo *t)
{
	const struct mount_entry *root = mountinfo_find(t, "/");

	if (!root || strcmp(root->point, "/") != 0 || t->layer_count || t->count > ONCE_MAX)
		return false;
	for (size_t i = 1; i < t->count; i++)
		for (size_t j = 0; j < i; j++)
			if (t->mounts[i].device == t->mounts[j].device)
				return false;
	return true;
}

static int find_all(struct search *s)
{
	const struct facts *facts = s->facts;
	int r = mountinfo_read(&s->table, &s->work);

	s->table_end = s->work.used;
	/* If every mount shows another file system, nothing is seen at a second place. */
	if (r >= 0 && is_each_seen_once(&s->table))
		return find_procs(s);
	for (size_t i = 0; i < facts->path_count && r >= 0; i++) {
		const struct path_fact *f = &facts->paths[i];

		/* A rule about the place where a bind shows something does not hold at its own path. */
		if (strcmp(f->path, f->source) != 0)
			continue;
		if (f->rule->kind == PATH_HIDE && f->exists)
			r = find_hidden(s, f);
		else if (f->rule->kind == PATH_PROTECT)
			r = find_protected(s, f);
	}
	return r < 0 ? r : find_all_own(s);
}

static int add_found(struct search *s, struct arena *a)
{
	int r = 0;

	for (size_t i = 0; i < s->found_count && r >= 0; i++) {
		struct path_fact *f = &s->found[i];

		f->path = f->source = arena_copy(a, f->path, strlen(f->path));
		r = f->path ? facts_add(s->facts, a, f) : -ENOMEM;
	}
	return r;
}

/*
 * Note that "/" was entered with chroot(2) and is no mount point. No mounts can be made there, so
 * the session was asked for with `degraded`.
 */
static int note_unlisted(struct facts *facts, struct arena *a)
{
	struct note_fact *grown =
		arena_push(a, (void *)facts->notes, facts->note_count, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	facts->notes = grown;
	grown[facts->note_count++] = (struct note_fact){
		.path = "/",
		.why = "is not a mount point: other mounts that show hidden files cannot be found",
	};
	return 0;
}

int facts_mounts(
	struct facts *facts, struct arena *a, const struct policy *policy, struct error *e)
{
	struct search s = { .facts = facts, .policy = policy };

	arena_lend(a, &s.work, &s.kept);
	int r = find_all(&s);
	forget_places(&s);
	s.work.used = s.work_most;
	arena_take_back(&s.work);
	if (r >= 0)
		r = add_found(&s, a);
	if (r >= 0 && s.unlisted)
		r = note_unlisted(facts, a);
	arena_take_back(&s.kept);
	if (r == -ENOMEM)
		return no_memory(e);
	return r < 0 ? error_set(e, ERROR_PATH, "facts", -r, "/proc/self/mountinfo",
			       "other places that show hidden files cannot be found")
		     : 0;
}

/*
 * facts_cover.c - see facts_cover.h.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#include "host/facts/facts_cover.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "box/sys.h"
#include "host/process/unix_table.h"
#include "plan/path.h"

static bool is_moved(const struct path_fact *f)
{
	return (f->rule->kind == PATH_BIND_RO || f->rule->kind == PATH_BIND_RW) &&
		strcmp(f->path, f->source) != 0;
}

static bool shows_something(enum path_kind kind)
{
	return kind != PATH_HIDE && kind != PATH_PROTECT && kind != PATH_DEV;
}

/* Whether @bind is what is seen at @place: nothing more specific lies in between. */
static bool is_nearest(const struct facts *facts, size_t count, const struct path_fact *bind,
	const char *place)
{
	size_t length = strlen(bind->path);

	for (size_t i = 0; i < count; i++) {
		const struct path_fact *f = &facts->paths[i];

		if (shows_something(f->rule->kind) && strlen(f->path) > length &&
			path_below(f->path, place))
			return false;
	}
	return strlen(facts->workspace) <= length || !path_below(facts->workspace, place);
}

struct path_fact facts_path(const struct path_rule *rule, const struct resolved *found)
{
	return (struct path_fact){
		.rule = rule,
		.path = found->path,
		.source = found->path,
		.exists = found->exists,
		.dest_exists = found->exists,
		.is_link = found->exists && S_ISLNK(found->st.st_mode),
		.mode = found->st.st_mode,
		.uid = found->st.st_uid,
		.gid = found->st.st_gid,
		.dev = found->st.st_dev,
		.ino = found->st.st_ino,
		.parent_exists = found->existing,
	};
}

int facts_add(struct facts *facts, struct arena *a, const struct path_fact *fact)
{
	struct path_fact *grown =
		arena_push_many(a, facts->paths, facts->path_count, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	facts->paths = grown;
	facts->paths[facts->path_count++] = *fact;
	return 0;
}

static int cover(struct facts *facts, size_t count, struct resolver *resolver,
	const struct path_fact *bind, const struct path_rule *rule)
{
	struct resolved place, found;
	int r = resolve_path(resolver, rule->path, RESOLVE_KEEP_LAST, &place);
	const char *rest = r < 0 ? NULL : path_below(bind->path, place.path);

	if (r < 0 && error_is_own(-r))
		return r;
	if (!rest || !*rest || !is_nearest(facts, count, bind, place.path))
		return 0; /* a place that cannot be looked at is not shown either */
	for (size_t i = 0; i < count; i++)
		if (facts->paths[i].rule == rule && !strcmp(facts->paths[i].path, place.path))
			facts->paths[i].covered = true;
	const char *seen = arena_join(resolver->arena, bind->source, '/', rest);
	if (!seen)
		return -ENOMEM;
	r = resolve_path(resolver, seen, RESOLVE_KEEP_LAST | RESOLVE_PREFIX, &found);
	if (r == -EACCES || r == -ELOOP || r == -ENAMETOOLONG || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return r;
	/* A link on the way leads out of the bind, to a place with rules of its own. */
	if (strcmp(found.path, seen) != 0 || (!found.exists && rule->kind == PATH_HIDE))
		return 0;
	struct path_fact fact = facts_path(rule, &found);
	/* Look for an absent path where the host would make it. */
	if (found.exists)
		fact.path = place.path;
	return facts_add(facts, resolver->arena, &fact);
}

int facts_cover(struct facts *facts, struct resolver *resolver, const struct policy *policy)
{
	size_t count = facts->path_count; /* the facts added below belong to no bind */

	for (size_t b = 0; b < count; b++) {
		if (!is_moved(&facts->paths[b]))
			continue;
		for (size_t i = 0; i < policy->path_count; i++) {
			const struct path_rule *rule = &policy->paths[i];
			const struct path_fact bind = facts->paths[b]; /* the array may move */

			if (rule->glob || shows_something(rule->kind) || rule->kind == PATH_DEV)
				continue;
			int r = cover(facts, count, resolver, &bind, rule);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

bool facts_is_covered(const struct facts *facts, const char *place)
{
	for (size_t b = 0; b < facts->path_count; b++) {
		const struct path_fact *bind = &facts->paths[b];
		const char *rest = is_moved(bind) ? path_below(bind->path, place) : NULL;

		if (rest && *rest && is_nearest(facts, facts->path_count, bind, place))
			return true;
	}
	return false;
}

struct seats {
	struct facts *facts;
	struct arena *arena;
	const struct path_fact *bind;
};

/* Leave to the launch what cannot be examined here: the launch does not follow links either. */
static bool lacks(const char *seen, bool is_dir)
{
	struct stat st;
	autofd int fd = sys_openat2(AT_FDCWD, seen, O_PATH | O_NOFOLLOW,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP;
	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) != is_dir;
}

static int seat(const struct seats *s, const char *path, bool is_dir)
{
	const char *rest = path ? path_below(s->bind->path, path) : NULL;

	if (!rest || !*rest)
		return 0;
	const char *seen = arena_join(s->arena, s->bind->source, '/', rest);
	if (!seen)
		return -ENOMEM;
	if (!lacks(seen, is_dir))
		return 0;
	struct facts *facts = s->facts;
	const char **grown = arena_push(
		s->arena, (void *)facts->unseated, facts->unseated_count, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	facts->unseated = grown;
	facts->unseated[facts->unseated_count++] = seen;
	return 0;
}

static int seat_all(const struct seats *s)
{
	const struct facts *facts = s->facts;
	const char *const own[] = { facts->workspace, facts->scratch_base, facts->session_dir,
		facts->runtime_dir };
	int r = 0;

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]) && r >= 0; i++)
		r = seat(s, own[i], true);
	for (int i = 0; i < SYSTEM_PATH_COUNT && r >= 0; i++)
		if (facts->system[i].exists)
			r = seat(s, facts->system[i].path, S_ISDIR(facts->system[i].mode));
	for (size_t i = 0; i < facts->closed_count && r >= 0; i++)
		r = seat(s, facts->closed_dirs[i], true);
	for (size_t i = 0; i < facts->path_count && r >= 0; i++) {
		const struct path_fact *f = &facts->paths[i];
		bool memory = f->rule->kind == PATH_TMPFS;

		if ((f->exists || memory) && !f->covered && !f->is_link)
			r = seat(s, f->path, memory || S_ISDIR(f->mode));
	}
	return r;
}

int facts_seats(struct facts *facts, struct arena *a)
{
	int r = 0;

	for (size_t b = 0; b < facts->path_count && r >= 0; b++) {
		const struct seats s = { facts, a, &facts->paths[b] };

		if (is_moved(s.bind))
			r = seat_all(&s);
	}
	return r;
}

/* --- the host's sockets ---------------------------------------------------------------------- */

enum {
	PLACES = 9,
	LANDLOCK_REFUSES = 9,
};

/* A place that no session shows as the host has it. */
struct place {
	const char *path;
	size_t length;
	bool opened; /* a line shows something in it */
};

struct search {
	struct facts *facts;
	struct resolver *res;
	const struct path_fact **shown;
	size_t shown_count;
	bool workspace_ro;
	bool daemons_alone; /* Landlock refuses all others */
	bool prepared;      /* `shown` and `places` are filled: only when there is a socket */
	struct place places[PLACES];
};

static bool shows(const struct path_fact *f)
{
	switch (f->rule->kind) {
	case PATH_READ:
	case PATH_WRITE:
	case PATH_BIND_RO:
	case PATH_BIND_RW:
		return f->exists;
	case PATH_HIDE:
	case PATH_PROTECT:
	case PATH_TMPFS:
	case PATH_DEV:
		break;
	}
	return false;
}

/* The line by which @path is seen: the one that names what is nearest above it. */
static const struct path_fact *find_nearest(const struct search *s, const char *path)
{
	const struct path_fact *best = NULL;

	for (size_t i = 0; i < s->shown_count; i++)
		if (path_below(s->shown[i]->source, path) &&
			(!best || strlen(best->source) <= strlen(s->shown[i]->source)))
			best = s->shown[i];
	return best;
}

/* The innermost such place that @path lies in, or NULL. */
static const struct place *find_place(const struct search *s, const char *path)
{
	const struct place *best = NULL;

	for (size_t i = 0; i < PLACES; i++) {
		const struct place *p = &s->places[i];

		if (p->length && !strncmp(p->path, path, p->length) &&
			(path[p->length] == '/' || !path[p->length]) &&
			(!best || best->length < p->length))
			best = p;
	}
	return best;
}

/* Whether a command could connect to the socket only because it is seen: no line means to allow it. */
static bool is_reached(const struct search *s, const char *path)
{
	const struct facts *facts = s->facts;
	const struct place *place = find_place(s, path);
	const char *below = path_below(facts->workspace, path);
	/* Most sockets lie in such places, and there may be a thousand of them. */
	if (place && !place->opened && !below)
		return false;
	const struct path_fact *nearest = find_nearest(s, path);
	size_t length = nearest ? strlen(nearest->source) : 0;
	bool daemon = policy_is_daemon(path);
	bool in_workspace = below && strlen(facts->workspace) >= length;

	if (s->daemons_alone && !daemon)
		return false;
	/*
	 * A daemon's socket counts wherever it is seen, writable or not. A line that names it had
	 * the second word: policy_check_daemons().
	 */
	if (daemon && (in_workspace || (nearest && strcmp(nearest->source, path) != 0)))
		return in_workspace || !place || length >= place->length;
	/* In the workspace, and in what is made writable, a command makes sockets of its own. */
	if (in_workspace)
		return s->workspace_ro;
	if (!nearest || !strcmp(nearest->source, path))
		return false;
	return (nearest->rule->kind == PATH_READ || nearest->rule->kind == PATH_BIND_RO) &&
		(!place || length > place->length);
}

static void find_shown(struct search *s)
{
	for (size_t i = 0; i < s->facts->path_count; i++)
		if (shows(&s->facts->paths[i]))
			s->shown[s->shown_count++] = &s->facts->paths[i];
}

static void find_places(struct search *s)
{
	const struct facts *facts = s->facts;
	const char *const places[PLACES] = { "/proc", "/dev", "/run", "/var/run", "/tmp",
		"/var/tmp", facts->scratch_base, facts->runtime_dir, facts->state_dir };

	for (size_t i = 0; i < PLACES; i++) {
		struct place *p = &s->places[i];

		if (!places[i])
			continue;
		*p = (struct place){ .path = places[i], .length = strlen(places[i]) };
		for (size_t k = 0; k < s->shown_count && !p->opened; k++)
			p->opened = path_below(p->path, s->shown[k]->source) != NULL;
	}
}

/*
 * The pointers in `shown` stay good: facts_add() puts new facts behind the others, or all of them
 * into another array.
 */
static int prepare_search(struct search *s)
{
	s->prepared = true;
	s->shown = arena_array(s->res->arena, s->facts->path_count, sizeof(*s->shown));
	if (!s->shown)
		return -ENOMEM;
	find_shown(s);
	find_places(s);
	return 0;
}

/* If a bind shows the socket elsewhere, cover it there. */
static int seen_at(const struct search *s, struct path_fact *fact)
{
	const struct path_fact *bind = find_nearest(s, fact->source);
	const char *rest =
		bind && is_moved(bind) ? path_below(bind->source, fact->source) : NULL;

	if (!rest || !*rest)
		return 0;
	fact->path = arena_join(s->res->arena, bind->path, '/', rest);
	return fact->path ? 0 : -ENOMEM;
}

static int cover_socket(void *context, const char *path)
{
	struct search *s = context;
	struct resolved found;

	if (!s->prepared && prepare_search(s) < 0)
		return -ENOMEM;
	/* A copy, since the resolver keeps the path. */
	const char *kept =
		is_reached(s, path) ? arena_copy(s->res->arena, path, strlen(path)) : "";
	int r = !kept ? -ENOMEM : *kept ? resolve_path(s->res, kept, 0, &found) : -ENOENT;

	if (r < 0 && error_is_own(-r))
		return r;
	/* Ask for its real name, too: /var/run is /run. */
	if (r < 0 || !found.exists || !S_ISSOCK(found.st.st_mode) || !is_reached(s, found.path))
		return 0;
	if (s->facts->socket_count == FACTS_SOCKETS_MAX) {
		s->facts->sockets_why =
			"more sockets of the host can be reached by path than are hidden (128)";
		return 0;
	}
	struct path_rule *rule = arena_alloc(s->res->arena, sizeof(*rule));
	if (!rule)
		return -ENOMEM;
	*rule = (struct path_rule){ .kind = PATH_HIDE,
		.optional = true,
		.socket = true,
		.path = found.path,
		.source = { .layer = LAYER_DEFAULT, .file = "unix-socket" } };
	struct path_fact fact = facts_path(rule, &found);
	r = seen_at(s, &fact);
	if (r >= 0)
		r = facts_add(s->facts, s->res->arena, &fact);
	s->facts->socket_count += r >= 0;
	return r;
}

/*
 * Whether a line makes something writable: Landlock allows connections there, as a command makes
 * sockets of its own there.
 */
static bool shows_writable(const struct facts *facts)
{
	for (size_t i = 0; i < facts->path_count; i++)
		if (facts->paths[i].exists &&
			(facts->paths[i].rule->kind == PATH_WRITE ||
				facts->paths[i].rule->kind == PATH_BIND_RW))
			return true;
	return false;
}

int facts_sockets(struct facts *facts, struct resolver *resolver, const struct policy *policy)
{
	bool refused = facts->landlock_abi >= LANDLOCK_REFUSES && !policy->nested.on;

	if (facts->refused_namespaces || (refused && !shows_writable(facts)))
		return 0;
	struct search s = { .facts = facts,
		.res = resolver,
		.workspace_ro = policy->workspace_mode == WORKSPACE_RO,
		.daemons_alone = refused };

	if (!refused)
		facts->sockets_why =
			"sockets that the host makes later can be reached by path: Landlock ABI < 9";
	int r = unix_table_read(cover_socket, &s);
	/* A machine without the list has no sockets to be reached; whatever else fails is a failure. */
	if (r == -EFBIG)
		facts->sockets_why =
			"the kernel's list of sockets is longer than 64 MiB: those behind that are not hidden";
	return r == -EFBIG || r == -ENOENT ? 0 : r;
}

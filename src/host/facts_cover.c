/*
 * facts_cover.c - see facts_cover.h.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#include "host/facts_cover.h"

#include <errno.h>
#include <string.h>

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
		arena_push(a, facts->paths, facts->path_count, sizeof(*grown));

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
	/* What is absent is looked for where the host would have it. */
	if (found.exists)
		fact.path = place.path;
	return facts_add(facts, resolver->arena, &fact);
}

int facts_cover(struct facts *facts, struct resolver *resolver, const struct policy *policy)
{
	size_t count = facts->path_count; /* those that are added are none of a bind */

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

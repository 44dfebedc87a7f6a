/*
 * policy_lock_paths.c - locks on rules about paths.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 *
 * Judged twice: on the paths as they are written, before anything is looked up, and on the paths as
 * the machine resolved them (policy_check_facts), where no symbolic link is a way around.
 */
#include <errno.h>
#include <string.h>

#include "base/glob.h"
#include "plan/plan.h"
#include "plan/policy_lock.h"

/* The place of a rule inside the session. */
static const char *rule_place(const struct path_rule *rule)
{
	return rule->dest ? rule->dest : rule->path;
}

/* @path is @above or lies below it. */
static bool is_below(const char *path, const char *above)
{
	size_t length = strlen(above);

	if (length == 1)
		return path[0] == '/';
	return !strncmp(path, above, length) && (path[length] == '\0' || path[length] == '/');
}

static bool is_under_rule(const char *path, const struct path_rule *rule)
{
	return rule->glob ? glob_path_fits(rule->path, path) : is_below(path, rule->path);
}

static size_t glob_prefix(const char *glob)
{
	size_t length = 0, slash = 0;

	for (; glob[length] && !strchr("*?[\\", glob[length]); length++)
		if (glob[length] == '/')
			slash = length;
	return slash;
}

/* Would showing @path show something the rule covers below it? */
static bool is_over_rule(const char *path, const struct path_rule *rule)
{
	size_t length = strlen(path);

	if (!rule->glob)
		return is_below(rule->path, path);
	/*
	 * The pattern lies below @path if its part without a wild card starts with @path: that is
	 * enough.
	 */
	return length <= glob_prefix(rule->path) + 1 && !strncmp(rule->path, path, length) &&
		(length == 1 || rule->path[length] == '/');
}

static bool same_rule(const struct path_rule *a, const struct path_rule *b)
{
	return a->kind == b->kind && policy_same_text(a->path, b->path) &&
		policy_same_text(a->dest, b->dest) && a->size == b->size;
}

static bool has_rule(const struct policy *p, const struct path_rule *rule)
{
	for (size_t i = 0; i < p->path_count; i++)
		if (same_rule(&p->paths[i], rule))
			return true;
	return false;
}

/* Kinds of rules that give more of what the setting gives. */
static unsigned kinds_of(enum setting_id id)
{
	switch ((int)id) {
	case SETTING_READ:
		return 1U << PATH_READ | 1U << PATH_WRITE | 1U << PATH_BIND_RO |
			1U << PATH_BIND_RW;
	case SETTING_WRITE:
	case SETTING_UNIX_SOCKET:
		return 1U << PATH_WRITE | 1U << PATH_BIND_RW;
	case SETTING_BIND:
		return 1U << PATH_BIND_RO | 1U << PATH_BIND_RW;
	case SETTING_TMPFS:
		return 1U << PATH_TMPFS;
	case SETTING_DEV:
		return 1U << PATH_DEV;
	default:
		return 0;
	}
}

/*
 * Whether the rule is nothing new: the most specific locked rule around it allows as much there.
 * Only for rules that show a path at itself.
 */
static bool is_covered(
	const struct policy *locked, const struct path_rule *rule, unsigned kinds)
{
	const struct path_rule *best = NULL;

	if (rule->kind != PATH_READ && rule->kind != PATH_WRITE)
		return false;
	if (strstr(rule->path, "/.."))
		return false;
	for (size_t i = 0; i < locked->path_count; i++) {
		const struct path_rule *l = &locked->paths[i];

		if (l->kind == PATH_HIDE && is_under_rule(rule->path, l))
			return false;
		if (l->kind == PATH_PROTECT && rule->kind == PATH_READ)
			continue;
		if (!l->glob && is_below(rule->path, rule_place(l)) &&
			(!best || strlen(rule_place(l)) >= strlen(rule_place(best))))
			best = l;
	}
	return best && (kinds & 1U << best->kind) &&
		(rule->kind == PATH_READ || best->kind == PATH_WRITE);
}

int policy_judge_paths(const struct policy_judge *j, const struct setting *s)
{
	unsigned kinds = kinds_of((enum setting_id)s->id);

	for (size_t i = 0; i < j->p->path_count; i++) {
		const struct path_rule *rule = &j->p->paths[i];

		if (s->id == SETTING_UNIX_SOCKET && !rule->socket)
			continue;
		if ((kinds & 1U << rule->kind) && policy_is_later(j, &rule->source) &&
			!has_rule(j->locked, rule) && !is_covered(j->locked, rule, kinds))
			return policy_fail_locked(j, &rule->source,
				rule->socket ? "unix-socket" : policy_path_setting(rule->kind));
	}
	return 0;
}

static bool shows(enum path_kind kind)
{
	return kind != PATH_HIDE && kind != PATH_PROTECT;
}

static bool is_bind(enum path_kind kind)
{
	return kind == PATH_BIND_RO || kind == PATH_BIND_RW;
}

/* Does the later @rule show (or, protect: give a way to write) what @held covers? */
static bool opens(const struct path_rule *rule, const struct path_rule *held)
{
	if (!shows(rule->kind))
		return rule->kind != held->kind && rule->kind == PATH_PROTECT &&
			policy_same_text(rule->path, held->path);
	if (is_under_rule(rule_place(rule), held))
		return true;
	if (!is_bind(rule->kind) || (held->kind == PATH_PROTECT && rule->kind == PATH_BIND_RO))
		return false;
	/* a bind shows its source elsewhere, with everything in it */
	return is_under_rule(rule->path, held) || is_over_rule(rule->path, held);
}

/*
 * Put back what the chosen profile no longer hides or protects: in front, so that the rules stay in
 * the order of their layers. A path that is hidden now needs no protection beside it.
 */
static int restore_rule(const struct policy_judge *j, const struct path_rule *held)
{
	struct policy *p = j->p;

	for (size_t i = 0; i < p->path_count; i++)
		if (!shows(p->paths[i].kind) && p->paths[i].glob == held->glob &&
			!strcmp(p->paths[i].path, held->path))
			return 0;
	struct path_rule *rules = arena_array(p->arena, p->path_count + 1, sizeof(*rules));
	if (!rules)
		return policy_full(j->e);
	if (p->path_count > 0)
		memcpy(rules + 1, p->paths, p->path_count * sizeof(*rules));
	rules[0] = *held;
	p->paths = rules;
	p->path_room = ++p->path_count;
	return 0;
}

int policy_judge_shadowed(const struct policy_judge *j, enum path_kind kind)
{
	for (size_t h = 0; h < j->locked->path_count; h++) {
		const struct path_rule *held = &j->locked->paths[h];

		if (held->kind != kind)
			continue;
		for (size_t i = 0; i < j->p->path_count; i++) {
			const struct path_rule *rule = &j->p->paths[i];

			if (policy_is_later(j, &rule->source) && opens(rule, held))
				return policy_fail_locked(
					j, &rule->source, policy_path_setting(rule->kind));
		}
		if (j->p->workspace.value && j->p->workspace.source.layer > LAYER_SYSTEM &&
			is_under_rule(j->p->workspace.value, held))
			return policy_fail_locked(j, &j->p->workspace.source, "workspace");
		int r = restore_rule(j, held);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- once more, on resolved paths ------------------------------------------------------------- */

/* Does the later @fact open the resolved @held? */
static bool fact_opens(const struct path_fact *fact, const struct path_fact *held)
{
	enum path_kind kind = fact->rule->kind;

	if (!shows(kind) || !fact->path)
		return false;
	if (is_below(fact->path, held->path))
		return true;
	if (!fact->source ||
		(held->rule->kind == PATH_PROTECT && kind != PATH_WRITE &&
			kind != PATH_BIND_RW))
		return false;
	return is_below(fact->source, held->path) ||
		(is_bind(kind) && is_below(held->path, fact->source));
}

static int check_held(
	const struct policy_judge *j, const struct facts *facts, const struct path_fact *held)
{
	for (size_t i = 0; i < facts->path_count; i++) {
		const struct path_fact *fact = &facts->paths[i];

		if (policy_is_later(j, &fact->rule->source) && fact_opens(fact, held))
			return policy_fail_locked(
				j, &fact->rule->source, policy_path_setting(fact->rule->kind));
	}
	const struct source *workspace = &j->p->workspace.source;
	bool chosen = workspace->layer == LAYER_DEFAULT || policy_is_later(j, workspace);
	if (chosen && facts->workspace && is_below(facts->workspace, held->path))
		return policy_fail_locked(j, workspace, "workspace");
	return 0;
}

int policy_check_facts(const struct policy *p, const struct facts *facts, struct error *e)
{
	if (!p->locked)
		return 0;
	for (size_t i = 0; i < p->lock_count; i++) {
		const char *word = p->locks[i].word;
		enum path_kind kind = !strcmp(word, "hide") ? PATH_HIDE : PATH_PROTECT;
		struct policy_judge j = { .p = (struct policy *)(uintptr_t)p,
			.locked = p->locked,
			.lock = &p->locks[i],
			.e = e };

		if (kind == PATH_PROTECT && strcmp(word, "protect") != 0)
			continue;
		for (size_t f = 0; f < facts->path_count; f++) {
			const struct path_fact *held = &facts->paths[f];

			/* A lock is about lines that somebody wrote; carrel's own rules are none. */
			if (held->rule->kind != kind ||
				(kind == PATH_HIDE &&
					held->rule->source.layer == LAYER_DEFAULT) ||
				policy_is_later(&j, &held->rule->source) || !held->path)
				continue;
			int r = check_held(&j, facts, held);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

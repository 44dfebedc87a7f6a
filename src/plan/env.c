/*
 * env.c - see env.h.
 *
 * Runs in: the launcher and carrel-policy. PURE: the caller's environment comes with the facts.
 */
#include "plan/env.h"

#include <errno.h>
#include <string.h>

#include "plan/path.h"

struct env_list {
	const char **entries; /* NAME=VALUE */
	size_t count;
	struct arena *arena;
	struct error *e;
};

/* Length of the name in NAME=VALUE; 0 where it is none. */
static size_t name_length(const char *entry)
{
	const char *equals = strchr(entry, '=');

	return equals ? (size_t)(equals - entry) : 0;
}

static bool same_name(const char *entry, const char *name, size_t length)
{
	return !strncmp(entry, name, length) && entry[length] == '=';
}

/* '*' stands for any run of bytes; nothing else is special. No recursion: one point to go back to. */
static bool name_matches(const char *glob, const char *name, size_t length)
{
	const char *star = NULL;
	size_t at = 0, back = 0;

	while (at < length) {
		if (*glob == '*') {
			star = ++glob;
			back = at;
		} else if (*glob && *glob == name[at]) {
			glob++;
			at++;
		} else if (star) {
			glob = star;
			at = ++back;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return !*glob;
}

/* TMPDIR is in the scratch unless a line names it itself: who writes a pattern does not mean that. */
static bool rule_matches(const char *glob, const char *name, size_t length)
{
	bool whole = length == strlen("TMPDIR") && !strncmp(name, "TMPDIR", length);

	return whole ? !strcmp(glob, "TMPDIR") : name_matches(glob, name, length);
}

static int list_put(struct env_list *l, const char *entry, size_t length)
{
	for (size_t i = 0; i < l->count; i++)
		if (same_name(l->entries[i], entry, length)) {
			l->entries[i] = entry;
			return 0;
		}
	/* One more than the count stays free for the NULL at the end. */
	const char **entries =
		arena_push(l->arena, (void *)l->entries, l->count + 1, sizeof(*entries));
	if (!entries)
		return error_set(l->e, ERROR_LIMIT, "plan", ENOMEM, NULL,
			"the environment does not fit");
	l->entries = entries;
	l->entries[l->count++] = entry;
	return 0;
}

static int list_set(struct env_list *l, const char *name, const char *value)
{
	const char *entry = arena_join(l->arena, name, '=', value);

	return entry ? list_put(l, entry, strlen(name))
		     : error_set(l->e, ERROR_LIMIT, "plan", ENOMEM, name,
			       "the environment does not fit");
}

static void list_remove(struct env_list *l, const char *glob)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++)
		if (!rule_matches(glob, l->entries[i], name_length(l->entries[i])))
			l->entries[kept++] = l->entries[i];
	l->count = kept;
}

static int take_from_caller(struct env_list *l, const struct facts *facts, const char *glob)
{
	for (size_t i = 0; facts->environ && facts->environ[i]; i++) {
		size_t length = name_length(facts->environ[i]);

		if (!length || !rule_matches(glob, facts->environ[i], length))
			continue;
		/* A copy: init wipes the caller's own block before anything runs inside. */
		const char *copy =
			arena_copy(l->arena, facts->environ[i], strlen(facts->environ[i]));
		int r = copy ? list_put(l, copy, length)
			     : error_set(l->e, ERROR_LIMIT, "plan", ENOMEM, NULL,
				       "the environment does not fit");
		if (r < 0)
			return r;
	}
	return 0;
}

static int apply_rules(struct env_list *l, const struct plan *plan)
{
	const struct policy *policy = plan->policy;
	int r = 0;

	for (size_t i = 0; i < policy->env_count && r >= 0; i++) {
		const struct env_rule *rule = &policy->envs[i];

		if (rule->unset)
			list_remove(l, rule->name);
		else if (rule->value)
			r = list_set(l, rule->name, rule->value);
		else
			r = take_from_caller(l, plan->facts, rule->name);
	}
	return r;
}

/* Whether TMPDIR is as the policy has it: set by a line of its own, or not to be there at all. */
static bool has_own_tmpdir(const struct env_list *l, const struct policy *policy)
{
	for (size_t i = 0; i < l->count; i++)
		if (same_name(l->entries[i], "TMPDIR", strlen("TMPDIR")))
			return true;
	for (size_t i = 0; i < policy->env_count; i++)
		if (policy->envs[i].unset && !strcmp(policy->envs[i].name, "TMPDIR"))
			return true;
	return false;
}

/*
 * What carrel itself says, over everything else: a session must be able to trust it. A policy that
 * says otherwise was refused when it was read (policy_value.c).
 */
static int apply_own(struct env_list *l, const struct plan *plan)
{
	const struct facts *facts = plan->facts;
	const struct policy *policy = plan->policy;
	const char *scratch = facts->scratch_dir;
	const char *results = arena_format(l->arena, "%s/tool-results", facts->session_dir);
	const char *tmp = arena_format(l->arena, "%s/scratch/tmp", facts->session_dir);

	if (!results || !tmp)
		return error_set(l->e, ERROR_LIMIT, "plan", ENOMEM, NULL,
			"the environment does not fit");
	const char *const own[][2] = {
		{ "CARREL_SESSION", facts->session_name + strlen("carrel-") },
		{ "CARREL_WORKSPACE", facts->workspace },
		{ "CARREL_SCRATCH", scratch },
		{ "CARREL_TOOL_RESULTS", results },
		{ "TMPDIR", has_own_tmpdir(l, policy) ? NULL : tmp },
		{ "PWD", plan->cwd },
	};
	int r = 0;

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]) && r >= 0; i++)
		if (own[i][1])
			r = list_set(l, own[i][0], own[i][1]);
	for (size_t i = 0; i < policy->scratch_env_count && r >= 0; i++)
		r = list_set(l, policy->scratch_envs[i].word, scratch);
	return r;
}

/* The working directory: as asked, else the caller's where it is in the workspace, else that. */
static void choose_cwd(struct plan *plan)
{
	const struct facts *facts = plan->facts;

	if (plan->policy->cwd.value)
		plan->cwd = plan->policy->cwd.value;
	else if (facts->cwd && path_below(facts->workspace, facts->cwd))
		plan->cwd = facts->cwd;
	else
		plan->cwd = facts->workspace;
}

int plan_environment(struct plan *plan, struct error *e)
{
	struct env_list l = { .arena = plan->arena, .e = e };

	choose_cwd(plan);
	int r = apply_rules(&l, plan);
	if (r >= 0)
		r = apply_own(&l, plan);
	if (r < 0)
		return r;
	l.entries[l.count] = NULL;
	plan->envp = l.entries;
	plan->env_count = l.count;
	const char *path = plan_find_env(plan, "PATH");
	plan->path_env = path ? path : "/usr/local/bin:/usr/bin:/bin";
	return 0;
}

const char *plan_find_env(const struct plan *plan, const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < plan->env_count; i++)
		if (same_name(plan->envp[i], name, length))
			return plan->envp[i] + length + 1;
	return NULL;
}

/* What apply_own() set, which stands over every line of the policy. */
static bool is_own(const struct plan *plan, const char *entry, size_t length)
{
	static const char *const own[] = { "CARREL_SESSION", "CARREL_WORKSPACE",
		"CARREL_SCRATCH", "CARREL_TOOL_RESULTS", "PWD" };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strlen(own[i]) == length && same_name(entry, own[i], length))
			return true;
	for (size_t i = 0; i < plan->policy->scratch_env_count; i++) {
		const char *name = plan->policy->scratch_envs[i].word;

		if (strlen(name) == length && same_name(entry, name, length))
			return true;
	}
	return false;
}

const struct env_rule *plan_env_rule(const struct plan *plan, const char *entry)
{
	const struct policy *policy = plan->policy;
	const char *const *caller = plan->facts->environ;
	size_t length = name_length(entry);

	if (is_own(plan, entry, length))
		return NULL;
	for (size_t i = policy->env_count; i > 0; i--) {
		const struct env_rule *rule = &policy->envs[i - 1];

		if (rule->unset || !rule_matches(rule->name, entry, length))
			continue;
		if (rule->value)
			return rule;
		for (size_t j = 0; caller && caller[j]; j++)
			if (same_name(caller[j], entry, length))
				return rule;
	}
	return NULL;
}

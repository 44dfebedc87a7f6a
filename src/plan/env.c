/*
 * env.c - see env.h.
 *
 * Runs in: the launcher and carrel-policy. PURE: the caller's environment comes with the facts.
 */
#include "plan/env.h"

#include <errno.h>
#include <string.h>

#include "base/glob.h"
#include "plan/path.h"

/* NAME=VALUE. The length of the name is kept, since each entry is compared with many names. */
struct env_entry {
	const char *text;
	size_t length; /* of the name */
};

/* What a rule is about: nearly always one name. */
struct env_glob {
	const char *text;
	size_t length;
	bool is_pattern;
};

struct env_list {
	struct env_entry *entries;
	size_t count;
	const struct env_entry *caller; /* the caller's entries that have a name */
	size_t caller_count;
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

static bool is_named(const struct env_entry *entry, const char *name, size_t length)
{
	return entry->length == length && !memcmp(entry->text, name, length);
}

static struct env_glob glob_of(const struct env_rule *rule)
{
	size_t length = strlen(rule->name);

	return (struct env_glob){ rule->name, length, memchr(rule->name, '*', length) };
}

/* A pattern never matches TMPDIR: it stays in the scratch unless a line names it in full. */
static bool glob_matches(const struct env_glob *glob, const struct env_entry *entry)
{
	if (!glob->is_pattern)
		return is_named(entry, glob->text, glob->length);
	return !is_named(entry, "TMPDIR", strlen("TMPDIR")) &&
		glob_star_fits(glob->text, entry->text, entry->length);
}

static int env_full(struct env_list *l, const char *name)
{
	return error_set(l->e, ERROR_LIMIT, "plan", ERROR_OWN(ENOMEM), name,
		"the environment needs more memory than is set aside");
}

static int list_put(struct env_list *l, const char *entry, size_t length)
{
	for (size_t i = 0; i < l->count; i++)
		if (is_named(&l->entries[i], entry, length)) {
			l->entries[i].text = entry;
			return 0;
		}
	struct env_entry *entries =
		arena_push(l->arena, l->entries, l->count, sizeof(*entries));
	if (!entries)
		return env_full(l, NULL);
	l->entries = entries;
	l->entries[l->count++] = (struct env_entry){ entry, length };
	return 0;
}

static int list_set(struct env_list *l, const char *name, const char *value)
{
	const char *entry = arena_join(l->arena, name, '=', value);

	return entry ? list_put(l, entry, strlen(name)) : env_full(l, name);
}

static void list_remove(struct env_list *l, const struct env_glob *glob)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++)
		if (!glob_matches(glob, &l->entries[i]))
			l->entries[kept++] = l->entries[i];
	l->count = kept;
}

static int look_at_caller(struct env_list *l, const char *const *environment)
{
	size_t room = 0, count = 0;

	while (environment && environment[room])
		room++;
	struct env_entry *caller = arena_array(l->arena, room, sizeof(*caller));
	if (!caller)
		return env_full(l, NULL);
	for (size_t i = 0; i < room; i++) {
		const struct env_entry entry = { environment[i], name_length(environment[i]) };

		if (entry.length)
			caller[count++] = entry;
	}
	l->caller = caller;
	l->caller_count = count;
	return 0;
}

/*
 * With `net allow` the caller's proxy is out of reach: return the session's own value for a variable
 * that names a proxy, or the hosts that need none. NULL: another variable, or another `net`.
 */
static const char *own_proxy(const struct plan *plan, const struct env_entry *entry)
{
	static const char *const proxies[] = { "http_proxy", "https_proxy", "ftp_proxy",
		"all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY",
		"npm_config_proxy", "npm_config_https_proxy" };
	static const char *const exceptions[] = { "no_proxy", "NO_PROXY",
		"npm_config_noproxy" };

	if (plan->policy->net != NET_ALLOW)
		return NULL;
	for (size_t i = 0; i < sizeof(proxies) / sizeof(*proxies); i++)
		if (is_named(entry, proxies[i], strlen(proxies[i])))
			return PLAN_PROXY_URL;
	for (size_t i = 0; i < sizeof(exceptions) / sizeof(*exceptions); i++)
		if (is_named(entry, exceptions[i], strlen(exceptions[i])))
			return "localhost,127.0.0.1,::1";
	return NULL;
}

static int take_from_caller(
	struct env_list *l, const struct plan *plan, const struct env_glob *glob)
{
	for (size_t i = 0; i < l->caller_count; i++) {
		const struct env_entry *entry = &l->caller[i];

		if (!glob_matches(glob, entry))
			continue;
		const char *value = own_proxy(plan, entry);
		/* A copy: init wipes the caller's own block before anything runs inside. */
		const char *copy = value
			? arena_format(
				  l->arena, "%.*s=%s", (int)entry->length, entry->text, value)
			: arena_copy(l->arena, entry->text, strlen(entry->text));
		int r = copy ? list_put(l, copy, entry->length) : env_full(l, NULL);
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
		const struct env_glob glob = glob_of(rule);

		if (rule->unset)
			list_remove(l, &glob);
		else if (rule->value)
			r = list_set(l, rule->name, rule->value);
		else
			r = take_from_caller(l, plan, &glob);
	}
	return r;
}

static bool list_has(const struct env_list *l, const char *name)
{
	for (size_t i = 0; i < l->count; i++)
		if (is_named(&l->entries[i], name, strlen(name)))
			return true;
	return false;
}

/* Whether the policy decided about @name: some line set it, or an `unsetenv` line names it. */
static bool has_own(const struct env_list *l, const struct policy *policy, const char *name)
{
	if (list_has(l, name))
		return true;
	for (size_t i = 0; i < policy->env_count; i++)
		if (policy->envs[i].unset && !strcmp(policy->envs[i].name, name))
			return true;
	return false;
}

/*
 * Set carrel's own variables, over everything else: what runs inside must be able to trust them. A
 * policy that sets them was refused when it was read (policy_value.c).
 */
static int apply_own(struct env_list *l, const struct plan *plan)
{
	const struct facts *facts = plan->facts;
	const struct policy *policy = plan->policy;
	const char *scratch = facts->scratch_dir;
	const char *results = arena_join(l->arena, facts->session_dir, '/', "tool-results");
	const char *tmp = arena_join(l->arena, facts->session_dir, '/', "scratch/tmp");

	if (!results || !tmp)
		return env_full(l, NULL);
	const char *const own[][2] = {
		{ "CARREL_SESSION", facts->session_name + strlen("carrel-") },
		{ "CARREL_WORKSPACE", facts->workspace },
		{ "CARREL_SCRATCH", scratch },
		{ "CARREL_TOOL_RESULTS", results },
		{ "TMPDIR", has_own(l, policy, "TMPDIR") ? NULL : tmp },
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

/*
 * Package managers try again when a name cannot be resolved: npm for 70 s, pip for 9 s. Without a
 * network that is in vain. With `net allow` a later try may find the name: npm does try again, but
 * soon.
 */
static int set_retries(struct env_list *l, const struct plan *plan)
{
	static const struct {
		enum net_mode net;
		const char *with; /* only if this is set: the policy cares for that program */
		const char *name, *value;
	} all[] = {
		{ NET_NONE, "npm_config_cache", "npm_config_fetch_retries", "0" },
		{ NET_NONE, "PIP_CACHE_DIR", "PIP_RETRIES", "0" },
		{ NET_NONE, "CARGO_HOME", "CARGO_NET_RETRY", "0" },
		{ NET_ALLOW, "npm_config_cache", "npm_config_fetch_retry_mintimeout", "1000" },
		{ NET_ALLOW, "npm_config_cache", "npm_config_fetch_retry_maxtimeout", "4000" },
	};
	int r = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && r >= 0; i++)
		if (plan->policy->net == all[i].net && list_has(l, all[i].with) &&
			!has_own(l, plan->policy, all[i].name))
			r = list_set(l, all[i].name, all[i].value);
	return r;
}

/*
 * The working directory: as asked; else the caller's if it is in the workspace; else the workspace.
 */
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

static int fill_list(struct env_list *l, const struct plan *plan)
{
	int r = look_at_caller(l, plan->facts->environ);

	if (r < 0)
		return r;
	r = apply_rules(l, plan);
	if (r < 0)
		return r;
	r = set_retries(l, plan);
	return r < 0 ? r : apply_own(l, plan);
}

int plan_environment(struct plan *plan, struct error *e)
{
	struct env_list l = { .arena = plan->arena, .e = e };

	choose_cwd(plan);
	int r = fill_list(&l, plan);
	if (r < 0)
		return r;
	const char **envp = arena_array(l.arena, l.count + 1, sizeof(*envp));
	if (!envp)
		return env_full(&l, NULL);
	for (size_t i = 0; i < l.count; i++)
		envp[i] = l.entries[i].text;
	plan->envp = envp;
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

/* The variables that apply_own() set: they override every line of the policy. */
static bool is_own(const struct plan *plan, const char *entry, size_t length)
{
	if (policy_own_variable(entry, length))
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
	const struct env_entry named = { entry, length };

	if (is_own(plan, entry, length))
		return NULL;
	for (size_t i = policy->env_count; i > 0; i--) {
		const struct env_rule *rule = &policy->envs[i - 1];
		const struct env_glob glob = glob_of(rule);

		if (rule->unset || !glob_matches(&glob, &named))
			continue;
		if (rule->value)
			return rule;
		for (size_t j = 0; caller && caller[j]; j++)
			if (same_name(caller[j], entry, length))
				return rule;
	}
	return NULL;
}

/*
 * prepare.c - see prepare.h.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#include "host/launch/prepare.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/facts/facts.h"
#include "host/facts/facts_split.h"
#include "host/facts/resolve.h"
#include "host/load/caches.h"
#include "host/load/filter_cache.h"
#include "host/load/policy_file.h"
#include "host/machine/container.h"
#include "host/machine/refusal.h"
#include "host/promote/promote_guard.h"
#include "host/report/verbose.h"
#include "host/session/session.h"
#include "host/session/state_place.h"
#include "plan/embedded.h"
#include "plan/path.h"
#include "plan/plan_build.h"

enum {
	ARENA_SIZE = 64 << 20,
	REPORT_ARENA_SIZE = 1 << 20
}; /* address space; pages are taken as they are touched */

static int add_environment(struct prepared *p, const char *const *environment,
	const struct policy_resolver *res, struct error *e)
{
	const char *keep = facts_env(environment, "CARREL_KEEP");

	if (!keep || !strcmp(keep, "") || !strcmp(keep, "false"))
		return 0;
	if (strcmp(keep, "true") != 0)
		return error_set(e, ERROR_USAGE, "options", 0, keep,
			"CARREL_KEEP is neither true nor false");
	return policy_add_setting(&p->policy, "CARREL_KEEP", "keep", NULL, res, e);
}

/* The workspace is untrusted: a file in it is never a policy, however it is named. */
static int check_loaded(
	const struct policy_loader *l, const struct facts *facts, struct error *e)
{
	for (size_t i = 0; i < l->count; i++)
		if (path_below(facts->workspace, l->loaded[i])) {
			int r = error_set(e, ERROR_POLICY, "policy", 0, l->loaded[i],
				"a file in the workspace is never read as policy");
			error_hint(
				e, "the tools can write it; keep it outside of the workspace");
			return r;
		}
	return 0;
}

/*
 * For PREPARE_MERGED: where the workspace would be, whether there is one or not. A user may ask for
 * a policy in the home as well, which is refused as a workspace: the user's own policy lies there,
 * and nothing is checked.
 */
static int place_workspace(
	struct prepared *p, const struct policy_resolver *res, struct error *e)
{
	const char *value = p->policy.workspace.value;
	const char *requested = value && strcmp(value, WORKSPACE_GIT) != 0 ? value : res->cwd;
	const char *home = res->names->home;

	p->facts.workspace =
		requested ? arena_copy(&p->arena, requested, strlen(requested)) : NULL;
	if (!p->facts.workspace || (home && path_below(p->facts.workspace, home)))
		return 0;
	return check_loaded(res->context, &p->facts, e);
}

/* With -c LINE a shell and the line are in front of what follows. */
static int copy_command(struct prepared *p, int argc, const char *const *argv,
	const struct policy_verb_flag *flags, size_t flag_count, struct error *e)
{
	const char *shell[] = { "/bin/sh", "-c", NULL };
	size_t rest = argc > p->next ? (size_t)(argc - p->next) : 0, extra = 0;

	for (size_t i = 0; i < flag_count; i++)
		if (flags[i].letter == 'c' && flags[i].given) {
			shell[2] = flags[i].value;
			extra = 3;
		}
	/* One word in front stays free, for "/bin/sh": payload.c runs a script without #! by it. */
	const char **copy = arena_array(&p->arena, rest + extra + 2, sizeof(*copy));

	for (size_t i = 0; copy && i < rest + extra; i++) {
		const char *word = i < extra ? shell[i] : argv[p->next + (int)(i - extra)];

		copy[i + 1] = arena_copy(&p->arena, word, strlen(word));
		if (!copy[i + 1])
			copy = NULL;
	}
	if (!copy)
		return error_set(e, ERROR_LIMIT, "options", ERROR_OWN(ENOMEM), NULL,
			"the command is too long");
	copy[0] = "/bin/sh";
	p->argv = copy + 1;
	return 0;
}

/* A sweep believes the records in all of these places, and a later sweep may run in another
 * environment: tools must not write any of them, also where this launch uses another one. */
static int protect_records(struct prepared *p, const char *state_dir,
	const struct policy_names *names, const char *const *environment, struct error *e)
{
	const char *home = facts_env(environment, "HOME");
	const char *account = names->home == home ? names->account_home : names->home;
	char path[STATE_PATH_MAX];
	for (unsigned n = 0; n < STATE_PLACES; n++) {
		int r = n == STATE_IN_ACCOUNT ? state_place_in_home(account, path)
					      : state_place_path(environment, n, path);

		if (r < 0 && error_is_own(-r))
			return error_set(e, ERROR_STATE, "options", -r, NULL,
				"cannot find the places where records may lie");
		if (r < 0 || !strcmp(path, state_dir))
			continue;
		const struct path_rule rule = {
			.kind = PATH_PROTECT,
			.optional = true,
			.records = true,
			.path = arena_copy(&p->arena, path, strlen(path)),
			.source = { .layer = LAYER_DEFAULT, .file = "records" },
		};
		if (!rule.path || policy_add_path(&p->policy, &rule) < 0)
			return error_no_memory(e, "options");
	}
	return 0;
}

const char *prepare_filter(const struct policy *policy)
{
	const char *name = policy->syscalls.value ? policy->syscalls.value : "default";

	/* What `nested` allows is what the filter of that name lets through. */
	if (policy->nested.on && !strcmp(name, "default"))
		return "nested";
	/* A network is of no use without its sockets: `strict` with a network allows them. */
	return policy->net != NET_NONE && !strcmp(name, "strict") ? EMBEDDED_STRICT_NET_FILTER
								  : name;
}

static int choose_filter(struct prepared *p, const char *const *cache_env,
	const struct embedded_filter **ret, struct error *e)
{
	const struct policy *policy = &p->policy;
	const char *name = prepare_filter(policy);

	if (policy->syscall_rule_count)
		return filter_cache_load(&p->arena, policy, name, cache_env, ret, e);
	*ret = embedded_find_filter(name);
	return *ret ? 0
		    : error_set(e, ERROR_POLICY, "policy", ERROR_OWN(ENOENT), name,
			      "there is no such system-call filter");
}

/*
 * Whether the cache lies in the workspace. A session with another cache could have written there:
 * carrel believes nothing in it and keeps nothing in it.
 */
static bool is_cache_in_workspace(struct prepared *p, const char *cache)
{
	struct resolver res = { .arena = &p->arena };
	struct resolved found;
	/* One that cannot be looked at is as little believed. */
	bool is = cache &&
		(resolve_path(&res, cache, 0, &found) < 0 ||
			path_below(p->facts.workspace, found.path));

	resolve_done(&res);
	return is;
}

static int resolve_and_plan(struct prepared *p, const char *const *cache_env, struct error *e)
{
	const struct embedded_filter *filter;
	/* This comes first: it may make the cache, and what tools can write above the cache is
	 * protected as it is then. */
	int r = choose_filter(p, cache_env, &filter, e);

	if (r < 0)
		return r;
	r = facts_paths(&p->facts, &p->arena, &p->policy, e);
	if (r < 0)
		return r;
	r = p->facts.refused_namespaces ? facts_split(&p->facts, &p->arena, e) : 0;
	if (r < 0)
		return r;
	r = policy_check_facts(&p->policy, &p->facts, e);
	if (r < 0)
		return r;
	r = policy_check_daemons(&p->facts, e);
	if (r < 0)
		return r;
	r = promote_guard_resolve(&p->facts, &p->arena, &p->policy, e);
	if (r < 0)
		return r;
	p->facts.saves_outputs = p->live || p->policy.output_budget.set;
	r = plan_build(&p->plan, &p->arena, &p->policy, &p->facts, p->argv, filter->code,
		filter->count, e);
	return r < 0 ? r : promote_guard_foresee(&p->plan, &p->arena, e);
}

/* @cache_env: where the cache of compiled filters is; NULL: none is looked at or written. */
static int make_plan(struct prepared *p, const char *const *cache_env, struct error *e)
{
	int r = resolve_and_plan(p, cache_env, e);

	/* In a container an entrypoint fails here first: the root there has no capability to spare. */
	if (r < 0 && p->facts.uid == 0 && e && e->code == ERROR_UNAVAILABLE &&
		!p->policy.degraded.on && !p->policy.require_count)
		container_hint(CONTAINER_UID, p->live, e);
	if (r < 0)
		return r;
	p->plan.shell_argv = p->argv - 1;
	return 0;
}

static int read_layers(struct prepared *p, int argc, const char *const *argv, int first,
	const char *const *environment, const struct policy_resolver *res,
	struct policy_verb_flag *flags, size_t flag_count, struct error *e)
{
	int r = policy_add_arguments(
		&p->policy, argc, argv, first, res, flags, flag_count, &p->next, e);

	if (r > 0)
		p->help = true;
	if (r != 0)
		return r;
	r = add_environment(p, environment, res, e);
	if (r < 0)
		return r;
	r = policy_file_add_layer(&p->policy, LAYER_SYSTEM, POLICY_FILE_SYSTEM, res, e);
	if (r < 0)
		return r;
	if (res->names->xdg_config_home) {
		const char *path = arena_join(
			&p->arena, res->names->xdg_config_home, '/', "carrel/policy");

		r = path ? policy_file_add_layer(&p->policy, LAYER_USER, path, res, e)
			 : error_no_memory(e, "options");
	}
	if (r < 0)
		return r;
	if (p->lines)
		r = policy_add_text(
			&p->policy, LAYER_FILE, "session", p->lines, strlen(p->lines), res, e);
	if (r < 0)
		return r;
	return policy_finish(&p->policy, "agent", res, e);
}

static int hash_part(void *context, const void *data, size_t size)
{
	sha256_update(context, data, size);
	return 0;
}

/* The digest is taken before names are put in: the same policy has the same digest in every
 * session. */
static void digest_policy(struct prepared *p)
{
	struct sha256 hash;

	if (!p->policy.report.value)
		return;
	sha256_init(&hash);
	if (policy_print(&p->policy, false, hash_part, &hash) == 0)
		sha256_final(&hash, p->policy_digest);
}

static struct identity unprivileged(const struct identity *id, const char *why)
{
	return (struct identity){ .uid = id->uid,
		.gid = id->gid,
		.kernel_uid = id->uid,
		.kernel_gid = id->gid,
		.unprivileged_why = why };
}

/* Carrel looks for refused namespaces only where the policy could do without them. */
static int know_caller(struct prepared *p, const struct identity *identity,
	const char *state_dir, const char *const *environment, struct error *e)
{
	struct refusal refused = { 0 };
	struct identity id;
	int r = 0;

	if (identity)
		id = *identity;
	else
		r = identity_choose(&id, e);
	if (r < 0)
		return r;
	if (p->policy.degraded.on) {
		/* A privileged session shows the workspace through an idmapped mount. */
		if (id.privileged && container_is_rootless())
			id = unprivileged(
				&id, "this root is not the machine's: it may not idmap mounts");
		r = refusal_find(&refused, &p->arena, &id, e);
	}
	if (r < 0)
		return r;
	if (refused.namespaces && id.privileged)
		id = unprivileged(&id, "the machine refuses namespaces");
	r = facts_caller(&p->facts, &p->arena, &p->policy, &id, state_dir, environment, e);
	if (r < 0)
		return r;
	p->facts.refused_namespaces = refused.namespaces;
	p->facts.refused_proc = refused.proc;
	p->facts.refused_keyring = refused.keyring;
	return 0;
}

/*
 * The state directory is found once, before the facts and the plan that covers it, so that the
 * directory of records and the covered one are the same. @path: empty where there is none yet and
 * none is made.
 */
static int choose_state_dir(struct prepared *p, bool dry, char path[STATE_PATH_MAX],
	const char *const *environment, struct error *e)
{
	struct state_place place;

	if (!dry) {
		p->records = session_open_records(environment, path, e);
		return p->records < 0 ? p->records : 0;
	}
	int r = state_place_open(&place, environment, false, e);
	if (r < 0)
		return r;
	memcpy(path, place.dir < 0 ? "" : place.path, place.dir < 0 ? 1 : STATE_PATH_MAX);
	state_place_close(&place);
	return 0;
}

int prepare_report(struct prepared *p, struct report_file *ret, struct error *e)
{
	struct toolplace place;
	struct arena arena; /* the plan's is sealed */
	int r = arena_init(&arena, REPORT_ARENA_SIZE);

	if (r < 0)
		return error_no_memory(e, "options");
	r = toolplace_of(&place, &arena, &p->facts);
	r = r < 0 ? error_no_memory(e, "options")
		  : report_open(p->policy.report.value, &place, ret, e);
	arena_free(&arena);
	return r;
}

int prepare_begin(struct prepared **ret, struct error *e)
{
	struct arena arena;
	int r = arena_init_shared(&arena, ARENA_SIZE);
	struct prepared *p = r < 0 ? NULL : arena_alloc(&arena, sizeof(*p));

	if (!p)
		return error_no_memory(e, "options");
	p->arena = arena;
	p->records = -1;
	*ret = p;
	return 0;
}

/* Find out whose session it is; then replace the names in the policy by what they are for that caller. */
static int expand_for_caller(struct prepared *p, const struct identity *identity, bool dry,
	const struct policy_loader *loader, struct policy_names *names,
	const char *const *environment, struct error *e)
{
	char state_dir[STATE_PATH_MAX];
	int r = choose_state_dir(p, dry, state_dir, environment, e);

	if (r < 0)
		return r;
	r = know_caller(p, identity, state_dir[0] ? state_dir : NULL, environment, e);
	if (r < 0)
		return r;
	r = check_loaded(loader, &p->facts, e);
	if (r < 0)
		return r;
	r = facts_names(names, &p->arena, &p->facts, environment, e);
	if (r < 0)
		return r;
	r = policy_expand(&p->policy, names, e);
	return r < 0 ? r : protect_records(p, state_dir, names, environment, e);
}

int prepare_with(struct prepared *p, const struct identity *identity, enum prepare_until until,
	int argc, const char *const *argv, int first, const char *const *environment,
	struct policy_verb_flag *flags, size_t flag_count, struct error *e)
{
	struct policy_loader loader = { .arena = &p->arena };
	struct policy_names names;
	const struct policy_resolver res = {
		.cwd = facts_cwd(&p->arena),
		.pwd = facts_env(environment, "PWD"),
		.names = &names,
		.texts = embedded_texts,
		.text_count = embedded_text_count,
		.profiles = embedded_profiles,
		.profile_count = embedded_profile_count,
		.filters = embedded_filters,
		.filter_count = embedded_filter_count,
		.load = policy_file_load,
		.load_profile = policy_file_load_profile,
		.load_preset = policy_file_load_preset,
		.load_set = policy_file_load_set,
		.context = &loader,
	};

	policy_init(&p->policy, &p->arena);
	/* A page of shared memory costs half as much again. But a session that rests can give back no other. */
	if (!p->live) {
		if (arena_init(&p->local, ARENA_SIZE) < 0)
			return error_no_memory(e, "options");
		p->policy.local = &p->local;
	}
	int r = facts_names(&names, &p->arena, NULL, environment, e);
	if (r >= 0 && names.xdg_config_home) {
		loader.profiles =
			arena_join(&p->arena, names.xdg_config_home, '/', "carrel/profiles");
		loader.presets =
			arena_join(&p->arena, names.xdg_config_home, '/', "carrel/with");
		loader.sets = arena_join(&p->arena, names.xdg_config_home, '/', "carrel/sets");
	}
	if (r >= 0)
		r = read_layers(p, argc, argv, first, environment, &res, flags, flag_count, e);
	if (r != 0)
		return r < 0 ? r : 0;
	if (p->policy.passed_over && !p->policy.quiet.on)
		verbose_passed_over(p->policy.passed_over);
	digest_policy(p);
	if (until == PREPARE_MERGED)
		return place_workspace(p, &res, e);
	r = copy_command(p, argc, argv, flags, flag_count, e);
	if (r < 0)
		return r;
	r = expand_for_caller(
		p, identity, until == PREPARE_DRY, &loader, &names, environment, e);
	if (r < 0)
		return r;
	if (until != PREPARE_DRY)
		r = caches_make(&p->policy, names.xdg_cache_home, e);
	if (r < 0)
		return r;
	if (until == PREPARE_DRY || is_cache_in_workspace(p, names.xdg_cache_home))
		return make_plan(p, NULL, e);
	return make_plan(p, environment, e);
}

int prepare(struct prepared *ret, enum prepare_until until, int argc, const char *const *argv,
	int first, const char *const *environment, struct policy_verb_flag *flags,
	size_t flag_count, struct error *e)
{
	*ret = (struct prepared){ .records = -1 };
	int r = arena_init(&ret->arena, ARENA_SIZE);
	return r < 0 ? error_no_memory(e, "options")
		     : prepare_with(ret, NULL, until, argc, argv, first, environment, flags,
			       flag_count, e);
}

void prepare_free(struct prepared *p)
{
	struct arena arena = p->arena,
		     local = p->local; /* the first may hold *p itself, sealed */

	if (p->records >= 0)
		(void)close(p->records);
	arena_free(&local);
	arena_free(&arena);
}

/*
 * policy.c - from lines to an effective policy: choosing the profile, merging, expanding.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#include "plan/policy.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "plan/embedded.h"
#include "plan/policy_line.h"

#define GRACE_DEFAULT_MS 5000
#define LIFETIME_DEFAULT_MS (UINT64_C(24) * 3600 * 1000)
#define IDLE_DEFAULT_MS (UINT64_C(2) * 3600 * 1000)

void policy_init(struct policy *p, struct arena *arena)
{
	*p = (struct policy){
		.workspace_mode = WORKSPACE_DIRECT,
		.tty = TTY_AUTO,
		.net = NET_NONE,
		.grace_ms = { .value = GRACE_DEFAULT_MS, .set = true },
		.lifetime_ms = { .value = LIFETIME_DEFAULT_MS, .set = true },
		.idle_timeout_ms = { .value = IDLE_DEFAULT_MS, .set = true },
		.syscalls = { .value = "default" },
		.tls_name = { .on = true },
		.arena = arena,
		.local = arena,
	};
}

const char *policy_path_setting(enum path_kind kind)
{
	switch (kind) {
	case PATH_READ:
		return "read";
	case PATH_WRITE:
		return "write";
	case PATH_HIDE:
		return "hide";
	case PATH_PROTECT:
		return "protect";
	case PATH_BIND_RO:
	case PATH_BIND_RW:
		return "bind";
	case PATH_TMPFS:
		return "tmpfs";
	case PATH_DEV:
		return "dev";
	}
	return "";
}

/* --- choosing the profile --------------------------------------------------------------------- */

/* The `profile` line of the strongest layer up to @top, or NULL. */
static const struct policy_line *chosen_profile(const struct policy *p, enum layer top)
{
	const struct policy_line *chosen = NULL;

	for (size_t i = 0; i < p->line_count; i++) {
		const struct policy_line *l = &p->lines[i];

		if (l->id == SETTING_PROFILE && l->source.layer <= top &&
			(!chosen || l->source.layer >= chosen->source.layer))
			chosen = l;
	}
	return chosen;
}

/*
 * Take the lines that the build has read: reading the text costs more than all the rest of the
 * policy.
 */
static bool take_shipped(struct policy *p, const char *name, const struct policy_resolver *r)
{
	for (size_t i = 0; i < r->profile_count; i++) {
		const struct embedded_profile *read = &r->profiles[i];

		if (strcmp(read->name, name) != 0 ||
			p->line_count - p->host_count + read->count > POLICY_RULE_MAX)
			continue;
		p->shipped = read->lines;
		p->shipped_count = read->count;
		return true;
	}
	return false;
}

static int add_profile(
	struct policy *p, const char *name, const struct policy_resolver *r, struct error *e)
{
	const struct embedded_text *text = policy_find_text(r, name);

	if (!text)
		return error_set(
			e, ERROR_POLICY, "policy", ERROR_OWN(ENOENT), name, "no such profile");
	if (take_shipped(p, name, r))
		return 0;
	const char *shown = arena_format(p->arena, "profile:%s", name);
	if (!shown)
		return policy_full(e);
	return policy_add_text(p, LAYER_PROFILE, shown, text->text, text->size, r, e);
}

/*
 * Read a profile of the user's own. Its lines belong to the user's layer, behind those of the
 * user's policy, so that locks hold against both. *@base: the shipped profile that it starts from.
 */
static int add_own_profile(struct policy *p, const char *name, const char *default_profile,
	const struct policy_resolver *r, const char **base, struct error *e)
{
	struct policy_file file;
	size_t before = p->line_count;
	int result = r->load_profile ? r->load_profile(r->context, name, &file, e) : 0;

	if (result <= 0)
		return result < 0
			? result
			: error_set(e, ERROR_POLICY, "policy", ENOENT, name, "no such profile");
	result = policy_add_text(p, LAYER_USER, file.path, file.text, file.size, r, e);
	if (result < 0)
		return result;
	*base = default_profile;
	for (size_t i = before; i < p->line_count; i++)
		if (p->lines[i].id == SETTING_PROFILE)
			*base = p->lines[i].text;
	if (policy_find_text(r, *base))
		return 0;
	result = error_set(e, ERROR_POLICY, "policy", 0, file.path,
		"a profile of one's own starts from a shipped one, not from '%.40s'", *base);
	error_hint(e, "take over what it holds with `policy FILE`");
	return result;
}

/*
 * Build what the locks compare with: the profile and the system policy, as if nobody had said
 * anything after them. If a later layer chose another profile, the one that would have been used is
 * read too.
 */
static int build_locked(struct policy *p, const char *default_profile,
	const struct policy_resolver *r, struct error *e)
{
	const struct policy_line *line = chosen_profile(p, LAYER_SYSTEM);
	const char *name = line ? line->text : default_profile;
	struct policy *locked = arena_array(p->arena, 2, sizeof(*locked));

	if (!locked)
		return policy_full(e);
	policy_init(&locked[0], p->arena);
	locked->profile.value = name;
	if (!strcmp(name, p->profile.value)) {
		p->locked = &locked[0];
		return policy_merge(locked, p, NULL, LAYER_SYSTEM) < 0 ? policy_full(e) : 0;
	}
	struct policy *base = &locked[1], system = *p;
	policy_init(base, p->arena);
	int result = add_profile(base, name, r, e);
	if (result < 0)
		return result;
	/* Only the system's own lines are taken from p: its profile is not the session's. */
	system.lines = arena_array(p->arena, p->line_count, sizeof(*system.lines));
	system.line_count = system.shipped_count = 0;
	if (!system.lines)
		return policy_full(e);
	for (size_t i = 0; i < p->line_count; i++)
		if (p->lines[i].source.layer == LAYER_SYSTEM)
			system.lines[system.line_count++] = p->lines[i];
	p->locked = &locked[0];
	return policy_merge(locked, base, &system, LAYER_SYSTEM) < 0 ? policy_full(e) : 0;
}

/* --- what contradicts across lines ------------------------------------------------------------ */

static int fail_pair(const struct source *a, const char *a_name, const struct source *b,
	const char *b_name, const char *why, struct error *e)
{
	char on[512], other[256];

	policy_format_source(a, a_name, on, sizeof(on));
	policy_format_source(b, b_name, other, sizeof(other));
	int r = error_set(e, ERROR_POLICY, "policy", 0, on, "'%s' contradicts '%s': %s", a_name,
		b_name, why);
	error_hint(e, "'%s' is given at %s", b_name, other);
	return r;
}

/*
 * keep and keep-for say the same thing differently: the later layer wins; in one file or on one
 * command line together they are an error; from two files of one layer the bounded one wins.
 */
static int check_keep(struct policy *p, struct error *e)
{
	struct flag_value *keep = &p->keep;
	struct number_value *keep_for = &p->keep_for_ms;

	if (keep_for->set && keep->source.layer > keep_for->source.layer) {
		keep_for->set = false;
	} else if (keep_for->set && keep->on) {
		if (keep->source.layer == keep_for->source.layer &&
			keep->source.file == keep_for->source.file)
			return fail_pair(&keep_for->source, "keep-for", &keep->source, "keep",
				"one is for a time, the other until it is removed", e);
		keep->on = false;
	}
	return 0;
}

/* A terminal is one stream for everything; what is to be counted and cut needs pipes. */
static int check_output(const struct policy *p, struct error *e)
{
	const struct number_value *n =
		p->output_budget.set ? &p->output_budget : &p->output_max;

	if (p->tty != TTY_YES || !n->set)
		return 0;
	return fail_pair(&n->source, p->output_budget.set ? "output-budget" : "output-max",
		&p->tty_source, "tty",
		"the output of a terminal is one stream and cannot be cut", e);
}

/* The later layer wins; both at one place are an error. */
static int check_words(struct policy *p, struct error *e)
{
	struct flag_value *quiet = &p->quiet, *verbose = &p->verbose;

	if (!quiet->on || !verbose->on)
		return 0;
	if (quiet->source.layer == verbose->source.layer)
		return fail_pair(&quiet->source, "quiet", &verbose->source, "verbose",
			"one prints errors alone, the other more than that", e);
	if (quiet->source.layer > verbose->source.layer)
		verbose->on = false;
	else
		quiet->on = false;
	return 0;
}

/* --- expanding -------------------------------------------------------------------------------- */

/* Why a template could not be filled in; @r as template_expand returned it. */
static int fail_expand(struct policy *p, const struct source *source, const char *setting,
	int r, const char *missing, struct error *e)
{
	struct policy_place at = { .p = p, .source = *source, .setting = setting, .e = e };

	if (r == -ENOENT) {
		r = policy_fail(&at, "$%s stands for nothing here", missing);
		/* $WORKSPACE and $SCRATCH are carrel's own. */
		if (strcmp(missing, "WORKSPACE") != 0 && strcmp(missing, "SCRATCH") != 0)
			error_hint(e,
				"it is not set where carrel is started, or is no absolute path");
		return r;
	}
	if (r == -ENAMETOOLONG)
		return policy_fail(&at, "a path of more than %d bytes", PATH_MAX - 1);
	return policy_full(e);
}

static int expand_path(struct policy *p, const char **text, bool glob,
	const struct policy_names *names, const char **ret_missing)
{
	const char *plain;
	int r = template_expand(p, *text, names, true, glob, &plain, ret_missing);

	if (r < 0)
		return r;
	if (r >= PATH_MAX)
		return -ENAMETOOLONG;
	*text = plain;
	return 0;
}

static int expand_text(struct policy *p, struct text_value *v, const char *setting,
	const struct policy_names *names, struct error *e)
{
	const char *missing = NULL;

	if (!v->value)
		return 0;
	int r = expand_path(p, &v->value, false, names, &missing);
	return r < 0 ? fail_expand(p, &v->source, setting, r, missing, e) : 0;
}

/* Expand the settings that are needed before the workspace and the scratch are known. */
static int expand_early(struct policy *p, const struct policy_names *known, struct error *e)
{
	struct policy_names names = known ? *known : (struct policy_names){ 0 };

	names.workspace = names.scratch = NULL;
	int r = expand_text(p, &p->workspace, "workspace", &names, e);
	if (r == 0)
		r = expand_text(p, &p->scratch_base, "scratch-base", &names, e);
	if (r == 0 && p->report.value && strncmp(p->report.value, "fd:", 3) != 0)
		r = expand_text(p, &p->report, "report", &names, e);
	if (r == 0)
		r = expand_text(p, &p->learn, "learn", &names, e);
	if (r == 0 && p->net_log.value && strncmp(p->net_log.value, "fd:", 3) != 0)
		r = expand_text(p, &p->net_log, "net-log", &names, e);
	if (r == 0)
		r = expand_text(p, &p->egress_proxy_login, "egress-proxy-login", &names, e);
	return r;
}

int policy_finish(struct policy *p, const char *default_profile,
	const struct policy_resolver *r, struct error *e)
{
	const struct policy_line *line = chosen_profile(p, LAYER_COMMAND);

	p->profile = (struct text_value){ .value = line ? line->text : default_profile };
	if (line)
		p->profile.source = line->source;
	const char *base = p->profile.value;
	int result = policy_find_text(r, base)
		? 0
		: add_own_profile(p, base, default_profile, r, &base, e);
	if (result >= 0)
		result = add_profile(p, base, r, e);
	if (result < 0)
		return result;
	if (policy_merge(p, p, NULL, LAYER_COMMAND) < 0)
		return policy_full(e);
	result = expand_early(p, r->names, e);
	if (result == 0)
		result = check_keep(p, e);
	if (result == 0)
		result = check_output(p, e);
	if (result >= 0)
		result = check_words(p, e);
	if (result >= 0)
		result = pass_check_count(p->pass_count, "pass-fd", e);
	if (result >= 0)
		result = policy_settle_net(p, e);
	policy_drop_hosts(p);
	if (result < 0 || p->lock_count == 0)
		return result;
	result = build_locked(p, default_profile, r, e);
	if (result >= 0)
		result = policy_settle_net(p->locked, e);
	return result < 0 ? result : expand_early(p->locked, r->names, e);
}

/* 1: expanded, 0: the rule is passed over, negative: an error. */
static int expand_rule(struct policy *p, struct path_rule *rule,
	const struct policy_names *names, struct error *e)
{
	const char *missing = NULL;
	int r = 0;

	if (rule->path)
		r = expand_path(p, &rule->path, rule->glob, names, &missing);
	if (r == 0 && rule->dest)
		r = expand_path(p, &rule->dest, false, names, &missing);
	if (r == -ENOENT && rule->optional)
		return 0;
	if (r < 0)
		return fail_expand(
			p, &rule->source, policy_path_setting(rule->kind), r, missing, e);
	return 1;
}

static int expand_env(struct policy *p, struct env_rule *rule, const struct policy_names *names,
	struct error *e)
{
	const char *missing = NULL;

	if (!rule->value)
		return 0;
	int r = template_expand(p, rule->value, names, false, false, &rule->value, &missing);
	return r < 0 ? fail_expand(p, &rule->source, "env", r, missing, e) : 0;
}

static int expand_promotes(struct policy *p, struct promote_rule *rules, size_t count,
	const struct policy_names *names, struct error *e)
{
	for (size_t i = 0; i < count; i++) {
		const char *missing = NULL;
		int r = expand_path(p, &rules[i].dir, false, names, &missing);

		if (r == 0 && rules[i].pattern)
			r = expand_path(p, &rules[i].pattern, true, names, &missing);
		if (r < 0)
			return fail_expand(p, &rules[i].source,
				rules[i].pattern ? "promote" : "promote-to", r, missing, e);
	}
	return 0;
}

static int expand_all(struct policy *p, const struct policy_names *names, struct error *e)
{
	size_t kept = 0;

	if (policy_hide_elsewhere(p, names) < 0)
		return policy_full(e);
	for (size_t i = 0; i < p->path_count; i++) {
		int r = expand_rule(p, &p->paths[i], names, e);

		if (r < 0)
			return r;
		if (r > 0)
			p->paths[kept++] = p->paths[i];
	}
	p->path_count = kept;
	for (size_t i = 0; i < p->env_count; i++) {
		int r = expand_env(p, &p->envs[i], names, e);

		if (r < 0)
			return r;
	}
	p->expanded = true;
	int r = expand_promotes(p, p->promotes, p->promote_count, names, e);
	if (r == 0)
		r = expand_promotes(p, p->promote_tos, p->promote_to_count, names, e);
	return r < 0 ? r : expand_text(p, &p->cwd, "cwd", names, e);
}

int policy_expand(struct policy *p, const struct policy_names *names, struct error *e)
{
	int r = expand_all(p, names, e);

	if (r < 0 || !p->locked)
		return r;
	r = expand_all(p->locked, names, e);
	if (r >= 0)
		r = policy_judge(p, e);
	policy_drop_hosts(p); /* a lock may have put `net` back */
	return r;
}

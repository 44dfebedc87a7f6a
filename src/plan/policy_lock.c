/*
 * policy_lock.c - locks of the system policy: nothing later loosens what they name.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 *
 * The effective policy is compared with the one of profile and system policy alone (p->locked).
 * What a later layer loosened is an error that names both places. What is looser only because
 * another profile was chosen is put back where that is one value (a limit, a flag, a hidden path),
 * and an error where it is a rule of that profile.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/glob.h"
#include "plan/policy_lock.h"

int policy_fail_locked(
	const struct policy_judge *j, const struct source *source, const char *setting)
{
	char on[512], place[256];

	policy_format_source(source, setting, on, sizeof(on));
	policy_format_source(&j->lock->source, NULL, place, sizeof(place));
	int r = error_set(j->e, ERROR_LOCKED, "policy", ERROR_OWN(EPERM), on,
		"'%s' loosens '%s', which the system policy locks", setting, j->lock->word);
	error_hint(j->e, "locked at %s", place);
	return r;
}

/*
 * Whether it was said after the system policy: not by it, and not by the profile that it stands on.
 */
bool policy_is_later(const struct policy_judge *j, const struct source *source)
{
	if (source->layer > LAYER_SYSTEM)
		return true;
	/* another profile than the locked one: its rules came with the choice */
	return source->layer == LAYER_PROFILE &&
		strcmp(j->p->profile.value, j->locked->profile.value) != 0;
}

bool policy_same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* --- single values ---------------------------------------------------------------------------- */

static bool number_looser(const struct number_value *now, const struct number_value *locked,
	enum setting_lock lock)
{
	if (!now->set)
		return locked->set && lock == LOCK_SMALLER;
	if (!locked->set)
		return lock == LOCK_UNSET_LEAST;
	return now->value > locked->value;
}

static int judge_number(const struct policy_judge *j, const struct setting *s)
{
	struct number_value *now = (void *)((char *)j->p + s->member);
	const struct number_value *locked = (const void *)((const char *)j->locked + s->member);

	if (!number_looser(now, locked, s->lock))
		return 0;
	if (now->source.layer > LAYER_SYSTEM)
		return policy_fail_locked(j, &now->source, s->name);
	*now = *locked;
	return 0;
}

static int judge_flag(const struct policy_judge *j, const struct setting *s)
{
	struct flag_value *now = (void *)((char *)j->p + s->member);
	const struct flag_value *locked = (const void *)((const char *)j->locked + s->member);

	if (now->on == locked->on || (s->lock == LOCK_OFF && !now->on) ||
		(s->lock == LOCK_ON && now->on))
		return 0;
	if (now->source.layer > LAYER_SYSTEM)
		return policy_fail_locked(j, &now->source, s->name);
	*now = *locked;
	return 0;
}

static int judge_text(const struct policy_judge *j, const struct setting *s)
{
	struct text_value *now = (void *)((char *)j->p + s->member);
	const struct text_value *locked = (const void *)((const char *)j->locked + s->member);

	if (policy_same_text(now->value, locked->value))
		return 0;
	if (now->source.layer > LAYER_SYSTEM)
		return policy_fail_locked(j, &now->source, s->name);
	*now = *locked;
	return 0;
}

static int judge_profile(const struct policy_judge *j)
{
	if (policy_same_text(j->p->profile.value, j->locked->profile.value))
		return 0;
	return policy_fail_locked(j, &j->p->profile.source, "profile");
}

/* How free a value is; larger is looser. */
static int judge_enum(const struct policy_judge *j, const struct setting *s)
{
	static const int freedom[] = {
		[WORKSPACE_RO] = 0,
		[WORKSPACE_OVERLAY] = 1,
		[WORKSPACE_DIRECT] = 2,
	};
	struct policy *p = j->p;
	const struct policy *locked = j->locked;

	switch (s->id) {
	case SETTING_WORKSPACE_MODE:
		if (freedom[p->workspace_mode] <= freedom[locked->workspace_mode])
			return 0;
		if (p->workspace_mode_source.layer > LAYER_SYSTEM)
			return policy_fail_locked(j, &p->workspace_mode_source, s->name);
		p->workspace_mode = locked->workspace_mode;
		p->workspace_mode_source = locked->workspace_mode_source;
		return 0;
	case SETTING_NET:
		if (p->net <= locked->net)
			return 0;
		if (p->net_source.layer > LAYER_SYSTEM)
			return policy_fail_locked(
				j, &p->net_source, p->net_implied ? "allow" : s->name);
		p->net = locked->net;
		p->net_source = locked->net_source;
		p->net_implied = locked->net_implied;
		return 0;
	default:
		if (p->tty == locked->tty)
			return 0;
		if (p->tty_source.layer > LAYER_SYSTEM)
			return policy_fail_locked(j, &p->tty_source, s->name);
		p->tty = locked->tty;
		p->tty_source = locked->tty_source;
		return 0;
	}
}

/* --- lists ------------------------------------------------------------------------------------ */

static bool has_env(const struct policy *p, const struct env_rule *rule)
{
	for (size_t i = 0; i < p->env_count; i++)
		if (p->envs[i].unset == rule->unset && !strcmp(p->envs[i].name, rule->name) &&
			policy_same_text(p->envs[i].value, rule->value))
			return true;
	return false;
}

static bool is_unset(const struct policy *locked, const char *name)
{
	for (size_t i = 0; i < locked->env_count; i++)
		if (locked->envs[i].unset &&
			(glob_star_fits(locked->envs[i].name, name, strlen(name)) ||
				glob_star_fits(name, locked->envs[i].name,
					strlen(locked->envs[i].name))))
			return true;
	return false;
}

static int judge_scratch_env(const struct policy_judge *j)
{
	const struct policy *p = j->p, *locked = j->locked;

	for (size_t i = 0; i < p->scratch_env_count; i++) {
		bool known = !policy_is_later(j, &p->scratch_envs[i].source);

		for (size_t k = 0; k < locked->scratch_env_count && !known; k++)
			known = !strcmp(p->scratch_envs[i].word, locked->scratch_envs[k].word);
		if (!known)
			return policy_fail_locked(j, &p->scratch_envs[i].source, "scratch-env");
	}
	return 0;
}

static int judge_env(const struct policy_judge *j, const struct setting *s)
{
	for (size_t i = 0; i < j->p->env_count; i++) {
		const struct env_rule *rule = &j->p->envs[i];

		if (rule->unset || !policy_is_later(j, &rule->source))
			continue;
		if (s->id == SETTING_ENV ? !has_env(j->locked, rule)
					 : is_unset(j->locked, rule->name))
			return policy_fail_locked(j, &rule->source, "env");
	}
	if (s->id == SETTING_ENV)
		return judge_scratch_env(j);
	for (size_t i = 0; i < j->p->scratch_env_count; i++) {
		const struct word_rule *rule = &j->p->scratch_envs[i];

		if (policy_is_later(j, &rule->source) && is_unset(j->locked, rule->word))
			return policy_fail_locked(j, &rule->source, "scratch-env");
	}
	return 0;
}

static int judge_promotes(const struct policy_judge *j, const char *name,
	const struct promote_rule *now, size_t now_count, const struct promote_rule *locked,
	size_t locked_count)
{
	for (size_t i = 0; i < now_count; i++) {
		bool known = !policy_is_later(j, &now[i].source);

		for (size_t k = 0; k < locked_count && !known; k++)
			known = !strcmp(now[i].dir, locked[k].dir) &&
				policy_same_text(now[i].pattern, locked[k].pattern);
		if (!known)
			return policy_fail_locked(j, &now[i].source, name);
	}
	return 0;
}

static int judge_passes(const struct policy_judge *j)
{
	const struct policy *p = j->p, *locked = j->locked;

	for (size_t i = 0; i < p->pass_count; i++) {
		bool known = !policy_is_later(j, &p->passes[i].source);

		for (size_t k = 0; k < locked->pass_count && !known; k++)
			known = p->passes[i].pair.from == locked->passes[k].pair.from &&
				p->passes[i].pair.to == locked->passes[k].pair.to;
		if (!known)
			return policy_fail_locked(j, &p->passes[i].source, "pass-fd");
	}
	return 0;
}

static int judge_syscalls(const struct policy_judge *j)
{
	for (size_t i = 0; i < j->p->syscall_rule_count; i++) {
		const struct syscall_rule *rule = &j->p->syscall_rules[i];

		if (policy_is_later(j, &rule->source) && !strncmp(rule->text, "allow ", 6))
			return policy_fail_locked(j, &rule->source, "syscall");
	}
	return 0;
}

static bool has_host(const struct policy *locked, const struct net_rule *rule)
{
	for (size_t i = 0; i < locked->net_rule_count; i++)
		if (netrule_same(locked->net_rules[i].rule, rule->rule))
			return true;
	return false;
}

/* `net host` reaches what no line allows, and what one denies. */
static int judge_hosts(const struct policy_judge *j, const struct setting *s)
{
	const struct policy *p = j->p;
	bool host = p->net == NET_HOST && j->locked->net != NET_HOST;

	if (host && policy_is_later(j, &p->net_source) &&
		(s->id == SETTING_ALLOW || j->locked->net_rule_count > 0))
		return policy_fail_locked(j, &p->net_source, "net");
	for (size_t i = 0; i < p->net_rule_count && s->id == SETTING_ALLOW; i++)
		if (!p->net_rules[i].rule->deny &&
			policy_is_later(j, &p->net_rules[i].source) &&
			!has_host(j->locked, &p->net_rules[i]))
			return policy_fail_locked(j, &p->net_rules[i].source, "allow");
	return 0;
}

static int judge_publishes(const struct policy_judge *j)
{
	for (size_t i = 0; i < j->p->publish_count; i++) {
		const struct publish_rule *rule = &j->p->publishes[i];
		bool known = !policy_is_later(j, &rule->source);

		for (size_t k = 0; k < j->locked->publish_count && !known; k++)
			known = !strcmp(rule->text, j->locked->publishes[k].text);
		if (!known)
			return policy_fail_locked(j, &rule->source, "publish");
	}
	return 0;
}

/* Judge the filter's name, and the other settings that decide what passes it. */
static int judge_filter(const struct policy_judge *j, const struct setting *s)
{
	const struct flag_value *nested = &j->p->nested;
	int r = judge_text(j, s);

	if (r < 0)
		return r;
	if (nested->on && !j->locked->nested.on && policy_is_later(j, &nested->source))
		return policy_fail_locked(j, &nested->source, "nested");
	return judge_syscalls(j);
}

/* `policy`, `with`, `cache`: what was included after the system policy. */
static int judge_includes(const struct policy_judge *j, const struct setting *s)
{
	for (size_t i = 0; i < j->p->line_count; i++)
		if (j->p->lines[i].id == s->id && j->p->lines[i].source.layer > LAYER_SYSTEM)
			return policy_fail_locked(j, &j->p->lines[i].source, s->name);
	return 0;
}

static int judge_list(const struct policy_judge *j, const struct setting *s)
{
	switch (s->id) {
	case SETTING_HIDE:
		return policy_judge_shadowed(j, PATH_HIDE);
	case SETTING_PROTECT:
		return policy_judge_shadowed(j, PATH_PROTECT);
	case SETTING_ENV:
	case SETTING_UNSETENV:
		return judge_env(j, s);
	case SETTING_SCRATCH_ENV:
		return judge_scratch_env(j);
	case SETTING_PASS_FD:
		return judge_passes(j);
	case SETTING_PROMOTE:
		return judge_promotes(j, s->name, j->p->promotes, j->p->promote_count,
			j->locked->promotes, j->locked->promote_count);
	case SETTING_PROMOTE_TO:
		return judge_promotes(j, s->name, j->p->promote_tos, j->p->promote_to_count,
			j->locked->promote_tos, j->locked->promote_to_count);
	case SETTING_SYSCALL:
		return judge_syscalls(j);
	case SETTING_POLICY:
	case SETTING_WITH:
	case SETTING_CACHE:
		return judge_includes(j, s);
	case SETTING_ALLOW:
	case SETTING_DENY:
		return judge_hosts(j, s);
	case SETTING_PUBLISH:
		return judge_publishes(j);
	case SETTING_REQUIRE:
		return 0; /* a requirement is never taken back */
	default:
		return policy_judge_paths(j, s);
	}
}

static int judge_setting(const struct policy_judge *j, const struct setting *s)
{
	switch (s->kind) {
	case KIND_FLAG:
		return judge_flag(j, s);
	case KIND_SIZE:
	case KIND_DURATION:
	case KIND_COUNT_NUMBER:
	case KIND_CHARACTERS:
	case KIND_CPUS:
		return judge_number(j, s);
	case KIND_PATH_EARLY:
	case KIND_PATH_LATE:
	case KIND_REPORT:
	case KIND_RESOLVER:
	case KIND_PROXY:
		return judge_text(j, s);
	case KIND_FILTER:
		return judge_filter(j, s);
	case KIND_ENUM:
		return judge_enum(j, s);
	case KIND_PROFILE:
		return judge_profile(j);
	default:
		return judge_list(j, s);
	}
}

int policy_judge(struct policy *p, struct error *e)
{
	for (size_t i = 0; i < p->lock_count; i++) {
		struct policy_judge j = {
			.p = p,
			.locked = p->locked,
			.lock = &p->locks[i],
			.e = e,
		};
		const char *name = p->locks[i].word;
		const struct setting *s = settings_find(name, strlen(name));

		if (!s)
			return -EINVAL;
		int r = judge_setting(&j, s);
		if (r < 0)
			return r;
	}
	return 0;
}

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

#include "plan/plan.h"
#include "plan/policy_line.h"

struct judge {
	struct policy *p;
	const struct policy *locked;
	const struct word_rule *lock; /* the line that is being judged */
	struct error *e;
};

static int fail_locked(const struct judge *j, const struct source *source, const char *setting)
{
	char on[512], place[256];

	policy_format_source(source, setting, on, sizeof(on));
	policy_format_source(&j->lock->source, NULL, place, sizeof(place));
	int r = error_set(j->e, ERROR_LOCKED, "policy", EPERM, on,
		"'%s' loosens '%s', which the system policy locks", setting, j->lock->word);
	error_hint(j->e, "locked at %s", place);
	return r;
}

/* Said after the system policy: not by it, and not by the profile it stands on. */
static bool is_later(const struct judge *j, const struct source *source)
{
	if (source->layer > LAYER_SYSTEM)
		return true;
	/* another profile than the locked one: its rules came with the choice */
	return source->layer == LAYER_PROFILE &&
		strcmp(j->p->profile.value, j->locked->profile.value) != 0;
}

static bool same_text(const char *a, const char *b)
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

static int judge_number(const struct judge *j, const struct setting *s)
{
	struct number_value *now = (void *)((char *)j->p + s->member);
	const struct number_value *locked = (const void *)((const char *)j->locked + s->member);

	if (!number_looser(now, locked, s->lock))
		return 0;
	if (now->source.layer > LAYER_SYSTEM)
		return fail_locked(j, &now->source, s->name);
	*now = *locked;
	return 0;
}

static int judge_flag(const struct judge *j, const struct setting *s)
{
	struct flag_value *now = (void *)((char *)j->p + s->member);
	const struct flag_value *locked = (const void *)((const char *)j->locked + s->member);

	if (now->on == locked->on || (s->lock == LOCK_OFF && !now->on) ||
		(s->lock == LOCK_ON && now->on))
		return 0;
	if (now->source.layer > LAYER_SYSTEM)
		return fail_locked(j, &now->source, s->name);
	*now = *locked;
	return 0;
}

static int judge_text(const struct judge *j, const struct setting *s)
{
	struct text_value *now = (void *)((char *)j->p + s->member);
	const struct text_value *locked = (const void *)((const char *)j->locked + s->member);

	if (same_text(now->value, locked->value))
		return 0;
	if (now->source.layer > LAYER_SYSTEM)
		return fail_locked(j, &now->source, s->name);
	*now = *locked;
	return 0;
}

static int judge_profile(const struct judge *j)
{
	if (same_text(j->p->profile.value, j->locked->profile.value))
		return 0;
	return fail_locked(j, &j->p->profile.source, "profile");
}

/* How free a value is; larger is looser. */
static int judge_enum(const struct judge *j, const struct setting *s)
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
			return fail_locked(j, &p->workspace_mode_source, s->name);
		p->workspace_mode = locked->workspace_mode;
		p->workspace_mode_source = locked->workspace_mode_source;
		return 0;
	case SETTING_NET:
		if (p->net <= locked->net)
			return 0;
		if (p->net_source.layer > LAYER_SYSTEM)
			return fail_locked(j, &p->net_source, s->name);
		p->net = locked->net;
		p->net_source = locked->net_source;
		return 0;
	default:
		if (p->tty == locked->tty)
			return 0;
		if (p->tty_source.layer > LAYER_SYSTEM)
			return fail_locked(j, &p->tty_source, s->name);
		p->tty = locked->tty;
		p->tty_source = locked->tty_source;
		return 0;
	}
}

/* --- lists ------------------------------------------------------------------------------------ */

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

/* Does the bracket expression at *glob hold @c? Moves *glob behind it. */
static bool match_bracket(const char **glob, char c)
{
	const char *g = *glob + 1;
	bool negated = *g == '!' || *g == '^', found = false;
	const char *first = g += negated;

	while (*g && (*g != ']' || g == first)) {
		g += *g == '\\' && g[1];
		char low = *g++, high = low;
		if (g[0] == '-' && g[1] && g[1] != ']') {
			g += g[1] == '\\' && g[2] ? 2 : 1;
			high = *g++;
		}
		found |= (unsigned char)c >= (unsigned char)low &&
			(unsigned char)c <= (unsigned char)high;
	}
	*glob = g + (*g == ']');
	return found != negated;
}

/* One byte of @glob against @c; moves *glob on. '*' is the caller's. */
static bool match_byte(const char **glob, char c)
{
	const char *g = *glob;

	if (*g == '[' && c != '/')
		return match_bracket(glob, c);
	if (*g == '?') {
		*glob = g + 1;
		return c != '/';
	}
	g += *g == '\\' && g[1];
	*glob = g + 1;
	return *g == c;
}

/*
 * @path, or a directory it lies in, is matched by @glob. A '*' does not cross a '/', and what the
 * glob says up to a '/' is settled when that is reached: only the last '*' can be tried again.
 */
static bool is_below_glob(const char *path, const char *glob)
{
	const char *star = NULL, *back = NULL;

	for (;;) {
		if (!*glob && (!*path || *path == '/'))
			return true;
		if (*glob == '*') {
			star = ++glob;
			back = path;
			continue;
		}
		const char *next = glob;
		if (*path && *glob && match_byte(&next, *path)) {
			if (*path == '/')
				star = NULL;
			glob = next;
			path++;
			continue;
		}
		if (!star || !*back || *back == '/')
			return false;
		glob = star;
		path = ++back;
	}
}

static bool is_under_rule(const char *path, const struct path_rule *rule)
{
	return rule->glob ? is_below_glob(path, rule->path) : is_below(path, rule->path);
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
	/* Somewhere below: that the part without a wild card starts like this is enough. */
	return length <= glob_prefix(rule->path) + 1 &&
		!strncmp(rule->path, path, length) &&
		(length == 1 || rule->path[length] == '/');
}

static bool same_rule(const struct path_rule *a, const struct path_rule *b)
{
	return a->kind == b->kind && same_text(a->path, b->path) &&
		same_text(a->dest, b->dest) && a->size == b->size;
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
		return 1U << PATH_READ | 1U << PATH_WRITE | 1U << PATH_BIND_RO | 1U << PATH_BIND_RW;
	case SETTING_WRITE:
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
 * Is the rule nothing new, since its most specific neighbour under the lock allows as much there?
 * Only for what shows a path at itself.
 */
static bool is_covered(const struct policy *locked, const struct path_rule *rule, unsigned kinds)
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

static int judge_paths(const struct judge *j, const struct setting *s)
{
	unsigned kinds = kinds_of((enum setting_id)s->id);

	for (size_t i = 0; i < j->p->path_count; i++) {
		const struct path_rule *rule = &j->p->paths[i];

		if ((kinds & 1U << rule->kind) && is_later(j, &rule->source) &&
			!has_rule(j->locked, rule) && !is_covered(j->locked, rule, kinds))
			return fail_locked(j, &rule->source, policy_path_setting(rule->kind));
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
			same_text(rule->path, held->path);
	if (is_under_rule(rule_place(rule), held))
		return true;
	if (!is_bind(rule->kind) || (held->kind == PATH_PROTECT && rule->kind == PATH_BIND_RO))
		return false;
	/* a bind shows its source elsewhere, with everything in it */
	return is_under_rule(rule->path, held) || is_over_rule(rule->path, held);
}

/*
 * What the chosen profile does not hide or protect any more is put back: in front, so that the rules
 * stay in the order of their layers. A path that is hidden now needs no protection beside it.
 */
static int restore_rule(const struct judge *j, const struct path_rule *held)
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
	p->path_count++;
	return 0;
}

static int judge_shadowed(const struct judge *j, enum path_kind kind)
{
	for (size_t h = 0; h < j->locked->path_count; h++) {
		const struct path_rule *held = &j->locked->paths[h];

		if (held->kind != kind)
			continue;
		for (size_t i = 0; i < j->p->path_count; i++) {
			const struct path_rule *rule = &j->p->paths[i];

			if (is_later(j, &rule->source) && opens(rule, held))
				return fail_locked(j, &rule->source,
					policy_path_setting(rule->kind));
		}
		if (j->p->workspace.value && j->p->workspace.source.layer > LAYER_SYSTEM &&
			is_under_rule(j->p->workspace.value, held))
			return fail_locked(j, &j->p->workspace.source, "workspace");
		int r = restore_rule(j, held);
		if (r < 0)
			return r;
	}
	return 0;
}

/* '*' stands for any run of bytes. */
static bool name_matches(const char *glob, const char *name)
{
	const char *star = NULL, *back = NULL;

	while (*name) {
		if (*glob == '*') {
			star = ++glob;
			back = name;
		} else if (*glob == *name) {
			glob++;
			name++;
		} else if (star) {
			glob = star;
			name = ++back;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return !*glob;
}

static bool has_env(const struct policy *p, const struct env_rule *rule)
{
	for (size_t i = 0; i < p->env_count; i++)
		if (p->envs[i].unset == rule->unset && !strcmp(p->envs[i].name, rule->name) &&
			same_text(p->envs[i].value, rule->value))
			return true;
	return false;
}

static bool is_unset(const struct policy *locked, const char *name)
{
	for (size_t i = 0; i < locked->env_count; i++)
		if (locked->envs[i].unset && (name_matches(locked->envs[i].name, name) ||
						     name_matches(name, locked->envs[i].name)))
			return true;
	return false;
}

static int judge_env(const struct judge *j, const struct setting *s)
{
	for (size_t i = 0; i < j->p->env_count; i++) {
		const struct env_rule *rule = &j->p->envs[i];

		if (rule->unset || !is_later(j, &rule->source))
			continue;
		if (s->id == SETTING_ENV ? !has_env(j->locked, rule) :
					   is_unset(j->locked, rule->name))
			return fail_locked(j, &rule->source, "env");
	}
	return 0;
}

static int judge_words(const struct judge *j, const char *name, const struct word_rule *now,
	size_t now_count, const struct word_rule *locked, size_t locked_count)
{
	for (size_t i = 0; i < now_count; i++) {
		bool known = !is_later(j, &now[i].source);

		for (size_t k = 0; k < locked_count && !known; k++)
			known = !strcmp(now[i].word, locked[k].word);
		if (!known)
			return fail_locked(j, &now[i].source, name);
	}
	return 0;
}

static int judge_syscalls(const struct judge *j)
{
	for (size_t i = 0; i < j->p->syscall_rule_count; i++) {
		const struct syscall_rule *rule = &j->p->syscall_rules[i];

		if (is_later(j, &rule->source) && !strncmp(rule->text, "allow ", 6))
			return fail_locked(j, &rule->source, "syscall");
	}
	return 0;
}

/* `policy`: a file that was named after the system policy. */
static int judge_files(const struct judge *j)
{
	for (size_t i = 0; i < j->p->line_count; i++)
		if (j->p->lines[i].id == SETTING_POLICY &&
			j->p->lines[i].source.layer > LAYER_SYSTEM)
			return fail_locked(j, &j->p->lines[i].source, "policy");
	return 0;
}

static int judge_list(const struct judge *j, const struct setting *s)
{
	switch (s->id) {
	case SETTING_HIDE:
		return judge_shadowed(j, PATH_HIDE);
	case SETTING_PROTECT:
		return judge_shadowed(j, PATH_PROTECT);
	case SETTING_ENV:
	case SETTING_UNSETENV:
		return judge_env(j, s);
	case SETTING_SCRATCH_ENV:
		return judge_words(j, s->name, j->p->scratch_envs, j->p->scratch_env_count,
			j->locked->scratch_envs, j->locked->scratch_env_count);
	case SETTING_SYSCALL:
		return judge_syscalls(j);
	case SETTING_POLICY:
		return judge_files(j);
	case SETTING_REQUIRE:
		return 0; /* a requirement is never taken back */
	default:
		return judge_paths(j, s);
	}
}

static int judge_setting(const struct judge *j, const struct setting *s)
{
	switch (s->kind) {
	case KIND_FLAG:
		return judge_flag(j, s);
	case KIND_SIZE:
	case KIND_DURATION:
	case KIND_COUNT_NUMBER:
		return judge_number(j, s);
	case KIND_PATH_EARLY:
	case KIND_PATH_LATE:
	case KIND_FILTER:
	case KIND_REPORT:
		return judge_text(j, s);
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
		struct judge j = {
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

/* --- once more, on resolved paths ------------------------------------------------------------- */

/* Does the later @fact open the resolved @held? */
static bool fact_opens(const struct path_fact *fact, const struct path_fact *held)
{
	enum path_kind kind = fact->rule->kind;

	if (!shows(kind) || !fact->path)
		return false;
	if (is_below(fact->path, held->path))
		return true;
	if (!fact->source || (held->rule->kind == PATH_PROTECT && kind != PATH_WRITE &&
				     kind != PATH_BIND_RW))
		return false;
	return is_below(fact->source, held->path) ||
		(is_bind(kind) && is_below(held->path, fact->source));
}

static int check_held(const struct judge *j, const struct facts *facts,
	const struct path_fact *held)
{
	for (size_t i = 0; i < facts->path_count; i++) {
		const struct path_fact *fact = &facts->paths[i];

		if (is_later(j, &fact->rule->source) && fact_opens(fact, held))
			return fail_locked(j, &fact->rule->source,
				policy_path_setting(fact->rule->kind));
	}
	const struct source *workspace = &j->p->workspace.source;
	bool chosen = workspace->layer == LAYER_DEFAULT || is_later(j, workspace);
	if (chosen && facts->workspace && is_below(facts->workspace, held->path))
		return fail_locked(j, workspace, "workspace");
	return 0;
}

int policy_check_facts(const struct policy *p, const struct facts *facts, struct error *e)
{
	if (!p->locked)
		return 0;
	for (size_t i = 0; i < p->lock_count; i++) {
		const char *word = p->locks[i].word;
		enum path_kind kind = !strcmp(word, "hide") ? PATH_HIDE : PATH_PROTECT;
		struct judge j = { .p = (struct policy *)(uintptr_t)p,
			.locked = p->locked,
			.lock = &p->locks[i],
			.e = e };

		if (kind == PATH_PROTECT && strcmp(word, "protect") != 0)
			continue;
		for (size_t f = 0; f < facts->path_count; f++) {
			const struct path_fact *held = &facts->paths[f];

			if (held->rule->kind != kind || is_later(&j, &held->rule->source) ||
				!held->path)
				continue;
			int r = check_held(&j, facts, held);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/*
 * policy_walk.c - the effective policy, rule by rule, in the order of the settings table.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#include <string.h>

#include "plan/policy_line.h"

struct walk {
	const struct policy *p;
	policy_visit_fn visit;
	void *context;
};

static void visit_line(const struct walk *w, enum setting_id id, const struct policy_line *l)
{
	w->visit(w->context, &settings_table[id], l);
}

static void walk_scalar(const struct walk *w, const struct setting *s)
{
	const void *member = (const char *)w->p + s->member;
	const struct text_value *text = member;
	const struct number_value *number = member;
	const struct flag_value *flag = member;
	enum setting_id id = (enum setting_id)s->id;

	switch (s->kind) {
	case KIND_FLAG:
		if (flag->on || flag->source.layer != LAYER_DEFAULT)
			visit_line(w, id,
				&(struct policy_line){
					.number = flag->on, .source = flag->source });
		return;
	case KIND_SIZE:
	case KIND_DURATION:
	case KIND_COUNT_NUMBER:
	case KIND_CHARACTERS:
	case KIND_CPUS:
		if (number->set)
			visit_line(w, id,
				&(struct policy_line){
					.number = number->value, .source = number->source });
		return;
	default:
		if (text->value)
			visit_line(w, id,
				&(struct policy_line){
					.text = text->value, .source = text->source });
		return;
	}
}

static void walk_enum(const struct walk *w, const struct setting *s)
{
	static const char *const modes[] = {
		[WORKSPACE_DIRECT] = "direct",
		[WORKSPACE_RO] = "ro",
		[WORKSPACE_OVERLAY] = "overlay",
	};
	const struct policy *p = w->p;
	struct policy_line l = { 0 };

	if (s->id == SETTING_WORKSPACE_MODE) {
		l.text = modes[p->workspace_mode];
		l.source = p->workspace_mode_source;
	} else if (s->id == SETTING_TTY) {
		l.text = s->words[p->tty];
		l.source = p->tty_source;
	} else {
		l.text = s->words[p->net];
		l.source = p->net_source;
	}
	visit_line(w, (enum setting_id)s->id, &l);
}

static void walk_paths(const struct walk *w)
{
	for (size_t i = 0; i < w->p->path_count; i++) {
		const struct path_rule *r = &w->p->paths[i];
		const char *name = r->socket ? "unix-socket" : policy_path_setting(r->kind);
		struct policy_line l = {
			.text = r->path,
			.dest = r->dest,
			.number = r->size,
			.source = r->source,
			.kind = (unsigned char)r->kind,
			.optional = r->optional,
			.glob = r->glob,
		};

		visit_line(w, (enum setting_id)settings_find(name, strlen(name))->id, &l);
	}
}

static void walk_envs(const struct walk *w)
{
	for (size_t i = 0; i < w->p->env_count; i++) {
		const struct env_rule *r = &w->p->envs[i];
		struct policy_line l = {
			.text = r->name, .dest = r->value, .source = r->source
		};

		visit_line(w, r->unset ? SETTING_UNSETENV : SETTING_ENV, &l);
	}
}

static void walk_syscalls(const struct walk *w)
{
	for (size_t i = 0; i < w->p->syscall_rule_count; i++) {
		const struct syscall_rule *r = &w->p->syscall_rules[i];

		visit_line(w, SETTING_SYSCALL,
			&(struct policy_line){ .text = r->text, .source = r->source });
	}
}

static void walk_hosts(const struct walk *w)
{
	char text[NETRULE_TEXT_MAX];

	for (size_t i = 0; i < w->p->net_rule_count; i++) {
		const struct net_rule *r = &w->p->net_rules[i];

		if (netrule_format(r->rule, text, sizeof(text)) >= 0)
			visit_line(w, r->rule->deny ? SETTING_DENY : SETTING_ALLOW,
				&(struct policy_line){ .text = text, .source = r->source });
	}
}

static void walk_list(
	const struct walk *w, enum setting_id id, const struct word_rule *rules, size_t count)
{
	for (size_t i = 0; i < count; i++)
		visit_line(w, id,
			&(struct policy_line){
				.text = rules[i].word, .source = rules[i].source });
}

static void walk_passes(const struct walk *w)
{
	for (size_t i = 0; i < w->p->pass_count; i++) {
		const struct pass_rule *r = &w->p->passes[i];

		visit_line(w, SETTING_PASS_FD,
			&(struct policy_line){
				.text = r->inside, .dest = r->word, .source = r->source });
	}
}

static void walk_promotes(const struct walk *w, enum setting_id id,
	const struct promote_rule *rules, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct promote_rule *r = &rules[i];

		visit_line(w, id,
			&(struct policy_line){
				.text = r->pattern ? r->pattern : r->dir,
				.dest = r->pattern ? r->dir : NULL,
				.glob = r->pattern != NULL,
				.source = r->source,
			});
	}
}

static void walk_setting(const struct walk *w, const struct setting *s)
{
	const struct policy *p = w->p;

	switch ((int)s->id) {
	case SETTING_READ:
		walk_paths(w);
		return;
	case SETTING_ENV:
		walk_envs(w);
		return;
	case SETTING_SYSCALL:
		walk_syscalls(w);
		return;
	case SETTING_ALLOW:
		walk_hosts(w);
		return;
	case SETTING_PUBLISH:
		for (size_t i = 0; i < p->publish_count; i++)
			visit_line(w, SETTING_PUBLISH,
				&(struct policy_line){ .dest = p->publishes[i].text,
					.source = p->publishes[i].source });
		return;
	case SETTING_TLS_NAME: /* on by default, and without effect where no names are allowed */
		if (p->net == NET_ALLOW || p->tls_name.source.layer != LAYER_DEFAULT)
			walk_scalar(w, s);
		return;
	case SETTING_SCRATCH_ENV:
		walk_list(w, SETTING_SCRATCH_ENV, p->scratch_envs, p->scratch_env_count);
		return;
	case SETTING_PASS_FD:
		walk_passes(w);
		return;
	case SETTING_PROMOTE:
		walk_promotes(w, SETTING_PROMOTE, p->promotes, p->promote_count);
		return;
	case SETTING_PROMOTE_TO:
		walk_promotes(w, SETTING_PROMOTE_TO, p->promote_tos, p->promote_to_count);
		return;
	case SETTING_REQUIRE:
		walk_list(w, SETTING_REQUIRE, p->requires, p->require_count);
		return;
	default:
		if (s->kind == KIND_ENUM)
			walk_enum(w, s);
		else if (s->member)
			walk_scalar(w, s);
	}
}

void policy_walk(const struct policy *p, policy_visit_fn visit_rule, void *context)
{
	struct walk w = { .p = p, .visit = visit_rule, .context = context };

	for (size_t i = 0; i < SETTING_COUNT; i++)
		walk_setting(&w, &settings_table[i]);
}

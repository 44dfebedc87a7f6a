/*
 * why_net.c - whether a session with `net allow` would reach a host: it asks the same rules as carrel-egress.
 *
 * Runs in: carrel-policy, outside, as the caller. May not: ask the network.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "policy/why.h"

/* The rules of a plan, or of a live session, in the order of its policy; and the line of each. */
struct rules {
	struct netrule *rules;
	struct why_line *lines; /* of a live session */
	size_t count;
};

static int rules_of_plan(struct arena *arena, const struct policy *policy, struct rules *ret)
{
	ret->rules = arena_array(arena, policy->net_rule_count, sizeof(*ret->rules));
	if (!ret->rules)
		return -ENOMEM;
	for (size_t i = 0; i < policy->net_rule_count; i++)
		ret->rules[ret->count++] = *policy->net_rules[i].rule;
	return 0;
}

static int add_live(struct why *w, const char *setting, struct rules *ret)
{
	const char *argument;
	struct why_line line;

	for (unsigned n = 0; why_live_line(w, setting, n, &argument, &line); n++) {
		struct error ignored = { 0 };

		ret->rules = arena_push(&w->arena, ret->rules, ret->count, sizeof(*ret->rules));
		ret->lines = arena_push(&w->arena, ret->lines, ret->count, sizeof(*ret->lines));
		if (!ret->rules || !ret->lines)
			return -ENOMEM;
		ret->lines[ret->count] = line;
		int r = netrule_parse(&ret->rules[ret->count], &w->arena,
			!strcmp(setting, "deny"), argument, setting, &ignored);
		if (r < 0)
			return r;
		ret->count++;
	}
	return 0;
}

/* Ask the rules for each port in question; without a port, whether the name is allowed at any. */
static bool ask(
	const struct netrules *set, const struct netrule *asked, bool any_port, int *ret_rule)
{
	static const uint8_t four[4] = { 127, 0, 0, 1 };
	bool yes = false;

	*ret_rule = -1;
	if (asked->kind == NETRULE_NAME && any_port)
		return netrules_name(set, asked->name, 0, ret_rule);
	for (unsigned i = 0; i < asked->port_count && !yes; i++)
		yes = asked->kind == NETRULE_NAME
			? netrules_name(set, asked->name, asked->ports[i], ret_rule)
			: netrules_address(set,
				  asked->kind == NETRULE_LOCALHOST ? 4 : asked->family,
				  asked->kind == NETRULE_LOCALHOST ? four : asked->address,
				  asked->ports[i], ret_rule);
	return yes;
}

static void judge(struct why_answer *a, const struct rules *all, bool yes, int rule)
{
	a->seen = yes ? "allowed" : "denied";
	if (yes)
		a->because =
			"carrel-egress connects to it; whether it answers is the network's affair";
	else if (rule >= 0 && all->rules[rule].deny)
		a->because = "a line denies it, whatever others allow";
	else
		a->because = "no line allows it at this port";
}

static int add_line(struct why *w, const struct prepared *p, const struct rules *all, int rule,
	struct why_answer *a)
{
	if (rule < 0 || (size_t)rule >= all->count)
		return 0;
	if (p)
		return why_add_line(w, &p->policy, &p->policy.net_rules[rule].source, a);
	a->lines[a->line_count++] = all->lines[rule];
	return 0;
}

int why_net(struct why *w, const struct prepared *p, const char *asked, bool has_port,
	bool loopback, struct why_answer *a)
{
	struct rules all = { 0 };
	struct netrules *set;
	struct netrule host;
	struct error ignored = { 0 };
	int rule,
		r = p ? rules_of_plan(&w->arena, &p->policy, &all) : add_live(w, "allow", &all);

	if (r >= 0 && !p)
		r = add_live(w, "deny", &all);
	if (r >= 0)
		r = netrules_make(&set, &w->arena, all.rules, all.count);
	if (r < 0)
		return r;
	/* A session cannot reach a host that no line can name. */
	if (netrule_parse(&host, &w->arena, false, asked, "allow", &ignored) < 0) {
		judge(a, &all, false, -1);
		return 0;
	}
	bool yes = ask(set, &host, !has_port, &rule);
	if (loopback && !yes)
		return 0;
	judge(a, &all, yes, rule);
	return add_line(w, p, &all, rule, a);
}

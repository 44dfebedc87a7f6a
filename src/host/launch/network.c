/*
 * network.c - see network.h.
 *
 * Runs in: S.
 */
#include "host/launch/network.h"

#include "host/egress/live.h"

/* The number of a rule comes from carrel-egress and may be any, so it is checked. */
static const char *rule_text(const struct egress *g, const struct policy *policy,
	int32_t number, struct arena *arena)
{
	size_t n = (size_t)number, own = policy->net_rule_count;

	if (number < 0 || n >= own + g->live_count)
		return NULL;
	if (n >= own)
		return arena_format(arena, "allow %s", g->live[n - own].text);
	const struct netrule *rule = policy->net_rules[n].rule;
	char text[NETRULE_TEXT_MAX];

	return netrule_format(rule, text, sizeof(text)) < 0
		? NULL
		: arena_format(arena, "%s %s", rule->deny ? "deny" : "allow", text);
}

static void report_live(struct report *r, const struct egress *g, struct arena *arena)
{
	struct report_network_live *live = arena_array(arena, g->live_count, sizeof(*live));

	for (size_t i = 0; live && i < g->live_count; i++)
		live[i] = (struct report_network_live){ .rule = g->live[i].text,
			.uid = g->live[i].uid,
			.pid = g->live[i].pid,
			.added = g->live[i].added,
			.removed = g->live[i].removed[0] ? g->live[i].removed : NULL };
	r->network_live = live;
	r->network_live_count = live ? g->live_count : 0;
}

static void report_published(struct report *r, const struct egress *g, struct arena *arena)
{
	struct report_published *list = arena_array(arena, g->published_count, sizeof(*list));

	for (size_t i = 0; list && i < g->published_count; i++)
		list[i] = (struct report_published){ .port = g->published[i].port,
			.host_port = g->published[i].host_port,
			.times = g->published[i].times,
			.bytes_in = g->published[i].bytes_in,
			.bytes_out = g->published[i].bytes_out };
	r->published = list;
	r->published_count = list ? g->published_count : 0;
}

void network_report(struct report *r, const struct egress *g, const struct policy *policy,
	struct arena *arena)
{
	struct report_network_name *names;

	report_published(r, g, arena);
	if (!g->begun || policy->net != NET_ALLOW)
		return;
	r->network_known = true;
	r->network_rules = policy->net_rule_count;
	r->network_lost = g->lost;
	r->network_untold = g->untold;
	r->network_log_lost = g->log_lost;
	report_live(r, g, arena);
	names = arena_array(arena, g->name_count, sizeof(*names));
	if (!names) {
		r->network_untold += g->name_count;
		return;
	}
	for (size_t i = 0; i < g->name_count; i++) {
		const struct egress_name *n = &g->names[i];

		names[i] = (struct report_network_name){ .name = n->text,
			.port = n->port,
			.decision = egress_decision_name(n->decision),
			.rule = rule_text(g, policy, n->rule, arena),
			.times = n->times,
			.bytes_in = n->bytes_in,
			.bytes_out = n->bytes_out,
			.errnum = n->errnum > 0 && n->errnum < 4096 ? n->errnum : 0 };
	}
	r->network_names = names;
	r->network_name_count = g->name_count;
}

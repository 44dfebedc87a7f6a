/*
 * network.c - see network.h.
 *
 * Runs in: S.
 */
#include "host/launch/network.h"

/* What carrel-egress says is text and numbers: a rule's number may be any. */
static const char *rule_text(const struct policy *policy, int32_t number, struct arena *arena)
{
	if (number < 0 || (size_t)number >= policy->net_rule_count)
		return NULL;
	const struct net_rule *rule = &policy->net_rules[number];

	return arena_format(arena, "%s %s", rule->rule->deny ? "deny" : "allow", rule->text);
}

void network_report(struct report *r, const struct egress *g, const struct policy *policy,
	struct arena *arena)
{
	struct report_network_name *names;

	if (!g->begun)
		return;
	r->network_known = true;
	r->network_rules = policy->net_rule_count;
	r->network_lost = g->lost;
	r->network_untold = g->untold;
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
			.rule = rule_text(policy, n->rule, arena),
			.times = n->times,
			.bytes_in = n->bytes_in,
			.bytes_out = n->bytes_out,
			.errnum = n->errnum > 0 && n->errnum < 4096 ? n->errnum : 0 };
	}
	r->network_names = names;
	r->network_name_count = g->name_count;
}

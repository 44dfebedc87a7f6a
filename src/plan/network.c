/*
 * network.c - see network.h and docs/network.md.
 *
 * Runs in: the launcher and carrel-policy. PURE: no system calls.
 */
#include "plan/network.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The first address of the session's own block, which is no name's: RFC 2544. */
#define OWN_ADDRESS "198.18.0.1/15"

static int full(struct error *e)
{
	return error_set(e, ERROR_LIMIT, "plan", ERROR_OWN(ENOMEM), NULL,
		"the plan needs more memory than is set aside");
}

static int emit(struct plan *p, struct op op, struct error *e)
{
	struct op *ops = arena_push(p->arena, p->ops, p->op_count, sizeof(op));

	if (!ops)
		return full(e);
	p->ops = ops;
	p->ops[p->op_count++] = op;
	return 0;
}

/* Keeps the ports sorted. False: there are @most others already. */
static bool add_port(struct plan *p, uint16_t port, size_t most)
{
	size_t at = 0;

	while (at < p->net_port_count && p->net_ports[at] < port)
		at++;
	if (at < p->net_port_count && p->net_ports[at] == port)
		return true;
	if (p->net_port_count >= most)
		return false;
	memmove(&p->net_ports[at + 1], &p->net_ports[at],
		(p->net_port_count - at) * sizeof(p->net_ports[0]));
	p->net_ports[at] = port;
	p->net_port_count++;
	return true;
}

static int add_ports(struct plan *p, const struct net_rule *r, struct error *e)
{
	for (unsigned i = 0; i < r->rule->port_count; i++) {
		char on[512];

		if (add_port(p, r->rule->ports[i], NETRULE_LISTEN_MAX))
			continue;
		policy_format_source(&r->source, "allow", on, sizeof(on));
		return error_set(e, ERROR_POLICY, "plan", ERROR_OWN(E2BIG), on,
			"the policy allows more than %d different ports", NETRULE_LISTEN_MAX);
	}
	return 0;
}

/* What the kernel makes local itself: the loopback's own. */
static bool is_loopback(const struct netrule *r)
{
	static const uint8_t one[16] = { [15] = 1 };

	return r->family == 4 ? r->address[0] == 127 && r->bits >= 8
			      : r->bits == 128 && !memcmp(r->address, one, sizeof(one));
}

/* "192.0.2.0/24": the rule as it is written, without its ports. */
static const char *block_text(struct arena *a, const struct netrule *rule)
{
	char text[NETRULE_TEXT_MAX];
	struct netrule bare = *rule;

	bare.deny = true;
	bare.port_count = 0;
	return netrule_format(&bare, text, sizeof(text)) < 0
		? NULL
		: arena_copy(a, text, strlen(text));
}

static int add_block(struct plan *p, const struct net_rule *r, struct error *e)
{
	struct net_local *locals = arena_push(p->arena, (void *)(uintptr_t)p->net_locals,
		p->net_local_count, sizeof(*locals));
	const char *text = block_text(p->arena, r->rule);

	if (!locals || !text)
		return full(e);
	struct net_local *local = &locals[p->net_local_count];
	*local = (struct net_local){ .family = r->rule->family, .bits = r->rule->bits };
	memcpy(local->address, r->rule->address, sizeof(local->address));
	p->net_locals = locals;
	return emit(p,
		(struct op){ .kind = OP_NET_LOCAL,
			.path = text,
			.value = p->net_local_count++,
			.why = "an allowed address: what connects to it is taken",
			.source = &r->source },
		e);
}

static int refuse(const struct plan *plan, struct error *e)
{
	char on[512];

	policy_format_source(&plan->policy->net_source,
		plan->policy->net_implied ? "allow" : "net", on, sizeof(on));
	int r = error_set(e, ERROR_UNAVAILABLE, "plan", ERROR_OWN(ENOTSUP), on,
		"`net allow` needs a network namespace, and this machine refuses one");
	error_hint(e, "with `net none` or `net host` the session can start");
	return r;
}

int plan_network(struct plan *plan, struct error *e)
{
	const struct policy *policy = plan->policy;

	if (policy->net != NET_ALLOW)
		return 0;
	if (!plan->clone_flags)
		return refuse(plan, e);
	int r = emit(plan,
		(struct op){ .kind = OP_NET_ADDRESS,
			.path = OWN_ADDRESS,
			.why = "addresses for names",
			.source = &policy->net_source },
		e);
	for (size_t i = 0; i < policy->net_rule_count && r >= 0; i++) {
		const struct net_rule *rule = &policy->net_rules[i];

		if (rule->rule->deny)
			continue;
		r = add_ports(plan, rule, e);
		if (r >= 0 && rule->rule->kind == NETRULE_BLOCK && !is_loopback(rule->rule))
			r = add_block(plan, rule, e);
	}
	/* There is room for one more. */
	(void)add_port(plan, PLAN_PROXY_PORT, NETRULE_LISTEN_MAX + 1);
	return r < 0 ? r
		     : emit(plan,
			       (struct op){ .kind = OP_NET_LISTEN,
				       .why = "connections and queries, for carrel-egress",
				       .source = &policy->net_source },
			       e);
}

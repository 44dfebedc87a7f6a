/*
 * network.c - see network.h and docs/network.md.
 *
 * Runs in: the launcher and carrel-policy. PURE: no system calls.
 */
#include "plan/network.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plan/emit.h"

/* The first address of the session's own block, which never stands for a name: RFC 2544. */
#define OWN_ADDRESS "198.18.0.1/15"

/* The ports of an `allow` line that names none. */
static const uint16_t live_ports[] = { 80, 443 };

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

static int fail_ports(const struct net_rule *r, struct error *e)
{
	char on[512];

	policy_format_source(&r->source, "allow", on, sizeof(on));
	return error_set(e, ERROR_POLICY, "plan", ERROR_OWN(E2BIG), on,
		"the policy allows more than %d different ports", NETRULE_LISTEN_MAX);
}

static int add_ports(struct plan *p, const struct net_rule *r, struct error *e)
{
	for (unsigned i = 0; i < r->rule->port_count; i++)
		if (!add_port(p, r->rule->ports[i], NETRULE_LISTEN_MAX))
			return fail_ports(r, e);
	return 0;
}

/* Whether the kernel makes these addresses local itself: those of the loopback. */
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
		return emit_no_memory(e);
	struct net_local *local = &locals[p->net_local_count];
	*local = (struct net_local){ .family = r->rule->family, .bits = r->rule->bits };
	memcpy(local->address, r->rule->address, sizeof(local->address));
	p->net_locals = locals;
	return emit_to(p,
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

static int fail_publish(
	const struct publish_rule *rule, int errnum, struct error *e, const char *why)
{
	char on[512];

	policy_format_source(&rule->source, "publish", on, sizeof(on));
	return error_set(e, errnum == ENOTSUP ? ERROR_UNAVAILABLE : ERROR_POLICY, "plan",
		ERROR_OWN(errnum), on, "port %u cannot be published: %s", rule->port, why);
}

/* Check the line `publish` against the other ones and the rest of the policy. */
static int check_publish(const struct plan *plan, size_t index, struct error *e)
{
	const struct policy *p = plan->policy;
	const struct publish_rule *rule = &p->publishes[index];

	if (index == PUBLISH_MAX)
		return fail_publish(rule, E2BIG, e, "that is one more than a session can have");
	if (p->net == NET_HOST)
		return fail_publish(
			rule, EINVAL, e, "with `net host` it is the host's already");
	if (!plan->clone_flags)
		return fail_publish(
			rule, ENOTSUP, e, "this machine refuses a network namespace");
	for (size_t i = 0; i < index; i++)
		if (rule->host_port && p->publishes[i].host_port == rule->host_port)
			return fail_publish(
				rule, EINVAL, e, "another one has that port of the host");
	for (size_t i = 0; i < plan->net_port_count; i++)
		if (plan->net_ports[i] == rule->port)
			return fail_publish(rule, EINVAL, e,
				rule->port == PLAN_PROXY_PORT
					? "the session's own proxy has it, so no server inside can"
					: "an `allow` line names it, so no server inside can have it");
	return 0;
}

static int add_publishes(struct plan *plan, struct error *e)
{
	const struct policy *p = plan->policy;
	int r = 0;

	for (size_t i = 0; i < p->publish_count && r >= 0; i++) {
		r = check_publish(plan, i, e);
		if (r >= 0)
			r = emit_to(plan,
				(struct op){ .kind = OP_NET_PUBLISH,
					.path = p->publishes[i].text,
					.value = i,
					.why = "a server inside, for the host's loopback",
					.source = &p->publishes[i].source },
				e);
	}
	return r;
}

static int add_names(struct plan *plan, struct error *e)
{
	const struct policy *policy = plan->policy;

	if (policy->net != NET_ALLOW)
		return 0;
	if (!plan->clone_flags)
		return refuse(plan, e);
	/* A rule added to the live session can use only the listeners that are made here. */
	if (policy->net_live.on)
		for (size_t i = 0; i < sizeof(live_ports) / sizeof(live_ports[0]); i++)
			if (!add_port(plan, live_ports[i], NETRULE_LISTEN_MAX))
				return emit_no_memory(e);
	int r = emit_to(plan,
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
	/* net_ports has room for one more. */
	(void)add_port(plan, PLAN_PROXY_PORT, NETRULE_LISTEN_MAX + 1);
	return r < 0 ? r
		     : emit_to(plan,
			       (struct op){ .kind = OP_NET_LISTEN,
				       .why = "connections and queries, for carrel-egress",
				       .source = &policy->net_source },
			       e);
}

int plan_network(struct plan *plan, struct error *e)
{
	int r = add_names(plan, e);

	return r < 0 ? r : add_publishes(plan, e);
}

/*
 * policy_net.c - the lines about the network: `allow`, `deny`, `net-resolver`, `egress-proxy`, and what they mean with `net`.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "plan/embedded.h"
#include "plan/policy_line.h"

enum { PORT_DNS = 53, PORT_LEAST = 1024, SETS_MAX = 64 };
#define SET_END ".hosts"

/* --- sets ------------------------------------------------------------------------------------- */

bool policy_is_set_word(const char *word)
{
	return word[0] == '@';
}

const struct embedded_text *policy_find_set(const struct policy_resolver *r, const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < r->text_count; i++)
		if (!strncmp(r->texts[i].name, name, length) &&
			!strcmp(r->texts[i].name + length, SET_END))
			return &r->texts[i];
	return NULL;
}

int policy_fail_set(const struct policy_place *at, const char *name)
{
	const char *word = arena_format(at->p->arena, "@%.60s", name), *names[SETS_MAX];
	char list[256];
	size_t count = 0;

	for (size_t i = 0; i < at->r->text_count && count < SETS_MAX && word; i++) {
		const char *text = at->r->texts[i].name, *end = strstr(text, SET_END);

		if (!end || end[sizeof(SET_END) - 1])
			continue;
		names[count] = arena_format(at->p->arena, "@%.*s", (int)(end - text), text);
		if (!names[count++])
			word = NULL;
	}
	if (!word)
		return policy_full(at->e);
	int r = policy_fail(at, "unknown set of hosts '%s'", word);
	const char *nearest = text_nearest(word, names, count);
	text_words(names, count, list, sizeof(list));
	if (nearest)
		error_hint(at->e, "did you mean '%s'?", nearest);
	else if (list[0])
		error_hint(at->e, "%s", list);
	return r;
}

/* --- one line --------------------------------------------------------------------------------- */

/* Make what netrule_parse() says of @word the error of this line. */
static int fail_rule(const struct policy_place *at, bool deny, const char *word)
{
	struct error e = { 0 };
	struct netrule rule;
	int r = netrule_parse(&rule, at->p->local, deny, word, at->setting, &e);

	if (r >= 0)
		return r;
	r = policy_fail(at, "%s", e.what);
	if (e.hint[0])
		error_hint(at->e, "%s", e.hint);
	return r;
}

/*
 * A word that is refused is read a second time for the message: ten thousand good ones then need no
 * room for one.
 */
static int parse(
	const struct policy_place *at, bool deny, const char *word, struct netrule *ret)
{
	int r = netrule_parse(ret, at->p->local, deny, word, at->setting, NULL);

	if (r >= 0)
		return 0;
	return r == -ENOMEM ? policy_full(at->e) : fail_rule(at, deny, word);
}

/* @rule, as the text of @l. */
static int keep_rule(
	const struct policy_place *at, const struct netrule *rule, struct policy_line *l)
{
	size_t room;
	char *text = arena_rest(at->p->arena, &room);
	int length =
		netrule_format(rule, text, room < NETRULE_TEXT_MAX ? room : NETRULE_TEXT_MAX);

	if (length < 0)
		return policy_full(at->e);
	l->text = arena_keep(at->p->arena, (size_t)length + 1, (size_t)length + 1);
	return l->text ? 0 : policy_full(at->e);
}

int policy_read_host(const struct policy_place *at, const struct setting *s, const char *word,
	struct policy_line *l)
{
	struct netrule *rule = arena_alloc(at->p->local, sizeof(*rule));

	if (!rule)
		return policy_full(at->e);
	int r = parse(at, s->id == SETTING_DENY, word, rule);
	if (r < 0)
		return r;
	for (unsigned i = 0; !rule->deny && i < rule->port_count; i++)
		if (rule->ports[i] == PORT_DNS) {
			error_hint(at->e, "allowed names are resolved without a line for it");
			return policy_fail(at, "port 53 is that of the session's own resolver");
		}
	l->net = rule;
	return 0;
}

/* Whether the word says ports itself: behind "]:", or behind the one colon of another address. */
static bool has_port(const char *word)
{
	const char *bracket = strchr(word, ']'), *colon = strchr(word, ':');

	if (bracket)
		return bracket[1] == ':';
	return colon && !strchr(colon + 1, ':');
}

int policy_read_resolver(const struct policy_place *at, const char *word, struct policy_line *l)
{
	struct netrule rule;
	int r = parse(at, false, word, &rule);

	if (r < 0)
		return r;
	if (rule.kind != NETRULE_BLOCK || rule.bits != (rule.family == 4 ? 32 : 128))
		return policy_fail(at, "'%.60s' is not an address: ADDRESS[:PORT]", word);
	if (!has_port(word)) {
		rule.port_count = 1;
		rule.ports[0] = PORT_DNS;
	}
	if (rule.port_count != 1)
		return policy_fail(at, "'%.60s' has more than one port: ADDRESS[:PORT]", word);
	return keep_rule(at, &rule, l);
}

static int fail_proxy(const struct policy_place *at, const char *word, const char *why)
{
	return policy_fail(at, "'%.60s' %s: %s", word, why,
		settings_table[SETTING_EGRESS_PROXY].placeholder);
}

int policy_read_proxy(const struct policy_place *at, const char *word, struct policy_line *l)
{
	static const char scheme[] = "http://";
	struct netrule rule;

	/*
	 * Others can see a command line, and a policy can be shown: a password must not be in them.
	 */
	if (strchr(word, '@')) {
		error_hint(at->e, "write USER:PASSWORD into a file: egress-proxy-login FILE");
		return policy_fail(
			at, "the address of a proxy cannot hold a user or a password");
	}
	if (strncmp(word, scheme, sizeof(scheme) - 1) != 0)
		return fail_proxy(at, word, "is not the address of an HTTP proxy");
	const char *host = word + sizeof(scheme) - 1;
	size_t length = strlen(host);
	char *bare =
		arena_copy(at->p->arena, host, length - (length && host[length - 1] == '/'));
	if (!bare)
		return policy_full(at->e);
	int r = parse(at, false, bare, &rule);
	if (r < 0)
		return r;
	if (rule.kind == NETRULE_BELOW ||
		(rule.kind == NETRULE_BLOCK && rule.bits != (rule.family == 4 ? 32 : 128)))
		return fail_proxy(at, word, "is not one host");
	if (!has_port(bare) || rule.port_count != 1)
		return fail_proxy(at, word, "needs one port");
	r = keep_rule(at, &rule, l);
	if (r < 0)
		return r;
	l->text = arena_format(at->p->arena, "%s%s", scheme, l->text);
	return l->text ? 0 : policy_full(at->e);
}

/*
 * Read PORT or HOSTPORT. One below 1024 is refused: inside nobody has the right to it, and carrel
 * uses none outside.
 */
static int read_port(const struct policy_place *at, const char *text, bool any, uint64_t *ret)
{
	if (any && !strcmp(text, "0")) {
		*ret = 0;
		return 0;
	}
	if (strspn(text, "0123456789") != strlen(text) || text_parse_count(text, ret) < 0 ||
		*ret > UINT16_MAX)
		return policy_fail(at, "'%.60s' is not a port: PORT[:HOSTPORT]", text);
	if (*ret < PORT_LEAST)
		return policy_fail(at,
			"port %.60s is privileged: only %d and above can be published", text,
			PORT_LEAST);
	return 0;
}

int policy_read_publish(const struct policy_place *at, const char *word, struct policy_line *l)
{
	const char *colon = strchr(word, ':');
	const char *inside =
		arena_copy(at->p->arena, word, colon ? (size_t)(colon - word) : strlen(word));
	uint64_t port, host_port;

	if (!inside)
		return policy_full(at->e);
	int r = read_port(at, inside, false, &port);
	if (r >= 0)
		r = read_port(at, colon ? colon + 1 : inside, colon != NULL, &host_port);
	if (r < 0)
		return r;
	l->text = arena_format(at->p->arena, "%u", (unsigned)port);
	l->dest = arena_format(at->p->arena, "%u:%u", (unsigned)port, (unsigned)host_port);
	l->number = port << 16 | host_port;
	return l->text && l->dest ? 0 : policy_full(at->e);
}

/* --- all of them ------------------------------------------------------------------------------ */

/* The `allow` line of the strongest layer, or NULL. */
static const struct net_rule *strongest_allow(const struct policy *p)
{
	const struct net_rule *best = NULL;

	for (size_t i = 0; i < p->net_rule_count; i++) {
		const struct net_rule *r = &p->net_rules[i];

		if (!r->rule->deny && (!best || r->source.layer > best->source.layer))
			best = r;
	}
	return best;
}

static int fail_both(const struct policy *p, const struct net_rule *allow, struct error *e)
{
	const char *net = p->net == NET_HOST ? "net host" : "net none";
	char on[512], other[256], text[NETRULE_TEXT_MAX];

	if (netrule_format(allow->rule, text, sizeof(text)) < 0)
		text[0] = '\0';
	policy_format_source(&allow->source, "allow", on, sizeof(on));
	policy_format_source(&p->net_source, "net", other, sizeof(other));
	int r = error_set(e, ERROR_POLICY, "policy", 0, on,
		"'allow %.60s' contradicts '%s' of the same layer", text, net);
	error_hint(e, "'%s' is given at %s", net, other);
	return r;
}

int policy_settle_net(struct policy *p, struct error *e)
{
	const struct net_rule *allow = strongest_allow(p);

	if (allow && p->net != NET_ALLOW && allow->source.layer == p->net_source.layer)
		return fail_both(p, allow, e);
	if (allow && p->net != NET_ALLOW && allow->source.layer > p->net_source.layer) {
		p->net = NET_ALLOW;
		p->net_source = allow->source;
		p->net_implied = true;
	}
	return 0;
}

void policy_drop_hosts(struct policy *p)
{
	if (p->net != NET_ALLOW)
		p->net_rule_count = 0;
}

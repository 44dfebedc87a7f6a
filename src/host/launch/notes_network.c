/*
 * notes_network.c - see notes.h: what of the network a command that failed was refused.
 *
 * Runs in: the launcher; in S, for the client of a live session. Names and addresses are what tools asked for and what
 * carrel-egress says of them: only those are shown that a policy can have.
 */
#include "host/launch/notes.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "host/launch/supervise.h"

enum {
	ARENA_SIZE = 1 << 20,
};

/* --- names ------------------------------------------------------------------------------------- */

/*
 * What `allow` has to have for @n, or nothing: the tool has chosen the name, so it must be one that a policy can have, and a
 * line that changes what was decided. The text is what netrule_format() makes of it, not what was sent.
 */
static bool allowing(struct arena *arena, const struct egress_name *n, char *ret, size_t size)
{
	struct error ignored = { 0 };
	struct netrule rule;

	if ((n->decision != EGRESS_DENIED_NAME && n->decision != EGRESS_DENIED_PORT) ||
		n->rule >= 0 || n->port > UINT16_MAX ||
		netrule_parse(&rule, arena, false, n->text, "allow", &ignored) < 0 ||
		rule.kind != NETRULE_NAME ||
		rule.name[0] == '_') /* SRV and its kin (RFC 2782): no host's name */
		return false;
	if (n->port && n->port != 80 && n->port != 443)
		return snprintf(ret, size, " %s:%u", rule.name, n->port) < (int)size;
	return snprintf(ret, size, " %s", rule.name) < (int)size;
}

unsigned notes_refused(
	const struct egress *egress, uint64_t since_us, unsigned most, char *ret, size_t size)
{
	struct arena arena; /* the plan's is sealed */
	unsigned count = 0;

	ret[0] = '\0';
	if (egress->trouble_us <= since_us || arena_init(&arena, ARENA_SIZE) < 0)
		return 0;
	for (size_t i = 0; i < egress->name_count && count < most; i++) {
		size_t used = strlen(ret);

		if (egress->names[i].last_us > since_us &&
			allowing(&arena, &egress->names[i], ret + used, size - used))
			count++;
		else
			ret[used] = '\0';
	}
	arena_free(&arena);
	return count;
}

void notes_print_refused(const char *names, bool live)
{
	char options[NOTES_NAMES_MAX + NOTES_NAMES_SHOWN * sizeof("--allow ")];
	struct error line = { 0 };
	size_t used = 0;

	for (const char *at = names; *at && used + sizeof(" --allow ") < sizeof(options);
		at++) {
		options[used++] = *at;
		if (*at == ' ')
			used += (size_t)snprintf(
				options + used, sizeof(options) - used, "--allow ");
	}
	options[used] = '\0';
	(void)error_set(&line, ERROR_POLICY, "close", 0, NULL,
		"the network refused what the policy does not allow");
	if (live)
		error_hint(&line,
			"if the command needs it, and the session has net-live: carrel session allow%s",
			names);
	else
		error_hint(&line, "if the command needs it:%s", options);
	(void)error_report(&line);
}

/* --- other troubles ---------------------------------------------------------------------------- */

/* Their order: of several the first is told, which names its cause best. */
static const enum egress_decision by_weight[] = { EGRESS_DENIED_ADDRESS, EGRESS_DENIED_NAME,
	EGRESS_DENIED_PORT, EGRESS_DENIED_TLS, EGRESS_DENIED_LIMIT, EGRESS_FAILED };

static bool is_denied_by_line(const struct policy *policy, const struct egress_name *n)
{
	return n->rule >= 0 && (size_t)n->rule < policy->net_rule_count &&
		policy->net_rules[n->rule].rule->deny;
}

/* Of that decision the last one after @since_us; of names and ports those that a `deny` line refuses: others are notes_refused()'s. */
static const struct egress_name *find_last(const struct egress *g, const struct policy *policy,
	uint64_t since_us, enum egress_decision decision)
{
	bool by_line = decision == EGRESS_DENIED_NAME || decision == EGRESS_DENIED_PORT;
	const struct egress_name *found = NULL;

	for (size_t i = 0; i < g->name_count; i++) {
		const struct egress_name *n = &g->names[i];

		if (n->decision == (uint32_t)decision && n->last_us > since_us &&
			(!by_line || is_denied_by_line(policy, n)) &&
			(!found || n->last_us > found->last_us))
			found = n;
	}
	return found;
}

/* Networks that somebody may have at home or at work: there is no remedy that opens a cloud's metadata. */
static bool is_of_a_network(const struct netrule *r)
{
	const uint8_t *a = r->address;

	if (r->kind != NETRULE_BLOCK)
		return false;
	if (r->family == 6)
		return (a[0] & 0xfe) == 0xfc;
	return a[0] == 10 || (a[0] == 172 && a[1] >> 4 == 1) || (a[0] == 192 && a[1] == 168) ||
		(a[0] == 100 && a[1] >> 6 == 1);
}

static bool is_loopback(const struct netrule *r)
{
	static const uint8_t six[16] = { [15] = 1 };

	return r->kind == NETRULE_BLOCK &&
		(r->family == 4 ? r->address[0] == 127 : !memcmp(r->address, six, sizeof(six)));
}

/* The line that opens the private address which a name led to. */
static void hint_address(
	struct error *e, struct arena *arena, const struct egress_name *n, bool live)
{
	struct error ignored = { 0 };
	struct netrule rule;
	char text[EGRESS_ADDRESS_MAX + 16];
	bool six = strchr(n->address, ':') != NULL;

	(void)snprintf(text, sizeof(text), "%s%s%s:%u", six ? "[" : "", n->address,
		six ? "]" : "", n->port);
	if (netrule_parse(&rule, arena, false, text, "allow", &ignored) < 0)
		return;
	if (is_loopback(&rule))
		(void)snprintf(text, sizeof(text), "localhost:%u", n->port);
	else if (!is_of_a_network(&rule))
		return;
	error_hint(e, "%s: --allow %s",
		live ? "if the command needs it, give it to `carrel session start`"
		     : "if the command needs it",
		text);
}

static void hint_line(struct error *e, const struct net_rule *r)
{
	char place[256], text[NETRULE_TEXT_MAX];

	policy_format_source(&r->source, "deny", place, sizeof(place));
	if (netrule_format(r->rule, text, sizeof(text)) >= 0)
		error_hint(e, "deny %.100s at %.200s", text, place);
}

/* Allowed, and it did not come to that. */
static void set_failed(struct error *e, const struct egress_name *n, const char *on)
{
	bool none = n->port == 0 && n->errnum == EDESTADDRREQ;

	(void)error_set(e, ERROR_POLICY, "close", none ? 0 : n->errnum, on,
		n->port ? "an allowed host could not be reached"
			: "an allowed name could not be resolved");
	if (none)
		error_hint(e, "this machine names no resolver: net-resolver ADDRESS does");
	else if (n->port == 0)
		error_hint(e, "the machine's resolver is asked, or net-resolver");
}

static void set_trouble(struct error *e, const struct policy *policy, struct arena *arena,
	const struct egress_name *n, const char *on, bool live)
{
	switch ((enum egress_decision)n->decision) {
	case EGRESS_DENIED_ADDRESS:
		(void)error_set(e, ERROR_POLICY, "close", 0, on,
			"an allowed name leads to %s, which only a line with that address opens",
			n->address[0] ? n->address : "an address");
		hint_address(e, arena, n, live);
		break;
	case EGRESS_DENIED_NAME:
	case EGRESS_DENIED_PORT:
		(void)error_set(e, ERROR_POLICY, "close", 0, on,
			"a line of the policy denies what the command tried");
		hint_line(e, &policy->net_rules[n->rule]); /* is_denied_by_line() */
		break;
	case EGRESS_DENIED_TLS:
		(void)error_set(e, ERROR_POLICY, "close", 0, on,
			"what was sent is not TLS for that very name");
		error_hint(e, "net-log FILE says what it was; tls-name no lets it pass");
		break;
	case EGRESS_DENIED_LIMIT:
		(void)error_set(
			e, ERROR_POLICY, "close", 0, on, "a limit of the network was reached");
		error_hint(e, "net-connections N, net-bytes SIZE; net-log FILE says which");
		break;
	case EGRESS_FAILED:
		set_failed(e, n, on);
		break;
	case EGRESS_ALLOWED:
	case EGRESS_PUBLISHED:
		break;
	}
}

/* HOST[:PORT], as a policy can have it; false: it is none. */
static bool show_host(struct arena *arena, const struct egress_name *n, char *ret, size_t size)
{
	struct error ignored = { 0 };
	struct netrule rule;
	bool six = strchr(n->text, ':') != NULL;
	char text[EGRESS_TEXT_MAX + 2];

	(void)snprintf(text, sizeof(text), "%s%s%s", six ? "[" : "", n->text, six ? "]" : "");
	if (netrule_parse(&rule, arena, true, text, "allow", &ignored) < 0)
		return false;
	if (n->port)
		(void)snprintf(ret, size, "%s:%u", text, n->port);
	else
		(void)snprintf(ret, size, "%s", text);
	return true;
}

bool notes_trouble(const struct egress *egress, const struct policy *policy, uint64_t since_us,
	bool live, struct error *ret)
{
	const size_t kinds = sizeof(by_weight) / sizeof(by_weight[0]);
	char on[EGRESS_TEXT_MAX + 16];
	struct arena arena; /* the plan's is sealed */

	*ret = (struct error){ 0 };
	if (egress->trouble_us <= since_us || arena_init(&arena, ARENA_SIZE) < 0)
		return false;
	for (size_t i = 0; i < kinds && ret->code == ERROR_NONE; i++) {
		const struct egress_name *n = find_last(egress, policy, since_us, by_weight[i]);

		if (n && show_host(&arena, n, on, sizeof(on)))
			set_trouble(ret, policy, &arena, n, on, live);
	}
	arena_free(&arena);
	return ret->code != ERROR_NONE;
}

/* --- the network as a whole --------------------------------------------------------------------- */

bool notes_has_no_network(const struct plan *plan)
{
	return (plan->clone_flags & CLONE_NEWNET) && plan->policy->net == NET_NONE;
}

void notes_print_none(bool live)
{
	struct error line = { 0 };

	(void)error_set(&line, ERROR_POLICY, "close", 0, NULL,
		"the command looked for a network, and the session has none");

	error_hint(&line,
		"%s`--allow HOST` for what it needs, or `--net host` for all that this machine reaches",
		live ? "give it to `carrel session start`: " : "");
	(void)error_report(&line);
}

void notes_print_address(void)
{
	struct error line = { 0 };

	(void)error_set(&line, ERROR_POLICY, "close", 0, NULL,
		"the command tried an address that no `allow` line opens");

	error_hint(&line, "`--explain` names it");
	(void)error_report(&line);
}

void notes_network(
	const struct plan *plan, const struct egress *egress, const struct outcome *o)
{
	char names[NOTES_NAMES_MAX];
	struct error trouble;

	if (plan->policy->quiet.on)
		return;
	if (notes_has_no_network(plan)) {
		if (o->no_route || o->no_listener)
			notes_print_none(false);
	} else if (plan->policy->net == NET_ALLOW) {
		if (notes_refused(egress, 0, NOTES_NAMES_SHOWN, names, sizeof(names)))
			notes_print_refused(names, false);
		else if (notes_trouble(egress, plan->policy, 0, false, &trouble))
			(void)error_report(&trouble);
		else if (o->no_route)
			notes_print_address();
	}
}

void notes_log_lost(const struct policy *policy, const struct egress *egress)
{
	struct error line = { 0 };

	if (policy->quiet.on || egress->log_lost == 0)
		return;
	(void)error_set(&line, ERROR_REPORT, "close", 0, policy->net_log.value,
		"the log of the network did not take all lines (%" PRIu64 " missing)",
		egress->log_lost);
	(void)error_report(&line);
}

static bool needs_resolver(const struct policy *policy)
{
	for (size_t i = 0; i < policy->net_rule_count; i++) {
		const struct netrule *rule = policy->net_rules[i].rule;

		if (!rule->deny && (rule->kind == NETRULE_NAME || rule->kind == NETRULE_BELOW))
			return !policy->egress_proxy.value;
	}
	return false;
}

void notes_unresolved(const struct policy *policy, const struct egress *egress)
{
	struct error line = { 0 };

	if (policy->quiet.on || !egress->unresolved || !needs_resolver(policy))
		return;
	(void)error_set(&line, ERROR_POLICY, "launch", 0, "/etc/resolv.conf",
		"this machine names no resolver: allowed names are not found");
	error_hint(&line, "net-resolver ADDRESS names one");
	(void)error_report(&line);
}

void notes_egress_lost(const struct policy *policy)
{
	static const char line[] =
		"carrel: carrel-egress has ended: the session goes on without a network\n";

	/* Where stderr cannot be written the report says the same. */
	if (!policy->quiet.on)
		(void)!fd_write_all(STDERR_FILENO, line, sizeof(line) - 1);
}

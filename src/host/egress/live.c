/*
 * live.c - see live.h.
 *
 * Runs in: S.
 */
#include "host/egress/live.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { ARENA_SIZE = 1 << 24 };

/* --- what the policy says about a rule -------------------------------------------------------- */

static bool is_locked(const struct policy *p, const char *setting)
{
	for (size_t i = 0; i < p->lock_count; i++)
		if (!strcmp(p->locks[i].word, setting))
			return true;
	return false;
}

static int judge_session(const struct policy *p, const char *text, struct error *e)
{
	int r;

	if (p->net != NET_ALLOW) {
		r = error_set(e, ERROR_LOOSENS, "session", ERROR_OWN(EPERM), text,
			"the session was started without `net allow`");
	} else if (!p->net_live.on) {
		r = error_set(e, ERROR_LOOSENS, "session", ERROR_OWN(EPERM), text,
			"the session was started without `net-live`");
	} else if (is_locked(p, "allow")) {
		return error_set(e, ERROR_LOCKED, "session", ERROR_OWN(EPERM), text,
			"the system policy locks `allow`");
	} else {
		return 0;
	}
	error_hint(e, "carrel session start --net allow --net-live");
	return r;
}

static int judge_ports(
	const struct plan *plan, const struct netrule *rule, const char *text, struct error *e)
{
	for (unsigned i = 0; i < rule->port_count; i++) {
		size_t n = 0;

		while (n < plan->net_port_count && plan->net_ports[n] != rule->ports[i])
			n++;
		if (n < plan->net_port_count)
			continue;
		int r = error_set(e, ERROR_LOOSENS, "session", ERROR_OWN(EPERM), text,
			"nothing listens on port %u in the session", rule->ports[i]);

		error_hint(e,
			"the session has to be started with a line that names the port, such as --allow %s",
			text);
		return r;
	}
	return 0;
}

/* The `deny` line that would win over @rule at one of its ports, or NULL. */
static const struct net_rule *denied_by(
	const struct policy *p, const struct netrules *set, const struct netrule *rule)
{
	static const uint8_t loopback[4] = { 127, 0, 0, 1 };
	char name[NETRULE_NAME_MAX + sizeof("*.")] = "";

	/* A name below the wildcard that no line can name itself. */
	if (rule->kind != NETRULE_LOCALHOST)
		(void)snprintf(name, sizeof(name), "%s%s",
			rule->kind == NETRULE_BELOW ? "*." : "", rule->name);
	for (unsigned i = 0; i < rule->port_count; i++) {
		int n;

		if (name[0])
			(void)netrules_name(set, name, rule->ports[i], &n);
		else
			(void)netrules_address(set, 4, loopback, rule->ports[i], &n);
		if (n >= 0 && p->net_rules[n].rule->deny)
			return &p->net_rules[n];
	}
	return NULL;
}

static int judge_denies(const struct policy *p, struct arena *arena, const struct netrule *rule,
	const char *text, struct error *e)
{
	struct netrule *rules = arena_array(arena, p->net_rule_count + 1, sizeof(*rules));
	struct netrules *set;
	char place[512], denied[NETRULE_TEXT_MAX];

	if (!rules)
		return error_no_memory(e, "session");
	for (size_t i = 0; i < p->net_rule_count; i++)
		rules[i] = *p->net_rules[i].rule;
	if (netrules_make(&set, arena, rules, p->net_rule_count) < 0)
		return error_no_memory(e, "session");
	const struct net_rule *deny = denied_by(p, set, rule);
	if (!deny)
		return 0;
	int r = error_set(e, ERROR_LOOSENS, "session", ERROR_OWN(EPERM), text,
		"a line of the policy denies it");
	policy_format_source(&deny->source, "deny", place, sizeof(place));
	if (netrule_format(deny->rule, denied, sizeof(denied)) >= 0)
		error_hint(e, "deny %.80s at %.200s", denied, place);
	return r;
}

static int judge_rule(const struct plan *plan, struct arena *arena, const char *text, char *ret,
	struct error *e)
{
	struct netrule rule;
	int r = netrule_parse(&rule, arena, false, text, "allow", e);

	if (r < 0)
		return r;
	if (rule.kind == NETRULE_BLOCK)
		return error_set(e, ERROR_LOOSENS, "session", ERROR_OWN(EPERM), text,
			"an address can be allowed when a session is started, and not later");
	r = judge_ports(plan, &rule, text, e);
	if (r >= 0)
		r = judge_denies(plan->policy, arena, &rule, text, e);
	if (r >= 0 && netrule_format(&rule, ret, NETRULE_TEXT_MAX) < 0)
		r = error_no_memory(e, "session");
	return r < 0 ? r : 0;
}

int egress_live_judge(const struct plan *plan, const char *text, char *ret, struct error *e)
{
	struct arena arena; /* the plan's is sealed */
	int r = judge_session(plan->policy, text, e);

	if (r < 0)
		return r;
	if (arena_init(&arena, ARENA_SIZE) < 0)
		return error_no_memory(e, "session");
	r = judge_rule(plan, &arena, text, ret, e);
	arena_free(&arena);
	return r;
}

/* --- the list --------------------------------------------------------------------------------- */

int egress_live_find(const struct egress *g, const char *text)
{
	for (size_t i = 0; i < g->live_count; i++)
		if (!g->live[i].removed[0] && !strcmp(g->live[i].text, text))
			return (int)i;
	return -ENOENT;
}

static void put_now(char ret[EGRESS_LIVE_TIME_MAX])
{
	struct timespec now;
	struct tm tm;

	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail with a valid clock */
	if (!gmtime_r(&now.tv_sec, &tm) ||
		strftime(ret, EGRESS_LIVE_TIME_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		(void)snprintf(ret, EGRESS_LIVE_TIME_MAX, "unknown");
}

static int make_list(struct egress *g)
{
	if (g->live)
		return g->live_count < EGRESS_LIVE_MAX ? 0 : -ENOSPC;
	void *list = mmap(NULL, EGRESS_LIVE_MAX * sizeof(*g->live), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (list == MAP_FAILED)
		return -errno;
	g->live = list;
	return 0;
}

int egress_live_ask(struct egress *g, const struct policy *policy,
	const struct egress_live *rule, int number)
{
	struct egress_record record = { .magic = EGRESS_MAGIC,
		.kind = number < 0 ? EGRESS_RULE : EGRESS_UNRULE,
		.rule = number < 0 ? -1 : (int32_t)policy->net_rule_count + number };
	const struct egress_live *which = number < 0 ? rule : &g->live[number];
	int r = number < 0 ? make_list(g) : 0;

	if (r < 0)
		return r;
	int n = snprintf(record.text, sizeof(record.text),
		"allow %s\tsession allow, process %d", which->text, (int)rule->pid);
	if (n < 0 || (size_t)n >= sizeof(record.text))
		return -ENOBUFS;
	r = egress_send(g, &record);
	if (r < 0)
		return r;
	g->asked = true;
	g->answered = false;
	g->asked_number = number;
	if (number < 0) {
		struct egress_live *next = &g->live[g->live_count];

		*next = *rule;
		(void)snprintf(next->source, sizeof(next->source), "session allow, process %d",
			(int)rule->pid);
	}
	return 0;
}

void egress_live_answered(struct egress *g, int errnum)
{
	g->asked = false;
	g->answered = true;
	g->answer = errnum;
	if (errnum != 0)
		return;
	if (g->asked_number >= 0) {
		put_now(g->live[g->asked_number].removed);
		return;
	}
	put_now(g->live[g->live_count].added);
	g->live_count++;
}

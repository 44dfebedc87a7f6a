/*
 * why_host.c - whether a command would reach a host.
 *
 * Runs in: carrel-policy, outside, as the caller. May not: ask the network.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "plan/settings.h"
#include "policy/why.h"

/* The host of "HOST[:PORT]", "[ADDRESS][:PORT]", "ADDRESS" (version 6). */
static const char *host_of(struct arena *arena, const char *asked)
{
	const char *colon = strchr(asked, ':');

	if (asked[0] == '[')
		return arena_copy(arena, asked + 1, strcspn(asked + 1, "]"));
	if (colon && strchr(colon + 1, ':'))
		return asked;
	return arena_copy(arena, asked, strcspn(asked, ":"));
}

/* Whether it is the machine itself, which in a network namespace of its own is the session. */
static bool is_loopback(const char *host)
{
	struct in6_addr six;
	struct in_addr four;

	if (!strcasecmp(host, "localhost"))
		return true;
	if (inet_pton(AF_INET, host, &four) == 1)
		return (ntohl(four.s_addr) >> 24) == 127 || four.s_addr == INADDR_ANY;
	if (inet_pton(AF_INET6, host, &six) == 1)
		return IN6_IS_ADDR_LOOPBACK(&six) || IN6_IS_ADDR_UNSPECIFIED(&six);
	return false;
}

/* Whether the filter lets a command have a socket of this family at all. */
static int try_socket(struct why *w, const struct prepared *p, const char *host,
	struct why_answer *a, struct error *e)
{
	const struct filter_rule *rule = NULL;
	struct in6_addr six;
	struct filter f;
	uint32_t arch = 0;
	uint64_t args[6] = { AF_INET, SOCK_STREAM };
	int r = why_filter(w, p, &f, &arch, e);

	if (r < 0)
		return r;
	if (inet_pton(AF_INET6, host, &six) == 1)
		args[0] = AF_INET6;
	r = why_call_outcome(&f, arch, SYS_socket, args, &rule);
	if (r == 0)
		return 0;
	a->outcome[TRY_CONNECT] = r;
	a->seen = "refused";
	a->because = "the system-call filter refuses the socket";
	r = why_filter_line(w, p, rule ? rule->file : f.default_file,
		rule ? rule->line : f.default_line, &a->lines[a->line_count++]);
	return r < 0 ? error_no_memory(e, "policy") : 0;
}

static int add_net_line(struct why *w, const struct prepared *p, struct why_answer *a)
{
	struct why_line *line = &a->lines[a->line_count];
	const char *argument;

	if (!p) {
		if (why_live_line(w, "net", 0, &argument, line))
			a->line_count++;
		return 0;
	}
	return why_add_line(w, &p->policy, &p->policy.net_source, a);
}

static bool has_net(struct why *w, const struct prepared *p, enum net_mode mode)
{
	const char *word = settings_table[SETTING_NET].words[mode];
	struct why_line line;
	const char *argument;

	if (p)
		return p->policy.net == mode;
	return why_live_line(w, "net", 0, &argument, &line) && !strcmp(argument, word);
}

static void judge(struct why_answer *a, bool shared, bool loopback, bool no_namespace)
{
	if (shared) {
		a->seen = "host";
		a->because =
			"the network is the host's; whether it answers is the network's affair";
	} else if (no_namespace) {
		a->seen = "no-network";
		a->outcome[TRY_CONNECT] = EACCES; /* confine_sockets() */
		a->because =
			"sockets other than unix ones are refused: there is no network namespace";
	} else if (loopback) {
		a->seen = "own";
		a->because =
			"the session's own loopback: what listens in it, and nothing of the host";
	} else {
		a->seen = "no-network";
		a->outcome[TRY_CONNECT] = ENETUNREACH;
		a->because =
			"the session has a network of its own, with loopback and nothing else";
	}
}

int why_host(struct why *w, const struct prepared *p, const char *asked, struct why_answer *a,
	struct error *e)
{
	const char *host = host_of(&w->arena, asked);

	if (!host)
		return error_no_memory(e, "plan");
	for (int i = 0; i < TRY_COUNT; i++)
		a->outcome[i] = WHY_UNKNOWN;
	int r = try_socket(w, p, host, a, e);
	if (r < 0)
		return r;
	bool apart = false;
	if (p)
		apart = p->plan.clone_flags != 0;
	else
		r = why_live_stands(w, WALL_NET_NS, &apart, e);
	if (r < 0)
		return r;
	if (!a->seen && has_net(w, p, NET_ALLOW))
		r = why_net(w, p, asked,
			strcmp(asked, host) != 0 && asked[strlen(asked) - 1] != ']',
			is_loopback(host), a);
	if (r < 0)
		return error_no_memory(e, "plan");
	if (!a->seen)
		judge(a, has_net(w, p, NET_HOST), is_loopback(host), !apart);
	r = a->line_count ? 0 : add_net_line(w, p, a);
	return r < 0 ? error_no_memory(e, "plan") : 0;
}

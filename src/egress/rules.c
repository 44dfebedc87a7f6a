/*
 * rules.c - see rules.h.
 *
 * Runs in: carrel-egress, before it confines itself; rules_add() also after.
 */
#include "egress/rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "host/egress/wire.h"

enum {
	ARENA_SIZE = 1 << 27,
	DNS_PORT = 53,
	RESOLVER_TEXT_MAX = INET6_ADDRSTRLEN + IF_NAMESIZE + 8, /* address, interface, port */
};

static int fail(struct error *e, const char *on, const char *why)
{
	return error_set(e, ERROR_POLICY, "policy", ERROR_OWN(EINVAL), on, "%s", why);
}

static int full(struct error *e)
{
	return error_no_memory(e, "policy");
}

/* "%eth0", "%2": cut off @host. What a network announces as its resolver is often link-local. False: there is no such interface. */
static bool take_scope(char *host, uint32_t *ret)
{
	char *scope = strchr(host, '%');
	uint64_t number;

	if (!scope || !strchr(host, ':'))
		return !scope;
	*scope++ = '\0';
	*ret = if_nametoindex(scope);
	if (*ret == 0 && text_parse_count(scope, &number) == 0 && number <= UINT32_MAX)
		*ret = (uint32_t)number;
	return *ret != 0;
}

/* "ADDRESS", "ADDRESS:PORT", "[ADDRESS]:PORT"; an address of IPv6 without a port may stand alone. */
static bool read_resolver(const char *text, struct resolver *ret)
{
	char copy[RESOLVER_TEXT_MAX];
	size_t length = strlen(text);
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(DNS_PORT) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(DNS_PORT) };
	uint64_t port = DNS_PORT;

	if (length >= sizeof(copy))
		return false;
	memcpy(copy, text, length + 1);
	char *host = copy, *colon = strrchr(copy, ':'), *end = strchr(copy, ']');
	if (copy[0] == '[' && end) {
		host++;
		*end = '\0';
		if (end[1] == '\0')
			colon = NULL;
		else if (end[1] != ':')
			return false;
	} else if (colon && strchr(copy, ':') != colon) {
		colon = NULL;
	}
	if (colon) {
		*colon = '\0';
		if (text_parse_count(colon + 1, &port) < 0 || port > 65535)
			return false;
	}
	if (!take_scope(host, &six.sin6_scope_id))
		return false;
	four.sin_port = six.sin6_port = htons((uint16_t)port);
	*ret = (struct resolver){ 0 };
	if (inet_pton(AF_INET, host, &four.sin_addr) == 1) {
		memcpy(&ret->address, &four, sizeof(four));
		ret->size = sizeof(four);
	} else if (inet_pton(AF_INET6, host, &six.sin6_addr) == 1) {
		memcpy(&ret->address, &six, sizeof(six));
		ret->size = sizeof(six);
	}
	return ret->size > 0;
}

/* --- the rules --------------------------------------------------------------------------------- */

static int keep_source(struct rules *r, const char *origin, uint32_t line, struct error *e)
{
	struct rule_source *grown =
		arena_push(&r->arena, r->sources, r->count, sizeof(*r->sources));

	if (!grown)
		return full(e);
	r->sources = grown;
	r->sources[r->count++] = (struct rule_source){ origin, line };
	return 0;
}

bool rules_source(const struct rules *rules, int32_t number, char *ret, size_t size)
{
	if (number < 0 || (size_t)number >= rules->count)
		return false;
	const struct rule_source *s = &rules->sources[number];
	if (s->line > 0)
		(void)snprintf(ret, size, "%s:%" PRIu32, s->origin, s->line);
	else
		(void)snprintf(ret, size, "%s", s->origin);
	return true;
}

/* What is left of the rules. */
struct cursor {
	const char *at, *end;
};

/* The next @size bytes, or NULL. */
static const char *take(struct cursor *c, size_t size)
{
	const char *at = c->at;

	if ((size_t)(c->end - at) < size)
		return NULL;
	c->at += size;
	return at;
}

/* A name ends with the NUL that its size counts, and has no other. */
static bool take_name(struct cursor *c, size_t size, const char **ret)
{
	*ret = size > 0 ? take(c, size) : NULL;
	return *ret && memchr(*ret, 0, size) == *ret + size - 1;
}

static bool take_block(struct cursor *c, struct netrule *rule)
{
	const char *address = take(c, sizeof(rule->address));

	if (!address || (rule->family != 4 && rule->family != 6) ||
		rule->bits > (rule->family == 4 ? 32 : 128))
		return false;
	memcpy(rule->address, address, sizeof(rule->address));
	return true;
}

/* @name: the rule's, or the origin of the rules that follow. */
static bool take_rule(struct cursor *c, struct egress_rule_head *ret_head, struct netrule *rule,
	const char **ret_name)
{
	const char *head = take(c, sizeof(*ret_head));

	if (!head)
		return false;
	memcpy(ret_head, head, sizeof(*ret_head));
	const char *ports = take(c, ret_head->port_count * sizeof(rule->ports[0]));
	if (!ports || ret_head->port_count > NETRULE_PORT_MAX)
		return false;
	*rule = (struct netrule){ .kind = (enum netrule_kind)ret_head->kind,
		.deny = ret_head->deny,
		.family = ret_head->family,
		.bits = ret_head->bits,
		.port_count = ret_head->port_count };
	memcpy(rule->ports, ports, ret_head->port_count * sizeof(rule->ports[0]));
	switch (ret_head->kind) {
	case NETRULE_NAME:
	case NETRULE_BELOW:
	case EGRESS_RULE_ORIGIN:
		return take_name(c, ret_head->name_size, ret_name);
	case NETRULE_BLOCK:
		return take_block(c, rule);
	default:
		return ret_head->kind == NETRULE_LOCALHOST;
	}
}

int rules_take(struct rules *r, struct error *e)
{
	struct cursor c = { r->given, r->given_end };
	const char *origin = NULL;

	r->list = arena_array(&r->arena,
		(size_t)(c.end - c.at) / sizeof(struct egress_rule_head) + 1, sizeof(*r->list));
	if (!r->list)
		return full(e);
	while (c.at < c.end) {
		struct netrule *rule = &r->list[r->count];
		struct egress_rule_head head;
		const char *name = NULL;

		if (!take_rule(&c, &head, rule, &name))
			return fail(e, NULL, "a rule that is none");
		if (head.kind == EGRESS_RULE_ORIGIN) {
			origin = name;
			continue;
		}
		rule->name = name;
		if (!origin)
			return fail(e, NULL, "a rule without a source");
		int failed = keep_source(r, origin, head.line, e);
		if (failed < 0)
			return failed;
	}
	r->start_count = r->count;
	return netrules_make(&r->set, &r->arena, r->list, r->count) < 0 ? full(e) : 0;
}

/* --- the settings ------------------------------------------------------------------------------- */

static int read_proxy(struct rules *r, const char *value)
{
	struct netrule *rule = arena_alloc(&r->arena, sizeof(*rule));
	struct error why = { 0 };

	if (!rule || r->proxy)
		return -EINVAL;
	int failed = netrule_parse(rule, &r->arena, false, value, "egress-proxy", &why);
	if (failed < 0 || rule->port_count != 1 || rule->kind == NETRULE_BELOW)
		return -EINVAL;
	r->proxy = rule;
	return 0;
}

static int read_setting(struct rules *r, const char *line, struct error *e)
{
	const char *value = strchr(line, ' ');
	int failed = -EINVAL;

	if (!value)
		return fail(e, line, "no such line");
	value++;
	if (!strncmp(line, "connections ", 12))
		failed = text_parse_count(value, &r->connections);
	else if (!strncmp(line, "bytes ", 6))
		failed = text_parse_count(value, &r->bytes);
	else if (!strcmp(line, "tls-name no"))
		failed = (r->any_name = true, 0);
	else if (!strncmp(line, "proxy ", 6))
		failed = read_proxy(r, value);
	else if (!strncmp(line, "proxy-login ", 12))
		failed = (r->proxy_login = value, 0);
	else if (!strncmp(line, "resolver ", 9) && r->resolver_count < RESOLVERS_MAX)
		failed = read_resolver(value, &r->resolvers[r->resolver_count]) ? 0 : -EINVAL;
	if (failed < 0)
		return fail(e, line, "no such line");
	r->resolver_count += !strncmp(line, "resolver ", 9);
	return 0;
}

static int read_settings(struct rules *r, char *text, struct error *e)
{
	while (*text) {
		char *end = strchr(text, '\n');

		if (!end)
			return fail(e, text, "the last line has no end");
		*end = '\0';
		int failed = read_setting(r, text, e);
		if (failed < 0)
			return failed;
		text = end + 1;
	}
	return 0;
}

/* --- rules that are added later ------------------------------------------------------------------- */

/* Read "allow RULE<TAB>SOURCE" into @rule, and cut @line, which stays in memory, at the tab. */
static int read_rule(
	struct rules *r, char *line, struct netrule *rule, const char **source, struct error *e)
{
	bool deny = !strncmp(line, "deny ", 5);
	char *tab = strchr(line, '\t');

	if (!deny && strncmp(line, "allow ", 6) != 0)
		return fail(e, line, "no rule");
	if (!tab)
		return fail(e, line, "a rule without a source");
	*tab = '\0';
	*source = tab + 1;
	return netrule_parse(
		rule, &r->arena, deny, line + (deny ? 5 : 6), deny ? "deny" : "allow", e);
}

int rules_add(struct rules *rules, const char *line, struct error *e)
{
	char *copy = arena_copy(&rules->arena, line, strlen(line));
	struct netrule *rule = arena_alloc(&rules->arena, sizeof(*rule));
	const char *source;

	if (!copy || !rule)
		return full(e);
	int r = read_rule(rules, copy, rule, &source, e);
	if (r < 0)
		return r;
	return netrules_add(rules->set, rule) < 0 ? full(e) : keep_source(rules, source, 0, e);
}

int rules_remove(struct rules *rules, int32_t number)
{
	return number < 0 || (size_t)number < rules->start_count
		? -ENOENT
		: netrules_remove(rules->set, (size_t)number);
}

/* --- the host's files --------------------------------------------------------------------------- */

/* The whole of @fd in the arena, with a NUL after it; an empty text if it cannot be read; NULL: it is larger than @most. */
static char *read_all(struct rules *r, int fd, size_t most, size_t *ret_size)
{
	size_t room;
	char *text = arena_rest(&r->arena, &room);
	ssize_t size = fd < 0 ? 0 : room > most ? fd_read_file(fd, text, most) : -ENOMEM;

	if (size < 0 || room <= (size_t)size)
		return NULL;
	*ret_size = (size_t)size;
	return arena_keep(&r->arena, (size_t)size + 1, (size_t)size + 1);
}

/* As read_all(); NULL also if it is no text. */
static char *read_text(struct rules *r, int fd)
{
	size_t size;
	char *text = read_all(r, fd, HOSTS_SIZE_MAX, &size);

	return text && !memchr(text, 0, size) ? text : NULL;
}

static int read_given(struct rules *r, int fd, struct error *e)
{
	size_t size;
	char *text = read_all(r, fd, RULES_SIZE_MAX, &size);
	char *end = text ? memchr(text, 0, size) : NULL;

	if (!end)
		return fail(e, NULL, "the rules cannot be read");
	r->given = end + 1;
	r->given_end = text + size;
	return read_settings(r, text, e);
}

/* resolv.conf(5): only the lines "nameserver ADDRESS". */
static void read_resolvers(struct rules *r, const char *text)
{
	for (; text && *text && r->resolver_count < RESOLVERS_MAX;
		text = strchr(text, '\n'), text += text != NULL) {
		char address[RESOLVER_TEXT_MAX];

		if (strncmp(text, "nameserver", 10) != 0 || !strchr(" \t", text[10]))
			continue;
		const char *start = text + 10 + strspn(text + 10, " \t");
		size_t length = strcspn(start, " \t\n#;");
		if (length >= sizeof(address))
			continue;
		memcpy(address, start, length);
		address[length] = '\0';
		if (!strchr(address, '[') &&
			read_resolver(address, &r->resolvers[r->resolver_count]))
			r->resolver_count++;
	}
}

int rules_read(struct rules *ret, int fd, struct error *e)
{
	autofd int resolv = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	autofd int hosts = open("/etc/hosts", O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	*ret = (struct rules){ 0 };
	if (arena_init(&ret->arena, ARENA_SIZE) < 0)
		return full(e);
	if (lseek(fd, 0, SEEK_SET) != 0)
		return fail(e, NULL, "the rules are no file");
	int r = read_given(ret, fd, e);
	if (r < 0)
		return r;
	if (ret->resolver_count == 0)
		read_resolvers(ret, read_text(ret, resolv));
	ret->hosts = read_text(ret, hosts);
	return 0;
}

/* Whether one of the names of a line of hosts(5), [@text, @end), is @name. */
static bool has_name(const char *text, const char *end, const char *name)
{
	size_t length = strlen(name);

	while (text < end) {
		size_t blank = strspn(text, " \t"), word = strcspn(text + blank, " \t\n\r");

		if (word == length && strncasecmp(text + blank, name, length) == 0)
			return true;
		text += blank + word;
		if (blank + word == 0)
			break;
	}
	return false;
}

bool rules_hosts(const char *hosts, const char *name, size_t most, uint8_t (*ret_four)[4],
	size_t *ret_four_count, uint8_t (*ret_six)[16], size_t *ret_six_count)
{
	bool found = false;

	*ret_four_count = *ret_six_count = 0;
	for (const char *line = hosts; line && *line;
		line = strchr(line, '\n'), line += line != NULL) {
		line += strspn(line, " \t"); /* as glibc reads it */
		size_t length = strcspn(line, " \t\n#");
		const char *end = line + strcspn(line, "\n#");
		char address[INET6_ADDRSTRLEN];

		if (length >= sizeof(address) || !has_name(line + length, end, name))
			continue;
		memcpy(address, line, length);
		address[length] = '\0';
		if (*ret_four_count < most &&
			inet_pton(AF_INET, address, ret_four[*ret_four_count]) == 1)
			found = (++*ret_four_count, true);
		else if (*ret_six_count < most &&
			inet_pton(AF_INET6, address, ret_six[*ret_six_count]) == 1)
			found = (++*ret_six_count, true);
	}
	return found;
}

/*
 * netrule.c - a rule as text: read strictly.
 *
 * Runs in: the launcher, carrel-policy, carrel-egress. PURE.
 *
 * A rule that another program could read differently is refused: addresses in any form but the
 * usual one, names that are not ASCII, wildcards that are not a whole first label.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plan/netrule_private.h"

enum { SHOWN = 60, PLAIN_PORTS = 128, PLAIN_BYTES = NETRULE_NAME_MAX + 2 };

struct reading {
	struct netrule rule;
	struct arena *arena;
	const char *text; /* the whole rule, for messages */
	const char *what;
	struct error *e;
};

static int fail(const struct reading *r, const char *hint, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* "SETTING 'RULE' WHY"; @hint may be NULL. */
static int fail(const struct reading *r, const char *hint, const char *format, ...)
{
	char why[96];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	if (hint)
		error_hint(r->e, "%s", hint);
	return error_set(r->e, ERROR_POLICY, "policy", ERROR_OWN(EINVAL), NULL, "%s '%.*s' %s",
		r->what, SHOWN, r->text, why);
}

/* --- ports ------------------------------------------------------------------------------------ */

/* Decimal digits without a zero in front: 1 to 65535, or -1. */
static int read_number(const char *text, size_t length, unsigned most)
{
	unsigned value = 0;

	if (length == 0 || length > 5 || (text[0] == '0' && length > 1))
		return -1;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = value * 10 + (unsigned)(text[i] - '0');
	}
	return value <= most ? (int)value : -1;
}

/* Ascending, each once. */
static int add_port(struct reading *r, uint16_t port)
{
	struct netrule *rule = &r->rule;
	size_t at = rule->port_count;

	while (at > 0 && rule->ports[at - 1] > port)
		at--;
	if (at > 0 && rule->ports[at - 1] == port)
		return 0;
	if (rule->port_count == NETRULE_PORT_MAX)
		return fail(r, "write a second line for the others", "has more than %d ports",
			NETRULE_PORT_MAX);
	for (size_t i = rule->port_count; i > at; i--)
		rule->ports[i] = rule->ports[i - 1];
	rule->ports[at] = port;
	rule->port_count++;
	return 0;
}

/* @text: the text behind the colon; NULL: no colon. */
static int read_ports(struct reading *r, const char *text)
{
	if (!text && !r->rule.deny) {
		r->rule.ports[r->rule.port_count++] = 80;
		r->rule.ports[r->rule.port_count++] = 443;
	}
	if (!text)
		return 0;
	for (;;) {
		const char *end = text;
		while (*end && *end != ',')
			end++;
		size_t length = (size_t)(end - text);
		int port = read_number(text, length, 65535);

		if (port <= 0)
			return fail(r, "HOST:PORT[,PORT ...], each 1 to 65535",
				"has the port '%.*s'", (int)(length < 12 ? length : 12), text);
		int failed = add_port(r, (uint16_t)port);
		if (failed < 0)
			return failed;
		if (!text[length])
			return 0;
		text += length + 1;
	}
}

/* --- addresses -------------------------------------------------------------------------------- */

/* Whether bits behind the prefix are set. Such a block is refused: there is one way to write each. */
static bool has_host_bits(const struct netrule *rule)
{
	uint8_t network[16] = { 0 };
	unsigned whole = rule->bits / 8, rest = rule->bits % 8;

	memcpy(network, rule->address, whole);
	if (rest)
		network[whole] = (uint8_t)(rule->address[whole] & 0xff << (8 - rest));
	return memcmp(network, rule->address, rule->family == 4 ? 4 : 16) != 0;
}

/* An `allow` line must name at least one address, and not all of them. */
static int check_block(struct reading *r)
{
	static const uint8_t zero[16];
	const struct netrule *rule = &r->rule;
	unsigned whole = rule->family == 4 ? 32 : 128;

	if (has_host_bits(rule))
		return fail(r, "write the block's first address before the '/'",
			"has bits set behind the first %u", rule->bits);
	if (rule->family == 6 && netrule_is_mapped(rule->address))
		return fail(r, "write the address of IPv4 itself", "is IPv4 in IPv6");
	if (rule->deny)
		return 0;
	if (rule->bits == 0)
		return fail(r, "that is the host's network: net host",
			"is every address of IPv%u", rule->family);
	if ((rule->family == 4 && rule->address[0] == 0 && rule->bits >= 8) ||
		(rule->bits == whole && memcmp(rule->address, zero, sizeof(zero)) == 0))
		return fail(r, "the host's own loopback is localhost", "is no host's address");
	return 0;
}

/* @text: the address; @bits: what stands behind '/', or NULL. */
static int read_block(struct reading *r, unsigned family, const char *text, const char *bits)
{
	unsigned most = family == 4 ? 32 : 128;
	int n = bits ? read_number(bits, strlen(bits), most) : (int)most;

	if (inet_pton(family == 4 ? AF_INET : AF_INET6, text, r->rule.address) != 1)
		return fail(r,
			family == 4 ? "an address of IPv4 is four decimal numbers, 192.0.2.1"
				    : "an address of IPv6 in brackets: [2001:db8::1]:443",
			"has no address of IPv%u", family);
	if (n < 0)
		return fail(r, NULL, "has no number of bits up to %u behind '/'", most);
	r->rule.kind = NETRULE_BLOCK;
	r->rule.family = (uint8_t)family;
	r->rule.bits = (uint8_t)n;
	return check_block(r);
}

/* Whether a reader of addresses could take @name for one: its last label is a number. */
static bool ends_in_number(const char *name)
{
	const char *dot = strrchr(name, '.');
	const char *last = dot ? dot + 1 : name;

	if (last[0] == '0' && last[1] == 'x')
		return last[2 + strspn(last + 2, "0123456789abcdef")] == '\0';
	return last[0] && last[strspn(last, "0123456789")] == '\0';
}

/* --- names ------------------------------------------------------------------------------------ */

static const char hint_name[] =
	"a name is labels of a-z, 0-9, '-' and '_', with dots between: example.org";

/*
 * Check the length and the hyphens of the label [@label, @label + @length); its bytes were checked
 * before.
 */
static int check_label(const struct reading *r, const char *label, size_t length)
{
	if (length == 0)
		return fail(r, hint_name, "has an empty label");
	if (length > 63)
		return fail(r, NULL, "has a label of more than 63 bytes");
	if (label[0] == '-' || label[length - 1] == '-')
		return fail(r, hint_name, "has a label with '-' at its end");
	return 0;
}

/* One pass: ten thousand rules are read before a session begins. */
static int check_name(const struct reading *r, const char *name, size_t size)
{
	const char *label = name;

	if (size > NETRULE_NAME_MAX)
		return fail(r, NULL, "has a name of more than %d bytes", (int)NETRULE_NAME_MAX);
	for (const char *p = name;; p++) {
		char c = *p;

		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')
			continue;
		if (c == '*')
			return fail(r, "a wildcard is the whole first label: *.example.org",
				"has a wildcard elsewhere");
		if (c != '.' && c != '\0')
			return fail(r, hint_name, "is no name");
		int failed = check_label(r, label, (size_t)(p - label));
		if (failed < 0 || c == '\0')
			return failed;
		label = p + 1;
	}
}

/* @host: lower case, writable, in the arena. */
static int read_name(struct reading *r, char *host)
{
	size_t length = strlen(host);

	if (length > 1 && host[length - 1] == '.')
		host[--length] = '\0';
	if (!strcmp(host, "*"))
		return fail(
			r, "that is the host's network: net host", "is every name there is");
	r->rule.kind = NETRULE_NAME;
	if (!strncmp(host, "*.", 2)) {
		r->rule.kind = NETRULE_BELOW;
		host += 2;
		length -= 2;
	}
	int failed = check_name(r, host, length);
	if (failed < 0)
		return failed;
	if (ends_in_number(host))
		return fail(r, "an address of IPv4 is four decimal numbers, 192.0.2.1",
			"looks like an address and is none");
	if (!strcmp(host, "localhost") && r->rule.kind == NETRULE_NAME) {
		r->rule.kind = NETRULE_LOCALHOST;
		return 0;
	}
	const char *last = strrchr(host, '.');
	if (!strcmp(last ? last + 1 : host, "localhost"))
		return fail(r, "the host's own loopback is localhost",
			"is below localhost, where no name is another host's");
	r->rule.name = host;
	return 0;
}

/* --- all of it -------------------------------------------------------------------------------- */

/* No part of a rule may have these characters. */
static int check_bytes(const struct reading *r, const char *text)
{
	const char *p = text;

	for (; *p; p++) {
		if ((unsigned char)*p >= 0x80)
			return fail(r, "write its form in ASCII, xn--..., as idn2(1) prints it",
				"is not ASCII");
		if (*p <= ' ' || *p == 0x7f)
			return fail(r, hint_name, "has a blank or a control character");
		if (p[0] == ':' && p[1] == '/' && p[2] == '/')
			return fail(r, "without scheme and path: example.org:443",
				"is a URL, not a host");
	}
	if (p - text >= NETRULE_TEXT_MAX)
		return fail(r, NULL, "has more than %d bytes", NETRULE_TEXT_MAX - 1);
	return 0;
}

/* "[ADDRESS]", "[ADDRESS]/BITS"; @text stands behind the first bracket. */
static int read_bracketed(struct reading *r, char *text)
{
	char *end = strchr(text, ']');
	char *rest = end ? end + 1 : NULL, *ports = rest ? strchr(rest, ':') : NULL;

	if (!end || (*rest && *rest != ':' && *rest != '/'))
		return fail(
			r, "[2001:db8::1]:443, [2001:db8::]/32", "has no address in brackets");
	*end = '\0';
	if (ports)
		*ports++ = '\0';
	int failed = read_block(r, 6, text, *rest == '/' ? rest + 1 : NULL);
	return failed < 0 ? failed : read_ports(r, ports);
}

static int read_host(struct reading *r, char *text)
{
	char *ports = strchr(text, ':');

	if (ports && strchr(ports + 1, ':'))
		return fail(r, "an address of IPv6 stands in brackets: [2001:db8::1]:443",
			"has more than one ':'");
	if (ports)
		*ports++ = '\0';
	char *bits = strchr(text, '/');
	struct in_addr four;
	int failed;

	if (bits)
		*bits++ = '\0';
	if (!*text)
		return fail(r, hint_name, "has no host");
	for (char *p = text; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
	/* Most rules are names: only what begins with a digit is tried as an address. */
	bool is_four = *text >= '0' && *text <= '9' && inet_pton(AF_INET, text, &four) == 1;
	if (bits || is_four)
		failed = read_block(r, 4, text, bits);
	else
		failed = read_name(r, text);
	return failed < 0 ? failed : read_ports(r, ports);
}

/* Each byte of a plain name in lower case; 0 for a byte that no plain name has. */
static const char plain_bytes[256] = {
	['-'] = '-',
	['.'] = '.',
	['_'] = '_',
#define SAME(c) [c] = c
#define LOWER(c) [(c) - 'a' + 'A'] = c, [c] = c
	SAME('0'),
	SAME('1'),
	SAME('2'),
	SAME('3'),
	SAME('4'),
	SAME('5'),
	SAME('6'),
	SAME('7'),
	SAME('8'),
	SAME('9'),
	LOWER('a'),
	LOWER('b'),
	LOWER('c'),
	LOWER('d'),
	LOWER('e'),
	LOWER('f'),
	LOWER('g'),
	LOWER('h'),
	LOWER('i'),
	LOWER('j'),
	LOWER('k'),
	LOWER('l'),
	LOWER('m'),
	LOWER('n'),
	LOWER('o'),
	LOWER('p'),
	LOWER('q'),
	LOWER('r'),
	LOWER('s'),
	LOWER('t'),
	LOWER('u'),
	LOWER('v'),
	LOWER('w'),
	LOWER('x'),
	LOWER('y'),
	LOWER('z'),
#undef SAME
#undef LOWER
};

/*
 * Whether [@label, @end) is surely a label; with @last: and no address and no `localhost` ends like
 * this.
 */
static bool is_plain_label(const char *label, const char *end, bool last)
{
	size_t length = (size_t)(end - label);

	if (length == 0 || length > 63 || label[0] == '-' || end[-1] == '-')
		return false;
	return !last ||
		(label[0] >= 'a' && (length != 9 || memcmp(label, "localhost", 9) != 0));
}

/*
 * Copy @text in lower case to @own, up to a byte that no name has. Its length, or 0: it is no plain
 * name.
 */
static size_t copy_plain(const char *text, char *own)
{
	size_t length = 0, label = 0;

	for (;; length++) {
		char c = plain_bytes[(unsigned char)text[length]];

		if (length > NETRULE_NAME_MAX)
			return 0;
		own[length] = c;
		if (c && c != '.')
			continue;
		if (!is_plain_label(own + label, own + length, !c))
			return 0;
		if (!c)
			return length;
		label = length + 1;
	}
}

/*
 * Read a plain name in one pass, where the other functions take six: nearly every rule is one, and
 * ten thousand are read before a session begins. False: read_other() finds out what it is, or what
 * is wrong with it.
 */
static bool read_plain(struct reading *r)
{
	size_t room, below = r->text[0] == '*' && r->text[1] == '.' ? 2 : 0;
	char *own = arena_rest(r->arena, &room);

	if (room < PLAIN_BYTES)
		return false;
	size_t length = copy_plain(r->text + below, own);
	const char *end = r->text + below + length;
	bool plain = length > 0 && (!*end || (*end == ':' && strlen(end) < PLAIN_PORTS)) &&
		read_ports(r, *end ? end + 1 : NULL) >= 0;

	if (!plain) {
		r->rule = (struct netrule){ .deny = r->rule.deny };
		(void)arena_keep(r->arena, 0, PLAIN_BYTES);
		return false;
	}
	r->rule.kind = below ? NETRULE_BELOW : NETRULE_NAME;
	r->rule.name = arena_keep(r->arena, length + 1, length + 1);
	return true;
}

static int read_other(struct reading *r)
{
	int failed = check_bytes(r, r->text);

	if (failed < 0)
		return failed;
	/* The name in the rule points into this copy. */
	char *own = arena_copy(r->arena, r->text, strlen(r->text));
	if (!own)
		return error_no_memory(r->e, "policy");
	return *own == '[' ? read_bracketed(r, own + 1) : read_host(r, own);
}

int netrule_parse(struct netrule *ret, struct arena *arena, bool deny, const char *text,
	const char *what, struct error *e)
{
	struct reading r = {
		.rule = { .deny = deny }, .arena = arena, .text = text, .what = what
	};

	if (!read_plain(&r)) {
		r.e = e;
		int failed = read_other(&r);
		if (failed < 0)
			return failed;
	}
	*ret = r.rule;
	return 0;
}

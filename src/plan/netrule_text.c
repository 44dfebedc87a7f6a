/*
 * netrule_text.c - a rule written as it is read, and compared with another.
 *
 * Runs in: the launcher, carrel-policy. PURE.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "plan/netrule.h"

/* --- as text ---------------------------------------------------------------------------------- */

static char *put_text(char *at, const char *text)
{
	while (*text)
		*at++ = *text++;
	return at;
}

static char *put_number(char *at, unsigned number)
{
	unsigned place = 1;

	while (number / place >= 10)
		place *= 10;
	for (; place > 0; place /= 10)
		*at++ = (char)('0' + number / place % 10);
	return at;
}

static char *put_block(char *at, const struct netrule *rule)
{
	bool four = rule->family == 4;

	if (!four)
		*at++ = '[';
	if (!inet_ntop(four ? AF_INET : AF_INET6, rule->address, at, INET6_ADDRSTRLEN))
		return NULL;
	at += strlen(at);
	if (!four)
		*at++ = ']';
	if (rule->bits < (four ? 32 : 128)) {
		*at++ = '/';
		at = put_number(at, rule->bits);
	}
	return at;
}

static char *put_host(char *at, const struct netrule *rule)
{
	switch (rule->kind) {
	case NETRULE_LOCALHOST:
		return put_text(at, "localhost");
	case NETRULE_BELOW:
		return put_text(put_text(at, "*."), rule->name);
	case NETRULE_NAME:
		return put_text(at, rule->name);
	case NETRULE_BLOCK:
		break;
	}
	return put_block(at, rule);
}

static char *put_ports(char *at, const struct netrule *rule)
{
	if (rule->port_count == 2 && rule->ports[0] == 80 && rule->ports[1] == 443)
		return put_text(at, ":80,443"); /* nearly all */
	for (unsigned i = 0; i < rule->port_count; i++) {
		*at++ = i == 0 ? ':' : ',';
		at = put_number(at, rule->ports[i]);
	}
	return at;
}

int netrule_format(const struct netrule *rule, char *ret, size_t size)
{
	char own[NETRULE_TEXT_MAX]; /* every rule that was read fits */
	char *text = size < sizeof(own) ? own : ret, *at = put_host(text, rule);

	if (!at)
		return -errno;
	at = put_ports(at, rule);
	*at++ = '\0';
	size_t length = (size_t)(at - text);
	if (length > size)
		return -ENOBUFS;
	if (text == own)
		memcpy(ret, own, length);
	return (int)length - 1;
}

/* --- compared --------------------------------------------------------------------------------- */

bool netrule_same(const struct netrule *a, const struct netrule *b)
{
	return a->kind == b->kind && a->deny == b->deny && a->family == b->family &&
		a->bits == b->bits && a->port_count == b->port_count &&
		!memcmp(a->address, b->address, sizeof(a->address)) &&
		!memcmp(a->ports, b->ports, a->port_count * sizeof(a->ports[0])) &&
		(a->name ? !strcmp(a->name, b->name) : !b->name);
}

uint32_t netrule_hash(const struct netrule *rule)
{
	uint32_t hash = rule->name ? hash_bytes(rule->name, strlen(rule->name))
				   : hash_bytes(rule->address, sizeof(rule->address));

	return hash ^ hash_bytes(rule->ports, sizeof(rule->ports));
}

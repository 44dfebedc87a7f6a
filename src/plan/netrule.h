/*
 * netrule.h - what a session may reach: the lines `allow` and `deny`, read and asked.
 *
 * Runs in: the launcher and carrel-policy (which read policies), and carrel-egress (which decides). PURE.
 *
 * A rule is HOST[:PORT[,PORT ...]]. HOST is a name (example.org), a wildcard (*.example.org: every name below, never
 * example.org itself), `localhost` (the host's own loopback, both families), an address (192.0.2.1, [2001:db8::1]) or a block of them (192.0.2.0/24, [2001:db8::]/32).
 * Without ports an `allow` is for 80 and 443, and a `deny` for every port. Names are kept in lower case without a dot at their end; a name that is not ASCII is refused,
 * and the remedy is its form in punycode (RFC 5891). `deny` wins over `allow`, whichever comes first.
 *
 * See: RFC 1123 2.1 and RFC 1035 2.3.4 (names: 253 bytes, labels of 63), RFC 4291 (addresses).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum {
	NETRULE_NAME_MAX = 253,  /* bytes of a name, RFC 1035 */
	NETRULE_PORT_MAX = 16,   /* ports of one rule */
	NETRULE_LISTEN_MAX = 64, /* different ports of one policy */
	NETRULE_TEXT_MAX = 512,  /* bytes of a rule as text */
};

enum netrule_kind {
	NETRULE_NAME,
	NETRULE_BELOW, /* *.NAME */
	NETRULE_BLOCK, /* addresses that share `bits` leading bits */
	NETRULE_LOCALHOST,
};

struct netrule {
	enum netrule_kind kind;
	bool deny;
	uint8_t family;                   /* BLOCK: 4 or 6 */
	uint8_t bits;                     /* BLOCK: 32 or 128 for one address */
	uint8_t address[16];              /* BLOCK: network order; the first 4 bytes of IPv4 */
	uint8_t port_count;               /* 0 with `deny`: every port */
	uint16_t ports[NETRULE_PORT_MAX]; /* host order, ascending, each once */
	const char *name; /* NAME, BELOW (without "*."); borrowed or in the arena; else NULL */
};

/*
 * netrule_parse - read @text. @arena: owns the name. @what: the setting, for the message.
 * Returns 0, or -errno with @e (ERROR_POLICY; the caller says where).
 */
MUST_CHECK int netrule_parse(struct netrule *ret, struct arena *arena, bool deny,
	const char *text, const char *what, struct error *e);

/*
 * netrule_format - write the rule as netrule_parse() reads it. The ports are always written; only a
 * deny may have none. Returns the length or -ENOBUFS.
 */
int netrule_format(const struct netrule *rule, char *ret, size_t size);

/* netrule_same - whether both say the same. netrule_hash - a number that is the same for two of these. */
bool netrule_same(const struct netrule *a, const struct netrule *b);
uint32_t netrule_hash(const struct netrule *rule);

/* A set of rules, made for asking: names by a hash table. In an arena. */
struct netrules;

/* netrules_make - from @count rules (borrowed, in policy order). 0 or -ENOMEM. */
MUST_CHECK int netrules_make(
	struct netrules **ret, struct arena *arena, const struct netrule *rules, size_t count);

/*
 * netrules_add - add one rule (borrowed). Its number is the count of the rules before it, those of
 * netrules_make() included. 0 or -ENOMEM.
 */
MUST_CHECK int netrules_add(struct netrules *set, const struct netrule *rule);

/*
 * netrules_remove - take rule @number out of the set; the others keep their numbers. 0, or -ENOENT:
 * there is no such rule (any more).
 */
MUST_CHECK int netrules_remove(struct netrules *set, size_t number);

/*
 * netrules_name - whether @name (lower case, no dot at its end) may be reached at @port; port 0: at
 * any port.
 * netrules_address - whether this address may, by an address rule or `localhost`. @family: 4 or 6. A
 * block allows an address that is not public only if the whole block lies in the same special range
 * (10.1.0.0/16 does, 0.0.0.0/1 does not). A `deny` of an IPv4 address also holds for it inside IPv6.
 * Both: *@ret_rule is the number of the rule that decided, also of the `deny` behind a no. -1: no rule
 * did, and the answer is no.
 */
bool netrules_name(const struct netrules *set, const char *name, uint16_t port, int *ret_rule);
bool netrules_address(const struct netrules *set, unsigned family, const uint8_t *address,
	uint16_t port, int *ret_rule);

/*
 * netrules_is_public - whether an address is of the public internet: not loopback, private,
 * link-local, shared (100.64/10), multicast, unspecified, documentation, benchmarking (where the
 * session's own block lies) or reserved; IPv4 inside IPv6 counts as the IPv4 address.
 * See: the IANA special-purpose address registries (RFC 6890).
 */
bool netrules_is_public(unsigned family, const uint8_t *address);

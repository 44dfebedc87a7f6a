/*
 * names.h - the names of the session. Each has an address of each block as long as the session lives, and the
 * addresses that it leads to as long as their time to live lasts.
 *
 * Runs in: carrel-egress.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "egress/dns_message.h"
#include "egress/loop.h"

struct egress;
struct upstream;
struct name;

/* Waits for a name to be resolved. */
struct waiter {
	struct waiter *next;
	struct name *name; /* NULL: it does not wait */
	/* @error: 0; -ENOENT: there is no such name, or it has no address; or why it could not be resolved. */
	void (*done)(struct waiter *waiter, struct name *name, int error);
};

struct name {
	struct doomed doomed;
	struct name *next;          /* of the same slot */
	struct name *newer, *older; /* among those without an address */
	struct upstream *upstream;  /* while it is being resolved */
	struct waiter *waiters;
	uint32_t hash;
	uint32_t index;     /* of its address in the block; 0: it has none */
	int64_t expires_ms; /* what follows holds until then; 0: nothing is known */
	int error;          /* as waiter.done() gets it */
	bool exists;        /* with -ENOENT: the name exists, but has no address */
	size_t four_count, six_count;
	uint8_t four[DNS_ADDRESSES_MAX][4], six[DNS_ADDRESSES_MAX][16];
	char text[];
};

/* names_init - 0 or -ENOMEM. */
MUST_CHECK int names_init(struct egress *eg);

/* names_get - the entry of @text; makes it if there is none; NULL: no room. It stays while somebody waits for it. */
struct name *names_get(struct egress *eg, const char *text);

/*
 * names_resolve - call waiter->done(), now or later. With a proxy of the host's network (rules.h) a name that hosts(5) does not
 * have counts as resolved, with only the session's own address. The proxy's own name is resolved as without a proxy.
 * names_cancel - do not call it.
 */
void names_resolve(struct egress *eg, struct name *name, struct waiter *waiter);
void names_cancel(struct waiter *waiter);

/* names_is_own - whether @address is the session's own: of one of its blocks, or its loopback. @family: 4 or 6. */
bool names_is_own(unsigned family, const uint8_t *address);

/* names_at - the name that has @address (of one of the session's blocks); NULL: none has it. @family: 4 or 6. */
struct name *names_at(struct egress *eg, unsigned family, const uint8_t *address);

/*
 * names_address - the address of a name that has one, network order: 4 or 16 bytes. The IPv6 address has the number of the
 * IPv4 address in its last 32 bits.
 */
void names_address(const struct name *name, unsigned family, uint8_t *ret);

/*
 * names_resolved - upstream.c calls it with the answer. @error as waiter.done() gets it; @ttl: seconds. The addresses are in
 * @name already.
 */
void names_resolved(struct egress *eg, struct name *name, int error, uint32_t ttl);

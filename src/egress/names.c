/*
 * names.c - see names.h.
 *
 * Runs in: carrel-egress.
 */
#include "egress/names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "egress/egress.h"
#include "egress/upstream.h"
#include "host/egress/wire.h"

enum {
	SLOTS = 8192,
	TTL_LEAST = 10, /* seconds: a tool cannot make it ask for a name more often */
	TTL_MOST = 3600,
	TTL_FAILED = 2,
};

int names_init(struct egress *eg)
{
	struct names *n = &eg->names;

	n->slots = calloc(SLOTS, sizeof(*n->slots));
	n->by_index = calloc(NAMES_MAX + 1, sizeof(*n->by_index));
	n->slot_count = SLOTS;
	int r = fd_random(&n->seed, sizeof(n->seed));
	return r < 0 ? r : n->slots && n->by_index ? 0 : -ENOMEM;
}

/* The tool chooses the names below a wildcard: the seed keeps it from choosing those of one slot. */
static uint32_t hash_name(const struct names *n, const char *text)
{
	uint32_t hash = n->seed;

	for (; *text; text++) {
		hash = (hash ^ (uint8_t)*text) * 0x9e3779b1u;
		hash ^= hash >> 15;
	}
	return hash;
}

static void loose_remove(struct names *n, struct name *name)
{
	*(name->older ? &name->older->newer : &n->loose_first) = name->newer;
	*(name->newer ? &name->newer->older : &n->loose_last) = name->older;
	name->older = name->newer = NULL;
	n->loose--;
}

static void forget(struct egress *eg, struct name *name)
{
	struct names *n = &eg->names;
	struct name **at = &n->slots[name->hash & (n->slot_count - 1)];

	while (*at != name)
		at = &(*at)->next;
	*at = name->next;
	loose_remove(n, name);
	loop_free(&eg->loop, &name->doomed);
}

/* Make room for one more name without an address: forget the oldest that no query waits for. */
static bool make_room(struct egress *eg)
{
	struct name *oldest = eg->names.loose_first;

	while (eg->names.loose >= LOOSE_MAX && oldest) {
		struct name *next = oldest->newer;

		if (!oldest->upstream && !oldest->waiters)
			forget(eg, oldest);
		oldest = next;
	}
	return eg->names.loose < LOOSE_MAX;
}

struct name *names_get(struct egress *eg, const char *text)
{
	struct names *n = &eg->names;
	size_t length = strlen(text);
	uint32_t hash = hash_name(n, text);
	struct name **slot = &n->slots[hash & (n->slot_count - 1)], *name;

	for (name = *slot; name; name = name->next)
		if (name->hash == hash && !strcmp(name->text, text))
			return name;
	name = make_room(eg) ? calloc(1, sizeof(*name) + length + 1) : NULL;
	if (!name)
		return NULL;
	memcpy(name->text, text, length + 1);
	name->hash = hash;
	name->next = *slot;
	*slot = name;
	name->older = n->loose_last;
	*(n->loose_last ? &n->loose_last->newer : &n->loose_first) = name;
	n->loose_last = name;
	n->loose++;
	return name;
}

/* No name has the first address of the block. */
static bool assign(struct names *n, struct name *name)
{
	if (n->assigned == NAMES_MAX)
		return false;
	loose_remove(n, name);
	name->index = ++n->assigned;
	n->by_index[name->index] = name;
	return true;
}

/* The first addresses of the blocks, which are constants. */

static uint32_t block_start(void)
{
	struct in_addr start;

	(void)inet_pton(AF_INET, EGRESS_BLOCK, &start);
	return ntohl(start.s_addr);
}

static void block_start_six(uint8_t ret[16])
{
	(void)inet_pton(AF_INET6, EGRESS_BLOCK_SIX, ret);
}

void names_address(const struct name *name, unsigned family, uint8_t *ret)
{
	uint32_t number = htonl(family == 4 ? block_start() + name->index : name->index);

	if (family == 6)
		block_start_six(ret);
	memcpy(ret + (family == 4 ? 0 : 12), &number, sizeof(number));
}

bool names_is_own(unsigned family, const uint8_t *address)
{
	static const uint8_t loopback[16] = { [15] = 1 };
	uint8_t start[16];
	uint32_t four;

	if (family == 6) {
		block_start_six(start);
		return !memcmp(address, start, 8) || !memcmp(address, loopback, 16);
	}
	memcpy(&four, address, sizeof(four));
	return (ntohl(four) ^ block_start()) >> (32 - EGRESS_BLOCK_BITS) == 0 ||
		address[0] == 127;
}

struct name *names_at(struct egress *eg, unsigned family, const uint8_t *address)
{
	uint8_t start[16];
	uint32_t wanted;

	if (family == 6) {
		block_start_six(start);
		if (memcmp(address, start, 12) != 0)
			return NULL;
	}
	memcpy(&wanted, address + (family == 4 ? 0 : 12), sizeof(wanted));
	wanted = ntohl(wanted) - (family == 4 ? block_start() : 0);
	return wanted > 0 && wanted <= eg->names.assigned ? eg->names.by_index[wanted] : NULL;
}

static void call_waiters(struct name *name)
{
	while (name->waiters) {
		struct waiter *waiter = name->waiters;

		name->waiters = waiter->next;
		waiter->next = NULL;
		waiter->name = NULL;
		waiter->done(waiter, name, name->error);
	}
}

void names_resolved(struct egress *eg, struct name *name, int error, uint32_t ttl)
{
	uint32_t least = error < 0 && error != -ENOENT ? TTL_FAILED : TTL_LEAST;

	if (error == 0 && name->index == 0 && !assign(&eg->names, name))
		error = -ENOSPC;
	if (error < 0 && error != -ENOENT) {
		const struct event event = { .decision = error == -ENOSPC ? EGRESS_DENIED_LIMIT
									  : EGRESS_FAILED,
			.name = name->text,
			.rule = -1,
			.errnum = -error };

		ttl = TTL_FAILED;
		tell_event(&eg->tell, &event);
	}
	if (ttl < least)
		ttl = least;
	if (ttl > TTL_MOST)
		ttl = TTL_MOST;
	name->error = error;
	name->expires_ms = eg->loop.now_ms + (int64_t)ttl * 1000;
	call_waiters(name);
}

/* Look in the host's hosts(5), as a program outside would. */
static bool resolve_here(struct egress *eg, struct name *name)
{
	return rules_hosts(eg->rules.hosts, name->text, DNS_ADDRESSES_MAX, name->four,
		&name->four_count, name->six, &name->six_count);
}

/* Whether it reaches the name through the proxy of the host's network, which resolves it. Not so for the proxy's own name. */
static bool is_proxied(const struct egress *eg, const struct name *name)
{
	const struct netrule *proxy = eg->rules.proxy;

	return proxy && (proxy->kind != NETRULE_NAME || strcmp(proxy->name, name->text) != 0);
}

void names_resolve(struct egress *eg, struct name *name, struct waiter *waiter)
{
	if (!name->upstream && name->expires_ms > eg->loop.now_ms) {
		waiter->done(waiter, name, name->error);
		return;
	}
	waiter->name = name;
	waiter->next = name->waiters;
	name->waiters = waiter;
	if (name->upstream)
		return;
	if (resolve_here(eg, name) || is_proxied(eg, name))
		names_resolved(eg, name, 0, TTL_MOST);
	else
		upstream_ask(eg, name);
}

void names_cancel(struct waiter *waiter)
{
	if (!waiter->name)
		return;
	struct waiter **at = &waiter->name->waiters;
	while (*at != waiter)
		at = &(*at)->next;
	*at = waiter->next;
	waiter->next = NULL;
	waiter->name = NULL;
}

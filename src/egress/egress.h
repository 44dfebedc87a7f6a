/*
 * egress.h - the whole state of carrel-egress, in one place: its parts know each other through this.
 *
 * Runs in: carrel-egress. It reads bytes of the session's programs (queries, connections) and of the network (answers,
 * servers). Everything that these can make it hold has a bound in here.
 */
#pragma once

#include "egress/loop.h"
#include "egress/rules.h"
#include "egress/tell.h"
#include "plan/policy.h"

enum {
	NAMES_MAX = 16384,  /* names that have an address; 131,070 are in the block */
	LOOSE_MAX = 1024,   /* names that were asked for and have none */
	LOOKUPS_MAX = 128,  /* names that it asks for upstream at one time */
	PENDING_MAX = 1024, /* queries that wait for an answer */
	DNS_CONNECTIONS_MAX = 32,
	CONNECTIONS_DEFAULT = 1024,
	LISTENERS_MAX = NETRULE_LISTEN_MAX * 2 + 8,
	PUBLISH_POOL_MAX = 64, /* connections to servers inside, by one family */
	EGRESS_TLS_PORT = 443,
	EGRESS_PROXY_PORT = 3128, /* as PLAN_PROXY_PORT */
	BUFFER_SIZE = 1 << 17,    /* bytes that are read at once */
};

struct name;
struct connection;
struct proxy;

struct names {
	struct name **slots; /* a hash table of slot_count, a power of two */
	size_t slot_count;
	struct name **by_index; /* [1 .. assigned] */
	uint32_t assigned;
	struct name *loose_first, *loose_last; /* without an address, oldest first */
	size_t loose;
	size_t lookups;
	uint32_t seed;
};

struct egress {
	struct loop loop;
	struct rules rules;
	struct names names;
	struct tell tell;
	struct watch channel;
	bool six;         /* the session's block of IPv6 stands */
	bool failed;      /* the supervisor is gone, or has sent what cannot be */
	struct watch dns; /* UDP */
	size_t pending, dns_connections;
	struct listener {
		struct watch watch; /* the first member */
		struct egress *egress;
		bool dns;
	} listeners[LISTENERS_MAX];
	size_t listener_count;
	struct refused {
		struct watch watch; /* the first member */
		struct egress *egress;
	} refused[2]; /* IPv4 and IPv6: refused.h */
	size_t refused_count;
	struct timer pause; /* the listeners are not watched meanwhile */
	struct publish {
		struct published {
			struct egress *egress;
			uint16_t port; /* inside */
			struct published_listener {
				struct watch watch; /* the first member */
				struct published *of;
			} listeners[2]; /* of the host, both families */
			size_t listener_count;
			/* Sockets of the session, of IPv4 and of IPv6: its own, so that no port takes them from another. */
			int free[2][PUBLISH_POOL_MAX];
			size_t free_count[2];
			size_t trying; /* connections that may still need one of IPv6 */
			bool paused, has_six;
		} ports[PUBLISH_MAX];
		size_t port_count;
		size_t next[2]; /* which port gets the next socket of the pool */
	} publish;
	struct connection *connections;
	struct proxy *proxies; /* connections to the proxy that are no tunnel */
	size_t connection_count, connection_max; /* of both */
	uint64_t bytes;                          /* of all connections, both ways */
	uint8_t *buffer;                         /* BUFFER_SIZE, for the moment of one call */
};

#define CONTAINER(pointer, type, member) \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

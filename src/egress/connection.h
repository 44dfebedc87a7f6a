/*
 * connection.h - one connection of the session, from its first byte to its report.
 *
 * Runs in: carrel-egress.
 */
#pragma once

#include "egress/dial.h"
#include "egress/flow.h"
#include "egress/hello.h"
#include "egress/proxy.h"
#include "egress/reach.h"

struct egress;

struct connection {
	struct doomed doomed;
	struct connection *prev, *next;
	struct egress *egress;
	struct side {
		struct watch watch; /* the first member */
		struct connection *connection;
	} sides[SIDES];
	struct flow flows[SIDES]; /* flows[INNER]: what the program sends */
	struct timer timer;
	struct reach reach;
	struct hello *hello;  /* while the program's first bytes are checked */
	struct name *name;    /* NULL: an address rule allows it */
	struct target local;  /* what the program has connected to */
	struct target server; /* family 0: not connected */
	uint16_t port;
	int rule;
	enum proxy_kind asked; /* a proxy that has not answered yet */
	bool relaying;
	bool published; /* from the host to a server inside: INNER is the host's program, OUTER the session's */
	int64_t began_ns;
};

/* How a connection begins. */
struct opening {
	struct target local; /* what the program has connected to */
	uint16_t port;
	struct name *name; /* the name that has that address, or NULL */
	int rule;          /* the rule that allows it */
	enum proxy_kind asked;
	const uint8_t *early; /* what the program has sent already */
	size_t early_size;
};

/* connection_begin - @fd: accepted, taken. @opening: borrowed. */
void connection_begin(struct egress *eg, int fd, const struct opening *opening);

/*
 * connection_join - relay between @host, which has connected to a published port, and @inside, a socket of the pool (publish.h) that
 * is connected to port @port of the session, and goes back to the pool. Both are taken.
 */
void connection_join(struct egress *eg, int host, int inside, uint16_t port);

/* connection_tell - report that it has ended, with its bytes. @errnum: 0, or what ended it. */
void connection_tell(struct connection *c, int errnum);

/* connection_cut - rule number @rule was taken back: reset the connections that it allowed, unless another rule does. */
void connection_cut(struct egress *eg, int rule);

/* connection_reset - close @fd so that the program sees a reset, not an end. */
void connection_reset(int fd);

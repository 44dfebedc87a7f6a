/*
 * reach.h - connects out: to a name, at one of its addresses that may be reached or through the proxy of the host's network, or
 * to an address.
 *
 * Runs in: carrel-egress.
 */
#pragma once

#include "egress/dial.h"
#include "egress/names.h"
#include "egress/tunnel.h"
#include "host/egress/wire.h"

struct egress;

/* What came of it. */
struct reached {
	int fd; /* connected, the callee's; or -1, and the rest says why */
	enum egress_decision decision;
	int errnum;
	const char *why;
};

struct reach {
	struct egress *egress;
	struct waiter waiter;
	struct dial *dial;
	struct tunnel tunnel;
	struct name *name; /* NULL: to an address */
	struct target
		server; /* that address; in the end what is connected, or an address that is refused; family 0: none */
	bool by_proxy; /* the proxy is dialled, and asked for the name */
	uint16_t port;
	void (*done)(struct reach *r, const struct reached *what);
};

/*
 * reach_start - begin, and call done() once, perhaps before this returns. @r: the caller's, zeroed but for egress, name or server, port
 * and done.
 */
void reach_start(struct reach *r);

/* reach_cancel - stop, and do not call done(). If nothing is under way it does nothing. */
void reach_cancel(struct reach *r);

/* reach_may - whether @name, which is resolved, has an address that may be reached at @port; if not, *@ret_first is one that may not. */
bool reach_may(
	struct egress *eg, const struct name *name, uint16_t port, struct target *ret_first);

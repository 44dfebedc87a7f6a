/*
 * tunnel.h - CONNECT: makes a connection to the proxy of the host's network into one to the host of a name.
 *
 * Runs in: carrel-egress.
 *
 * See: RFC 9110 9.3.6 (CONNECT), RFC 7617 (the login).
 */
#pragma once

#include <stdint.h>

#include "egress/loop.h"

struct egress;

struct tunnel {
	struct watch watch; /* the first member; fd -1: nothing is on its way */
	struct egress *egress;
	/* @fd: connected to the host that was asked for, the callee's; or -1, and @errnum and @why say what the proxy did. */
	void (*done)(struct tunnel *t, int fd, int errnum, const char *why);
};

/*
 * tunnel_start - ask the proxy at the other end of @fd (taken) for @host, a name in lower case, at @port. done() is called
 * once, perhaps before this returns; the caller bounds the time. @t: the caller's, zeroed but for egress and done.
 */
void tunnel_start(struct tunnel *t, int fd, const char *host, uint16_t port);

/* tunnel_cancel - stop, and do not call done(). If nothing is under way it does nothing. */
void tunnel_cancel(struct tunnel *t);

/*
 * forward.h - passes an HTTP request with the whole address (GET http://host/), without a tunnel, to its server, and the response back.
 *
 * Runs in: carrel-egress.
 *
 * A client may send many over one connection; proxy.c has decided about each before it comes here. There is a connection to one
 * server at a time, which is kept for the next request to the same host and port.
 */
#pragma once

#include "egress/proxy.h"

/* forward_request - p->request stands at the front of what the client has sent, and may go to p->wanted. */
void forward_request(struct proxy *p);

/* forward_ready - something can be read or written. */
void forward_ready(struct proxy *p);

/* forward_close - end the server's connection, if there is one, and report it. @errnum: 0, or what ended it. */
void forward_close(struct proxy *p, int errnum);

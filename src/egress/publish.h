/*
 * publish.h - ports of the session's servers on the host's loopback: connections from the host to servers inside.
 *
 * Runs in: carrel-egress. It listens on sockets that the supervisor made in the host's network, and connects with sockets that init made in
 * the session's network before any program ran there. Each of these serves again and again, for the same port. When all of a port are in use, the
 * next connection waits in the host's queue. A program inside can only be the server of a published port.
 */
#pragma once

#include "base/error.h"
#include "egress/loop.h"

struct egress;

/* publish_listen - connections to @fd (taken) go to 127.0.0.1 or ::1, port @port, in the session. 0 or -errno. */
MUST_CHECK int publish_listen(struct egress *eg, int fd, uint16_t port);

/* publish_pool - @fd (taken): a socket of the session that is not connected. 0 or -errno. */
MUST_CHECK int publish_pool(struct egress *eg, int fd);

/*
 * publish_give_back - the connection of @watch is over: its socket goes back to the pool, and @watch has none. @port: the port that it was for. @reset: at
 * once; otherwise when the server inside has taken what was sent to it.
 */
void publish_give_back(struct egress *eg, struct watch *watch, uint16_t port, bool reset);

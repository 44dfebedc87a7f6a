/*
 * server.h - the session's resolver: queries over UDP and TCP from its programs, and their answers.
 *
 * Runs in: carrel-egress.
 *
 * The answer for a name that no rule allows is NXDOMAIN at once, and the name goes no further. For an allowed name it is its
 * addresses of the two blocks (A and AAAA); for every other type the answer is empty. `localhost` is the session's own loopback (RFC 6761).
 */
#pragma once

#include "base/error.h"

struct egress;
struct watch;

/* server_start - answer on the UDP socket @fd, which is taken. 0 or -errno. */
MUST_CHECK int server_start(struct egress *eg, int fd);

/* server_accept - a connection to the resolver, @fd, which is taken. */
void server_accept(struct egress *eg, int fd);

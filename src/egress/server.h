/*
 * server.h - the session's resolver: queries over UDP and TCP from its programs, and their answers.
 *
 * Runs in: carrel-egress.
 *
 * A name that no rule allows is NXDOMAIN at once and goes no further. An allowed one has its address of the block as A;
 * for every other type the answer is empty. `localhost` is the session's own loopback (RFC 6761).
 */
#pragma once

#include "base/error.h"

struct egress;
struct watch;

/* server_start - answer on the UDP socket @fd, which is taken. 0 or -errno. */
MUST_CHECK int server_start(struct egress *eg, int fd);

/* server_accept - a connection to the resolver, @fd, which is taken. */
void server_accept(struct egress *eg, int fd);

/*
 * upstream.h - asking the host's resolvers for the addresses of a name.
 *
 * Runs in: carrel-egress.
 *
 * A and AAAA at once, over a UDP socket of its own for each attempt (a port that nobody can guess), and over TCP where
 * an answer did not fit. A server that does not answer, or says that it cannot, is followed by the next.
 */
#pragma once

struct egress;
struct name;

/* upstream_ask - names_resolved() is called once, perhaps before this returns. */
void upstream_ask(struct egress *eg, struct name *name);

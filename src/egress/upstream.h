/*
 * upstream.h - asks the host's resolvers for the addresses of a name.
 *
 * Runs in: carrel-egress.
 *
 * It asks for A and AAAA at once, over a UDP socket of its own for each attempt (a port that nobody can guess), and over TCP if
 * an answer did not fit. If a server does not answer, or says that it cannot, it asks the next.
 */
#pragma once

struct egress;
struct name;

/* upstream_ask - ask, and call names_resolved() once, perhaps before this returns. */
void upstream_ask(struct egress *eg, struct name *name);

/*
 * relay.h - takes the session's connections, and finds out which name each is for and whether it is allowed.
 *
 * Runs in: carrel-egress.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct egress;

/* relay_listen - accept connections from the listening socket @fd, which is taken. @dns: they are for the resolver. */
MUST_CHECK int relay_listen(struct egress *eg, int fd, bool dns);

/* relay_end - report every connection that is still open, and serve none any more. */
void relay_end(struct egress *eg);

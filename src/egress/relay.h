/*
 * relay.h - the session's connections: which name each is for, whether it may be, and its bytes.
 *
 * Runs in: carrel-egress.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct egress;

/* relay_listen - take connections from the listening socket @fd, which is taken. @dns: they are to the resolver. */
MUST_CHECK int relay_listen(struct egress *eg, int fd, bool dns);

/* relay_end - report every connection that is still open; none is served after that. */
void relay_end(struct egress *eg);

/*
 * cover_again.h - what the coverer's child does: stop the session, cover what is bare, see who had hold of it, go on.
 *
 * Runs in: the coverer's child (cover.h), outside; in the session's user and mount namespaces, one view after the
 * other. May not: hold the session still for longer than COVER_MOST_MS, or end well while something is bare.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "host/cover/cover.h"

enum { COVER_MOST_MS = 3000 };

/* cover_again - 0, or -errno with @t->board->failed; then the caller has to end, and the session with it. */
MUST_CHECK int cover_again(const struct cover_task *t);

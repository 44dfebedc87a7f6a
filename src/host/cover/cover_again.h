/*
 * cover_again.h - what the coverer's child does: stop the session, cover each bare place, kill who holds the file there, go on.
 *
 * Runs in: the coverer's child (cover.h), outside; in the session's user and mount namespaces, one view after the
 * other. May not: stop the session for longer than COVER_MOST_MS, or succeed while a place is bare.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "host/cover/cover.h"

enum { COVER_MOST_MS = 3000 };

/* cover_again - 0, or -errno with @t->board->failed; then the calling process has to end, which ends the session. */
MUST_CHECK int cover_again(const struct cover_task *t);

/*
 * quarantine_move.h - the rename that takes something to quarantine. Used by quarantine.c only.
 *
 * Runs in: the supervisor (host side), also while tools live.
 * May not: follow a link, copy, read.
 */
#pragma once

#include "host/quarantine/quarantine.h"

/* quarantine_prefix - open the leading @length bytes of @path (0: the root itself), O_PATH, no link followed. */
MUST_CHECK int quarantine_prefix(int root_fd, const char *path, size_t length, int flags);

/*
 * quarantine_note - note in carrel's records that what stands at the leading @length bytes of the item's path goes to
 * q->to, or (@done) has gone there. Sets q->id.
 */
void quarantine_note(
	struct quarantine *q, const struct quarantine_item *item, size_t length, bool done);

/*
 * quarantine_move - rename what stands at the leading @length bytes of the item's path.
 * Returns 1 where it was moved, with q->to; 0 where it had gone by itself; -errno where it still stands.
 */
MUST_CHECK int quarantine_move(
	struct quarantine *q, const struct quarantine_item *item, size_t length);

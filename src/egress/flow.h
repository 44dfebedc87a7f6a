/*
 * flow.h - one direction of a connection: what was read and not yet written, and whether it has ended.
 *
 * Runs in: carrel-egress.
 *
 * A flow holds bytes only while the reader is slower than the writer, or before they may be sent on. While it holds bytes
 * that may go, nothing more is read: the kernel's buffers push back.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum { INNER, OUTER, SIDES }; /* the session's program, the server; also the flows from them */

struct flow {
	uint8_t *data;                    /* NULL: nothing is held */
	size_t start, cleared, end, room; /* [start, cleared) may go, [cleared, end) not yet */
	uint64_t bytes;                   /* read in all */
	bool ended;                       /* the writer has sent its last byte */
	bool shut;                        /* and the reader was told */
};

/* flow_hold - hold @size bytes more; the caller clears them. 0 or -ENOMEM. */
MUST_CHECK int flow_hold(struct flow *f, const uint8_t *data, size_t size);

/* flow_send - send to @fd what may go. 0: all of it went; 1: @fd takes no more at the moment; -errno. */
MUST_CHECK int flow_send(struct flow *f, int fd);

/*
 * flow_pass - send @size bytes to @fd directly, while nothing is held; what @fd does not take is held, and cleared. 0, 1
 * or -errno as flow_send().
 */
MUST_CHECK int flow_pass(struct flow *f, int fd, const uint8_t *data, size_t size);

/* flow_take - remove @size bytes at the front, which were used otherwise; the rest are not cleared. */
void flow_take(struct flow *f, size_t size);

/* flow_drop - free what is held. */
void flow_drop(struct flow *f);

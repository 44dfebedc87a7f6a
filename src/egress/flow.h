/*
 * flow.h - one direction of a connection: what was read and not yet written, and whether it has ended.
 *
 * Runs in: carrel-egress.
 *
 * Bytes are held only where the reader is slower than the writer, or before they may be sent on. Nothing more is read
 * as long as some that may go are held: the kernel's buffers push back.
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
	uint64_t bytes;                   /* that were read in all */
	bool ended;                       /* the writer has said its last */
	bool shut;                        /* and the reader knows */
};

/* flow_hold - keep @size bytes behind those that are held; the caller clears them. 0 or -ENOMEM. */
MUST_CHECK int flow_hold(struct flow *f, const uint8_t *data, size_t size);

/* flow_send - what may go, to @fd. 0: all of it went; 1: @fd takes no more at the moment; -errno. */
MUST_CHECK int flow_send(struct flow *f, int fd);

/*
 * flow_pass - @size bytes to @fd, past what is held (which is nothing); what it does not take is held, cleared. 0, 1
 * or -errno as flow_send().
 */
MUST_CHECK int flow_pass(struct flow *f, int fd, const uint8_t *data, size_t size);

/* flow_take - @size bytes at the front were used otherwise; the rest are not cleared. */
void flow_take(struct flow *f, size_t size);

/* flow_drop - free what is held. */
void flow_drop(struct flow *f);

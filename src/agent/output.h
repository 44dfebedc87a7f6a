/*
 * output.h - what is still to be written to the client, in order.
 *
 * Runs in: carrel-agent, outside. May not: block, or change the open file description it writes to (the
 * caller shares it). It has no bound of its own: the code that adds to it checks output_pending(), and stops
 * reading the client while too much waits.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/buffer.h"

struct output {
	int fd;       /* written to; ours, or borrowed where `borrowed` is the same */
	int borrowed; /* the caller's descriptor */
	unsigned how; /* a kind of descriptor, see output.c */
	struct buffer b;
	size_t at; /* b.data[0..at) is written */
};

/* output_init - write to @fd, which stays the caller's. 0 or -errno. */
MUST_CHECK int output_init(struct output *o, int fd);

/* output_free - forget what waits. */
void output_free(struct output *o);

/* output_line - append a text and a newline. False: memory ran out, and nothing was appended. */
bool output_line(struct output *o, const char *text, size_t size);

/* output_pending - bytes that wait. */
size_t output_pending(const struct output *o);

/*
 * output_flush - write what can be written now.
 * Returns 0 when nothing waits, -EAGAIN when the reader is slow (wait for EPOLLOUT), else -errno: the
 * reader is gone.
 */
MUST_CHECK int output_flush(struct output *o);

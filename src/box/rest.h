/*
 * rest.h - how a process of a live session waits while nothing happens: it gives back the memory that it
 * does not need then.
 *
 * Runs in: init, monitors, the coverer and the supervisor of a live session. host/process/tuning.h
 * lists all that is done for speed or size alone, and why.
 */
#pragma once

#include <poll.h>
#include <sys/epoll.h>

#include "box/box.h"

enum { REST_AFTER_MS = 1000 }; /* long enough that a busy session never rests */

/*
 * rest_poll - wait for one of @count events, as poll(2) without a timeout; a process that waits for
 * long gives its memory back. Returns how many there are, or -errno.
 */
__attribute__((warn_unused_result)) int rest_poll(
	const struct box *box, struct pollfd *events, nfds_t count);

/* rest_epoll - give memory back at once, and wait as epoll_wait(2). Returns how many events, or -errno. */
__attribute__((warn_unused_result)) int rest_epoll(const struct box *box, int epoll,
	struct epoll_event *events, int count, int timeout_ms);

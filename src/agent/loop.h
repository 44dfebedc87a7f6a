/*
 * loop.h - one thread that waits for everything at once.
 *
 * Runs in: carrel-agent, outside. May not: keep a pointer to what was removed. The loop takes one event at a
 * time, so that the code that handles it may remove, and free, any other watch.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* A descriptor to wait for; it lies in the struct of its owner. */
struct watch {
	int fd;                                          /* borrowed */
	void (*ready)(struct watch *w, uint32_t events); /* EPOLL* */
	void *context;
	uint32_t events; /* what the loop waits for, 0: nothing; only loop.c writes it */
	bool added, always;
};

enum { LOOP_ALWAYS_MAX = 4 };

struct loop {
	int epoll;
	/* Regular files are always ready, and epoll(7) does not take them. */
	struct watch *always[LOOP_ALWAYS_MAX];
};

/* loop_open - 0 or -errno. loop_close - does not free the watches, which are their owners'. */
MUST_CHECK int loop_open(struct loop *l);
void loop_close(struct loop *l);

/* loop_watch - wait for @events of w->fd from now on; 0: only for errors and hang-ups. */
MUST_CHECK int loop_watch(struct loop *l, struct watch *w, uint32_t events);

/* loop_forget - do not wait for it any more. Call it before the descriptor is closed. */
void loop_forget(struct loop *l, struct watch *w);

/*
 * loop_close_watched - forget it and close its descriptor. Nobody else may have that descriptor: then epoll(7)
 * forgets it when it is closed.
 */
void loop_close_watched(struct loop *l, struct watch *w);

/* loop_turn - wait for one event, at most @timeout_ms (-1: for ever), and hand it on. 0 or -errno. */
MUST_CHECK int loop_turn(struct loop *l, int timeout_ms);

/* loop_now_ms - the monotonic clock. */
int64_t loop_now_ms(void);

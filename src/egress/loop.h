/*
 * loop.h - descriptors and timers, one thread: epoll(7), level-triggered.
 *
 * Runs in: carrel-egress.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/error.h"

/* All timers of one kind last equally long, so that each kind is a list in order. */
enum timer_kind {
	TIMER_SECOND,  /* 300 ms: wait for the other family's answer after the first */
	TIMER_EYEBALL, /* 250 ms: the next address, RFC 8305 */
	TIMER_PAUSE,   /* 100 ms: no descriptor was left to accept with */
	TIMER_TELL,    /* 1 s: refusals of one kind are put together */
	TIMER_ASK,     /* 2 s: one attempt to resolve */
	TIMER_DNS,     /* 10 s: a query over TCP */
	TIMER_HELLO,   /* 10 s: a ClientHello */
	TIMER_CONNECT, /* 20 s: resolve and connect */
	TIMER_HALF,    /* 5 min: one side has ended, nothing moves */
	TIMER_IDLE,    /* 1 h: nothing moves */
	TIMER_KINDS,
};

struct timer {
	struct timer *prev, *next; /* NULL: it is not set */
	int64_t at_ms;
	void (*fire)(struct timer *timer);
};

struct watch {
	int fd; /* -1: there is none */
	uint32_t events;
	void (*ready)(struct watch *watch, uint32_t events);
};

/* The first member of what loop_free() takes. */
struct doomed {
	struct doomed *next;
};

struct loop {
	int epoll;
	bool ended;
	int64_t now_ms;
	struct timer heads[TIMER_KINDS];
	struct doomed *doomed;
};

/* loop_init - 0 or -errno. */
MUST_CHECK int loop_init(struct loop *loop);

/* loop_run - until loop->ended is set. 0 or -errno of epoll_wait(2). */
MUST_CHECK int loop_run(struct loop *loop);

/*
 * loop_watch - watch for @events (EPOLLIN, EPOLLOUT) of watch->fd from now on; 0: for none, not even an error. 0 or -errno.
 * loop_close - watch it no longer, and close it.
 */
MUST_CHECK int loop_watch(struct loop *loop, struct watch *watch, uint32_t events);
void loop_close(struct loop *loop, struct watch *watch);

/* timer_set - fire once, when the time of @kind has passed; replaces an earlier setting. timer_clear - do not fire. */
void timer_set(struct loop *loop, struct timer *timer, enum timer_kind kind);
void timer_clear(struct timer *timer);

/* loop_free - free(@doomed) later, when the events of this turn can no longer name it. */
void loop_free(struct loop *loop, struct doomed *doomed);

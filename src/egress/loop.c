/*
 * loop.c - see loop.h.
 *
 * Runs in: carrel-egress.
 */
#include "egress/loop.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

enum { BATCH = 64 };

static const int durations_ms[TIMER_KINDS] = {
	[TIMER_SECOND] = 300,
	[TIMER_EYEBALL] = 250,
	[TIMER_PAUSE] = 100,
	[TIMER_TELL] = 1000,
	[TIMER_ASK] = 2000,
	[TIMER_DNS] = 10000,
	[TIMER_HELLO] = 10000,
	[TIMER_CONNECT] = 20000,
	[TIMER_HALF] = 300000,
	[TIMER_IDLE] = 3600000,
};

int loop_init(struct loop *loop)
{
	*loop = (struct loop){ .epoll = epoll_create1(EPOLL_CLOEXEC),
		.now_ms = clock_now_ns() / 1000000 };
	for (int i = 0; i < TIMER_KINDS; i++)
		loop->heads[i].next = loop->heads[i].prev = &loop->heads[i];
	return loop->epoll < 0 ? -errno : 0;
}

int loop_watch(struct loop *loop, struct watch *watch, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = watch };
	int op = EPOLL_CTL_MOD;

	if (events == watch->events)
		return 0;
	if (watch->events == 0)
		op = EPOLL_CTL_ADD;
	else if (events ==
		0) /* otherwise epoll would report again and again an error that no callback handles */
		op = EPOLL_CTL_DEL;
	if (epoll_ctl(loop->epoll, op, watch->fd, &event) < 0)
		return -errno;
	watch->events = events;
	return 0;
}

void loop_close(struct loop *loop, struct watch *watch)
{
	if (watch->fd < 0)
		return;
	if (watch->events != 0) /* closing the only descriptor does the same */
		(void)epoll_ctl(loop->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
	(void)close(watch->fd);
	*watch = (struct watch){ .fd = -1 };
}

void timer_clear(struct timer *timer)
{
	if (!timer->next)
		return;
	timer->prev->next = timer->next;
	timer->next->prev = timer->prev;
	timer->prev = timer->next = NULL;
}

void timer_set(struct loop *loop, struct timer *timer, enum timer_kind kind)
{
	struct timer *head = &loop->heads[kind];

	timer_clear(timer);
	timer->at_ms = loop->now_ms + durations_ms[kind];
	timer->prev = head->prev;
	timer->next = head;
	head->prev->next = timer;
	head->prev = timer;
}

void loop_free(struct loop *loop, struct doomed *doomed)
{
	doomed->next = loop->doomed;
	loop->doomed = doomed;
}

static void free_doomed(struct loop *loop)
{
	while (loop->doomed) {
		struct doomed *next = loop->doomed->next;

		free(loop->doomed);
		loop->doomed = next;
	}
}

/* Milliseconds until the first timer; -1: there is none. */
static int next_timer(const struct loop *loop)
{
	int64_t first = INT64_MAX;

	for (int i = 0; i < TIMER_KINDS; i++)
		if (loop->heads[i].next != &loop->heads[i] &&
			loop->heads[i].next->at_ms < first)
			first = loop->heads[i].next->at_ms;
	if (first == INT64_MAX)
		return -1;
	first -= loop->now_ms;
	return first < 0 ? 0 : (int)first;
}

static void fire_timers(struct loop *loop)
{
	for (int i = 0; i < TIMER_KINDS; i++)
		while (loop->heads[i].next != &loop->heads[i] &&
			loop->heads[i].next->at_ms <= loop->now_ms) {
			struct timer *timer = loop->heads[i].next;

			timer_clear(timer);
			timer->fire(timer);
		}
}

int loop_run(struct loop *loop)
{
	struct epoll_event events[BATCH];

	while (!loop->ended) {
		int n = epoll_wait(loop->epoll, events, BATCH, next_timer(loop));

		if (n < 0 && errno != EINTR)
			return -errno;
		loop->now_ms = clock_now_ns() / 1000000;
		for (int i = 0; i < n && !loop->ended; i++) {
			struct watch *watch = events[i].data.ptr;

			if (watch->fd >= 0 && watch->events != 0)
				watch->ready(watch, events[i].events);
		}
		if (!loop->ended)
			fire_timers(loop);
		free_doomed(loop);
	}
	return 0;
}

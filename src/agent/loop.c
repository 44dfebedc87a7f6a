/*
 * loop.c - see loop.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

int loop_open(struct loop *l)
{
	*l = (struct loop){ .epoll = epoll_create1(EPOLL_CLOEXEC) };
	return l->epoll < 0 ? -errno : 0;
}

void loop_close(struct loop *l)
{
	fd_close(&l->epoll);
}

/* Replace @from by @to in the list. */
static bool replace_always(struct loop *l, const struct watch *from, struct watch *to)
{
	for (int i = 0; i < LOOP_ALWAYS_MAX; i++)
		if (l->always[i] == from) {
			l->always[i] = to;
			return true;
		}
	return false;
}

int loop_watch(struct loop *l, struct watch *w, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = w };

	if (w->added && w->events == events)
		return 0;
	if (!w->always &&
		epoll_ctl(l->epoll, w->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, w->fd, &event) <
			0) {
		if (errno != EPERM)
			return -errno;
		if (!replace_always(l, NULL, w))
			return -ENOSPC;
		w->always = true;
	}
	w->added = true;
	w->events = events;
	return 0;
}

void loop_forget(struct loop *l, struct watch *w)
{
	if (!w->added)
		return;
	if (w->always)
		(void)replace_always(l, w, NULL);
	else
		(void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	w->added = w->always = false;
	w->events = 0;
}

void loop_close_watched(struct loop *l, struct watch *w)
{
	if (w->always)
		loop_forget(l, w);
	w->added = false;
	w->events = 0;
	fd_close(&w->fd);
}

int loop_turn(struct loop *l, int timeout_ms)
{
	struct epoll_event event;
	struct watch *ready = NULL;

	for (int i = 0; i < LOOP_ALWAYS_MAX; i++)
		if (l->always[i] && l->always[i]->events)
			ready = l->always[i];
	int n = epoll_wait(l->epoll, &event, 1, ready ? 0 : timeout_ms);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (n == 1) {
		struct watch *w = event.data.ptr;

		w->ready(w, event.events);
	} else if (ready) {
		ready->ready(ready, ready->events);
	}
	return 0;
}

int64_t loop_now_ms(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_MONOTONIC, &now) < 0)
		return 0; /* cannot fail for this clock */
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * newpath_watch.h - new protected paths are moved away while the session lives.
 *
 * Runs in: S, of `carrel run` and of live sessions alike, in its one thread, while hostile tools race with it.
 * May not: read or change what it moves, wait for anybody, do more in one step than is bounded by the number of
 * protected paths, keep S from its timers and signals.
 *
 * A short command never pays for it: the first look is 20 ms after the start, by the time-out of the epoll_wait(2)
 * that S is in anyway; then one every 20 ms, for 2 s. From then on inotify(7) wakes S when a name of a protected
 * path, or of a directory on the way to one, comes into being: to close it costs up to 12 ms (the kernel waits for
 * a grace period), which a session of 2 s does not notice. Where inotify is refused, or cannot watch all of the
 * directories, there is a look every 100 ms. What no look saw is found when the session ends (newpath.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "host/report/report.h"
#include "plan/plan.h"

struct newpath_state;

/* Zeroed: there is nothing to watch. */
struct newpath_watch {
	const struct plan *plan;
	struct newpath_state *state; /* from the first look on */
	int64_t due_ns; /* CLOCK_MONOTONIC; 0: nothing to do but what newpath_watch_wake() is for */
	int epoll;
	uint64_t event;
};

/*
 * newpath_watch_begin - from now on. No system call is made. @epoll: the caller's, in which a descriptor will be
 * whose event has @event as its data, and calls for newpath_watch_wake().
 */
void newpath_watch_begin(
	struct newpath_watch *w, const struct plan *plan, int epoll, uint64_t event);

/* newpath_watch_wait_ms - how long epoll_wait(2) may wait; -1: for ever. */
int newpath_watch_wait_ms(const struct newpath_watch *w);

/* newpath_watch_step - to be called whenever epoll_wait(2) returned: does what is due. */
void newpath_watch_step(struct newpath_watch *w);

/* newpath_watch_wake - something happened in a watched directory. */
void newpath_watch_wake(struct newpath_watch *w);

/*
 * newpath_watch_add - what stood at a protected path is gone: from now on it is one that was absent. Once for a path.
 * 0, or -ENOMEM.
 */
MUST_CHECK int newpath_watch_add(struct newpath_watch *w, const struct kept_path *gone);

/* newpath_watch_look - now, whatever is due. As bounded as any other look. */
void newpath_watch_look(struct newpath_watch *w);

/* newpath_watch_stop - the session has ended; what it moved is still known. */
void newpath_watch_stop(struct newpath_watch *w);

/* newpath_watch_count - how many times something was moved. */
uint64_t newpath_watch_count(const struct newpath_watch *w);

/*
 * newpath_watch_report - add what was moved to a list of what was found at the end.
 * @arena: owns the list, before and after. 0 or -ENOMEM.
 */
MUST_CHECK int newpath_watch_report(const struct newpath_watch *w, struct arena *arena,
	const struct report_quarantine **list, size_t *count);

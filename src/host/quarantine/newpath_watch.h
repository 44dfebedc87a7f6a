/*
 * newpath_watch.h - new protected paths are moved away while the session lives.
 *
 * Runs in: S, of `carrel run` and of live sessions alike, in its one thread, while hostile tools race with it.
 * May not: read or change what it moves, wait for anybody, keep S from its timers and signals. The number of protected
 * paths bounds the work of one step.
 *
 * A short command never pays for it: S first looks 20 ms after the start, by the time-out of the epoll_wait(2) that
 * it is in anyway, then every 20 ms for 2 s. From then on inotify(7) wakes S when a name of a protected path, or of
 * a directory on the way to one, comes into being. S uses inotify no earlier because closing it costs up to 12 ms (the
 * kernel waits for a grace period), which a session of 2 s does not notice. If inotify is refused, or cannot watch all
 * of the directories, S looks every 100 ms. The check at the end of the session finds what no look saw (newpath.h).
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
	int64_t due_ns; /* CLOCK_MONOTONIC, of the next step; 0: only newpath_watch_wake() leads to one */
	int epoll;
	uint64_t event;
};

/*
 * newpath_watch_begin - watch from now on. Makes no system call. @epoll: the caller's. A later step adds a descriptor
 * to it with @event as its data; the caller answers that event with newpath_watch_wake().
 */
void newpath_watch_begin(
	struct newpath_watch *w, const struct plan *plan, int epoll, uint64_t event);

/* newpath_watch_wait_ms - how long epoll_wait(2) may wait; -1: for ever. */
int newpath_watch_wait_ms(const struct newpath_watch *w);

/* newpath_watch_step - do what is due. The caller calls it whenever epoll_wait(2) has returned. */
void newpath_watch_step(struct newpath_watch *w);

/* newpath_watch_wake - something happened in a watched directory. */
void newpath_watch_wake(struct newpath_watch *w);

/*
 * newpath_watch_add - the thing at a protected path is gone: treat the path from now on as one that was absent at the
 * start. Call it once for a path.
 * 0, or -ENOMEM.
 */
MUST_CHECK int newpath_watch_add(struct newpath_watch *w, const struct kept_path *gone);

/* newpath_watch_look - look now, even if no look is due. As bounded as any other look. */
void newpath_watch_look(struct newpath_watch *w);

/* newpath_watch_stop - the session has ended: watch no more. The list of what was moved stays. */
void newpath_watch_stop(struct newpath_watch *w);

/* newpath_watch_count - how many times something was moved. */
uint64_t newpath_watch_count(const struct newpath_watch *w);

/*
 * newpath_watch_report - add what was moved while the session lived to the list of what was found at its end.
 * @arena: owns the list, before and after. 0 or -ENOMEM.
 */
MUST_CHECK int newpath_watch_report(const struct newpath_watch *w, struct arena *arena,
	const struct report_quarantine **list, size_t *count);

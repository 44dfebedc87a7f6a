/*
 * supervise.c - see supervise.h.
 *
 * Runs in: S. Every step can be followed by the death of S: nothing here is needed for safety, only
 * for telling what happened. What ends a session: the command ended; init ended or spoke wrongly; the
 * grace after the first TERM, INT, HUP or QUIT or after the time-out is over; a second TERM or INT.
 */
#include "host/launch/supervise.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "box/sys.h"
#include "host/launch/supervisor.h"
#include "host/process/confine_self.h"
#include "host/process/reaper.h"

int supervisor_fault(struct supervisor *v, int r, const char *what)
{
	return error_set(v->e, ERROR_INTERNAL, "supervise", -r, NULL, "%s", what);
}

int supervisor_watch(struct supervisor *v, int fd, enum event event)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = (uint64_t)event };

	return epoll_ctl(v->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

int supervisor_set_timer(struct supervisor *v, uint64_t ms)
{
	struct itimerspec t = { .it_value = { .tv_sec = (time_t)(ms / 1000),
					.tv_nsec = (long)(ms % 1000) * 1000000 } };
	int r;

	if (v->timer < 0) {
		v->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (v->timer < 0)
			return -errno;
		r = supervisor_watch(v, v->timer, EVENT_TIMER);
		if (r < 0)
			return r;
	}
	return timerfd_settime(v->timer, 0, &t, NULL) < 0 ? -errno : 0;
}

static int send_record(struct supervisor *v, enum channel_kind kind, int number, bool flag)
{
	struct channel_record record = { .kind = kind, .number = number, .flag = flag };
	int r = channel_send(v->launch->channel, &record, NULL, 0);

	/* Init has just ended; its records are still to be read. */
	return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

static int kill_all(struct supervisor *v)
{
	if (v->phase == PHASE_SETUP) {
		v->phase = PHASE_OVER;
		return 0;
	}
	v->phase = PHASE_KILLING;
	int r = send_record(v, CHANNEL_SIGNAL, SIGKILL, true);
	return r < 0 ? r : supervisor_set_timer(v, KILL_PATIENCE_MS);
}

/* The first request to end: the command may clean up until the grace is over. */
static int begin_end(struct supervisor *v, int signal, bool everything)
{
	v->end_requested = true;
	if (v->phase != PHASE_RUNNING)
		return kill_all(v);
	v->phase = PHASE_ENDING;
	int r = send_record(v, CHANNEL_SIGNAL, signal, everything);
	/* A stopped command must run to see the signal. */
	if (r >= 0)
		r = send_record(v, CHANNEL_SIGNAL, SIGCONT, everything);
	return r < 0 ? r : supervisor_set_timer(v, v->plan->policy->grace_ms.value);
}

static int job_send(void *context, int signal)
{
	struct supervisor *v = context;

	return v->phase == PHASE_SETUP ? 0 : send_record(v, CHANNEL_SIGNAL, signal, false);
}

static int job_go_on(void *context, bool in_front)
{
	return send_record(context, CHANNEL_CONTINUE, 0, in_front);
}

static int job_end(void *context, int signal)
{
	struct supervisor *v = context;

	return v->phase == PHASE_ENDING && (signal == SIGHUP || signal == SIGQUIT)
		? 0
		: begin_end(v, signal, false);
}

static int job_close(void *context)
{
	struct supervisor *v = context;

	if (!v->out->alone)
		launch_kill(v->launch);
	return 0;
}

static struct job job_of(struct supervisor *v)
{
	static const struct job_calls calls = { job_send, job_go_on, job_end, job_close };

	return (struct job){ .tty = v->has_tty ? &v->tty : NULL,
		.stdio = v->stdio,
		.signals = v->signals,
		.running = v->phase == PHASE_RUNNING,
		.calls = &calls,
		.context = v };
}

static int handle_signal(struct supervisor *v, int signal)
{
	const struct job job = job_of(v);

	if (signal != SIGCHLD)
		return job_signal(&job, signal);
	reaper_reap_unexpected(v->launch->init);
	return 0;
}

int supervisor_stopped(struct supervisor *v, int signal)
{
	const struct job job = job_of(v);

	return job_stopped(&job, signal);
}

static int read_signals(struct supervisor *v)
{
	struct signalfd_siginfo info;

	while (v->phase != PHASE_OVER) {
		ssize_t n = read(v->signals->fd, &info, sizeof(info));

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		if (n != (ssize_t)sizeof(info))
			return -EIO;
		int r = handle_signal(v, (int)info.ssi_signo);
		if (r < 0)
			return r;
	}
	return 0;
}

static int handle_timer(struct supervisor *v)
{
	uint64_t count;

	if (read(v->timer, &count, sizeof(count)) < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	switch (v->phase) {
	case PHASE_RUNNING:
		v->out->timed_out = true;
		return begin_end(v, SIGTERM, true);
	case PHASE_ENDING:
		return kill_all(v);
	case PHASE_SETUP:
		v->phase = PHASE_OVER;
		if (v->set_up)
			return egress_explain(&v->launch->egress, v->e);
		v->out->timed_out = true;
		return 0;
	case PHASE_KILLING:
		v->phase = PHASE_OVER; /* init is stuck; it is killed from outside */
		return 0;
	case PHASE_OVER:
		return 0;
	}
	return 0;
}

static int unconfined(struct supervisor *v, int r)
{
	v->out->confined = false;
	return supervisor_fault(v, r, "the supervisor cannot confine itself");
}

/* Start the coverer, unless the command has ended already: a short one does not pay for it. */
static int have_coverer(struct supervisor *v)
{
	bool lives = v->phase == PHASE_RUNNING || v->phase == PHASE_ENDING;
	int r = lives ? cover_begin(&v->out->cover, v->launch->box, v->launch->mounts)
		      : cover_settle(&v->out->cover);

	return r < 0 ? unconfined(v, r) : 0;
}

/* When the coverer is due: CLOCK_MONOTONIC; 0: it is there, or cannot be had, or no command runs. */
static int64_t coverer_due_ns(const struct supervisor *v)
{
	return v->out->cover.settled || v->phase == PHASE_SETUP || v->phase == PHASE_OVER
		? 0
		: v->started_ns + INT64_C(1000000) * COVERER_MS;
}

/*
 * Start the coverer when it is due, also where events come all the time and epoll_wait() never
 * times out.
 */
static int have_coverer_in_time(struct supervisor *v)
{
	int64_t due = coverer_due_ns(v);

	return due && due <= clock_now_ns() ? have_coverer(v) : 0;
}

static int handle_mounts(struct supervisor *v, uint64_t event)
{
	int r = have_coverer(v);

	if (r < 0)
		return r;
	if (v->out->breached || cover_event(&v->out->cover, event, v->e) == 0)
		return 0;
	v->out->breached = true;
	return kill_all(v);
}

/* A coverer that does not answer in time would leave something bare. */
static int miss_coverer(struct supervisor *v)
{
	int64_t late = v->out->breached ? 0 : cover_late_ns(&v->out->cover);

	return late && late <= clock_now_ns() ? handle_mounts(v, EVENT_COVERED) : 0;
}

static int handle_event(struct supervisor *v, uint64_t event)
{
	if (event == EVENT_CHANNEL)
		return supervisor_record(v);
	if (event == EVENT_SIGNAL)
		return read_signals(v);
	if (event == EVENT_EGRESS)
		return supervisor_egress(v);
	if (event == EVENT_TIMER)
		return handle_timer(v);
	if (event == EVENT_MOUNTS || event == EVENT_COVERED)
		return handle_mounts(v, event);
	if (event == EVENT_NEWPATH)
		newpath_watch_wake(&v->out->watch);
	if (event >= EVENT_TTY) {
		if (tty_step(&v->tty, event) == TTY_HANGUP && v->phase == PHASE_RUNNING)
			return begin_end(v, SIGHUP, false);
		return 0;
	}
	if (event >= EVENT_STDIO && event < EVENT_STDIO + STDIO_STREAMS)
		if (stdio_step(v->stdio, (unsigned)(event - EVENT_STDIO)) &&
			v->phase == PHASE_RUNNING)
			return begin_end(v, SIGTERM, true);
	return 0;
}

/* How long until @ns; -1: for ever, where @ns is 0. */
static int ms_until(int64_t ns)
{
	int64_t left = ns ? ns - clock_now_ns() : 0;

	return !ns ? -1 : left > 0 ? (int)((left + 999999) / 1000000) : 0;
}

static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* How long there is nothing to do; -1: as long as nothing happens. */
static int wait_ms(const struct supervisor *v)
{
	int cover =
		sooner(ms_until(coverer_due_ns(v)), ms_until(cover_late_ns(&v->out->cover)));

	return sooner(newpath_watch_wait_ms(&v->out->watch), cover);
}

static int run_loop(struct supervisor *v)
{
	while (v->phase != PHASE_OVER) {
		struct epoll_event events[8];
		int n = epoll_wait(v->epoll, events, 8, wait_ms(v));

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n && v->phase != PHASE_OVER; i++) {
			int r = handle_event(v, events[i].data.u64);
			if (r < 0)
				return r;
		}
		int r = have_coverer_in_time(v);
		if (r >= 0)
			r = miss_coverer(v);
		if (r < 0)
			return r;
		newpath_watch_step(&v->out->watch);
	}
	return 0;
}

static int watch_all(struct supervisor *v)
{
	v->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (v->epoll < 0)
		return -errno;
	int r = supervisor_watch(v, v->launch->channel, EVENT_CHANNEL);
	if (r < 0)
		return r;
	r = supervisor_watch(v, v->signals->fd, EVENT_SIGNAL);
	if (r < 0 || v->launch->egress.channel < 0)
		return r;
	return supervisor_watch(v, v->launch->egress.channel, EVENT_EGRESS);
}

static int watch_session(struct supervisor *v)
{
	int r = watch_all(v);

	if (r < 0)
		return supervisor_fault(v, r, "cannot watch for events");
	v->out->cover.explain = v->launch->explain;
	r = confine_self();
	v->out->confined = r >= 0;
	/* Without mounts there is nothing to cover. */
	if (r >= 0 && !v->plan->clone_flags)
		r = cover_settle(&v->out->cover);
	return r < 0 ? unconfined(v, r) : 0;
}

int supervise(const struct plan *plan, struct launch *l, struct stdio *s,
	struct signals *signals, void (*at_start)(void *context), void *context,
	struct outcome *ret, struct error *e)
{
	struct supervisor v = { .plan = plan,
		.launch = l,
		.stdio = s,
		.signals = signals,
		.epoll = -1,
		.timer = -1,
		.master = -1,
		.out = ret,
		.at_start = at_start,
		.context = context,
		.e = e };

	*ret = (struct outcome){ .op = -1, .cover = COVER_NONE };
	int r = watch_session(&v);
	if (r >= 0) {
		if (l->box->apart)
			channel_await(l->channel, BOX_TRIES_READY);
		r = run_loop(&v);
		if (r < 0 && e && e->code == ERROR_NONE)
			r = supervisor_fault(&v, r, "the session cannot be supervised");
	}
	const struct job job = job_of(&v);
	job_drain(&job, v.end_requested);
	newpath_watch_stop(&ret->watch);
	cover_end(&ret->cover);
	launch_close_views(l);
	fd_close(&v.master);
	/* From here on the launcher looks at names that tools made: the coverer's rights must be gone. */
	int settled = ret->confined ? cover_settle(&ret->cover) : 0;
	if (settled < 0 && r >= 0)
		r = unconfined(&v, settled);
	fd_close(&v.timer);
	fd_close(&v.epoll);
	return r;
}

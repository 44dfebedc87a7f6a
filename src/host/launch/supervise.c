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
#include "host/launch/job.h"
#include "host/launch/mountwatch.h"
#include "host/machine/explain.h"
#include "host/process/confine_self.h"
#include "host/process/reaper.h"
#include "host/stdio/tty.h"

enum event {
	EVENT_CHANNEL,
	EVENT_SIGNAL,
	EVENT_TIMER,
	EVENT_MOUNTS,
	EVENT_NEWPATH,
	EVENT_STDIO = 8,
	EVENT_TTY = 16
};

enum {
	KILL_PATIENCE_MS = 2000, /* after the kill, for init to say how the command ended */
	CLOSE_MS = 700, /* after time-out and grace, for review, quarantine and removal */
};

enum phase {
	PHASE_SETUP, /* init applies the plan */
	PHASE_RUNNING,
	PHASE_ENDING,  /* asked to end; the grace is running */
	PHASE_KILLING, /* everything was sent SIGKILL */
	PHASE_OVER,
};

struct supervisor {
	const struct plan *plan;
	struct launch *launch;
	struct stdio *stdio;
	struct signals *signals;
	struct tty tty;
	bool has_tty;
	int epoll, timer, mounts;
	enum phase phase;
	bool end_requested; /* to end: by a signal, a limit or a fault */
	int64_t started_ns;
	struct outcome *out;
	void (*at_start)(void *context);
	void *context;
	struct error *e;
};

static int fault(struct supervisor *v, int r, const char *what)
{
	return error_set(v->e, ERROR_INTERNAL, "supervise", -r, NULL, "%s", what);
}

static int watch(struct supervisor *v, int fd, enum event event)
{
	struct epoll_event ev = { .events = event == EVENT_MOUNTS ? EPOLLPRI : EPOLLIN,
		.data.u64 = (uint64_t)event };

	return epoll_ctl(v->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int set_timer(struct supervisor *v, uint64_t ms)
{
	struct itimerspec t = { .it_value = { .tv_sec = (time_t)(ms / 1000),
					.tv_nsec = (long)(ms % 1000) * 1000000 } };
	int r;

	if (v->timer < 0) {
		v->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (v->timer < 0)
			return -errno;
		r = watch(v, v->timer, EVENT_TIMER);
		if (r < 0)
			return r;
	}
	return timerfd_settime(v->timer, 0, &t, NULL) < 0 ? -errno : 0;
}

static int send_record(struct supervisor *v, enum channel_kind kind, int number, bool flag)
{
	struct channel_record record = { .kind = kind, .number = number, .flag = flag };
	int r = channel_send(v->launch->channel, &record, NULL, 0);

	/* Init has just ended: what it said before is still to be read. */
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
	return r < 0 ? r : set_timer(v, KILL_PATIENCE_MS);
}

/* The first request to end: the command may clean up, for as long as the grace lasts. */
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
	return r < 0 ? r : set_timer(v, v->plan->policy->grace_ms.value);
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

static int handle_stopped(struct supervisor *v, int signal)
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
		v->out->timed_out = true;
		v->phase = PHASE_OVER;
		return 0;
	case PHASE_KILLING:
		v->phase = PHASE_OVER; /* init is stuck; it is killed from outside */
		return 0;
	case PHASE_OVER:
		return 0;
	}
	return 0;
}

/* From here on nobody may take a mount away; what is missing already is seen at once. */
static int watch_mounts(struct supervisor *v)
{
	v->mounts = mountwatch_open(v->launch->init);
	v->out->unwatched = v->mounts == -ENOENT; /* the report says so */
	if (v->mounts < 0)
		return v->out->unwatched ? 0 : v->mounts;
	return watch(v, v->mounts, EVENT_MOUNTS);
}

static int handle_mounts(struct supervisor *v)
{
	if (v->out->breached || !mountwatch_lost(v->mounts, v->plan, v->e))
		return 0;
	v->out->breached = true;
	return kill_all(v);
}

/* The caller was promised `timeout` + `grace` + 1 s. */
static int64_t deadline(const struct supervisor *v)
{
	const uint64_t most_ms = INT64_MAX / 4000000;
	const struct policy *policy = v->plan->policy;
	uint64_t ms = policy->timeout_ms.value + policy->grace_ms.value + CLOSE_MS;

	return v->started_ns + (int64_t)(ms < most_ms ? ms : most_ms) * 1000000;
}

/* Everything stands: hand over the descriptors and let the command begin. */
static int start_command(struct supervisor *v, int master)
{
	struct channel_record record = { .kind = CHANNEL_EXEC };
	int fds[CHANNEL_STREAMS];
	unsigned count = 0;
	int r = 0;

	if (v->stdio->want_pty) {
		if (master < 0)
			return -EPROTO;
		r = tty_open(&v->tty, v->stdio, master, v->e);
		v->has_tty = r >= 0;
		if (r >= 0)
			r = tty_start(&v->tty, v->epoll, EVENT_TTY);
		record.flag = r > 0;
	}
	if (r < 0)
		return r;
	for (unsigned i = 0; i < CHANNEL_STREAMS; i++) {
		if (v->stdio->child_fd[i] < 0)
			continue;
		fds[count++] = v->stdio->child_fd[i];
		record.streams |= 1u << i;
	}
	r = v->plan->clone_flags ? watch_mounts(v) : 0;
	if (r < 0)
		return r;
	v->phase = PHASE_RUNNING;
	v->out->started = STARTED_UNKNOWN;
	v->started_ns = clock_now_ns();
	r = channel_send(v->launch->channel, &record, fds, count);
	if (r < 0)
		return r == -EPIPE ? 0 : r;
	stdio_child_started(v->stdio);
	r = stdio_start(v->stdio, v->epoll, EVENT_STDIO);
	if (r >= 0 && v->plan->policy->timeout_ms.set) {
		v->out->deadline_ns = deadline(v);
		r = set_timer(v, v->plan->policy->timeout_ms.value);
	}
	newpath_watch_begin(&v->out->watch, v->plan, v->epoll, EVENT_NEWPATH);
	if (r >= 0 && v->at_start)
		v->at_start(v->context);
	return r;
}

static void take_time(struct supervisor *v)
{
	v->out->wall_us = (uint64_t)(clock_now_ns() - v->started_ns) / 1000;
}

static void take_outcome(struct supervisor *v, const struct channel_record *record)
{
	struct outcome *o = v->out;

	take_time(v);
	o->wall_known = true;
	o->tasks_full = record->number == EAGAIN;
	o->started = (enum channel_started)record->started;
	o->op = record->op;
	o->errnum = record->errnum;
	o->ended = record->started != STARTED_NO;
	o->alone = record->flag != 0;
	o->wait_status = record->wait_status;
	o->user_us = record->user_us;
	o->system_us = record->system_us;
	o->max_rss_kib = record->max_rss_kib;
	o->usage_known = o->ended;
	/* An open view would keep the mounts alive, and their end would be ours to wait for. */
	fd_close(&v->mounts);
	v->phase = PHASE_OVER;
}

static int handle_record(struct supervisor *v, const struct channel_record *record, int *fd)
{
	switch ((enum channel_kind)record->kind) {
	case CHANNEL_SCRATCH:
		if (v->phase != PHASE_SETUP || *fd < 0 || v->launch->scratch >= 0)
			return -EPROTO;
		v->launch->scratch = take_fd(fd);
		return 0;
	case CHANNEL_READY:
		if (v->phase != PHASE_SETUP)
			return -EPROTO;
		v->out->ready = true;
		return start_command(v, take_fd(fd));
	case CHANNEL_FAILED:
		v->out->op = record->op;
		v->out->errnum = record->errnum;
		v->phase = PHASE_OVER;
		return explain_op(v->plan, record->op, record->errnum, false, v->e);
	case CHANNEL_STARTED:
		if (v->phase == PHASE_SETUP)
			return -EPROTO;
		v->out->started = STARTED_YES;
		return 0;
	case CHANNEL_STOPPED:
		return handle_stopped(v, record->number);
	case CHANNEL_ENDED:
		if (v->phase == PHASE_SETUP || record->started > STARTED_UNKNOWN)
			return -EPROTO;
		take_outcome(v, record);
		return 0;
	case CHANNEL_GO:
	case CHANNEL_SESSION:
	case CHANNEL_EXEC:
	case CHANNEL_SIGNAL:
	case CHANNEL_CONTINUE:
	case CHANNEL_MONITOR:
	case CHANNEL_DISMISS:
	case CHANNEL_PTY:
	case CHANNEL_OPEN:
	case CHANNEL_OPENED:
		break;
	}
	return -EPROTO;
}

static int handle_channel(struct supervisor *v)
{
	struct channel_record record;
	int fds[CHANNEL_FDS_MAX];
	int r = channel_receive(v->launch->channel, &record, fds);

	/* Init has ended with something of ours unread; what it said before that is queued behind
	 * the error, which is told once: unix(7), unix_release_sock(). */
	if (r == -ECONNRESET)
		r = channel_receive(v->launch->channel, &record, fds);
	if (r == 0 || r == -ECONNRESET) {
		/* Init is gone without a last word: killed, or out of memory. */
		take_time(v);
		v->phase = PHASE_OVER;
		return error_set(v->e, ERROR_PROTOCOL, "supervise", 0, NULL,
			"init ended without saying how the command did");
	}
	if (r > 0)
		r = handle_record(v, &record, &fds[0]);
	for (int i = 0; i < CHANNEL_FDS_MAX; i++)
		fd_close(&fds[i]);
	return r;
}

static int handle_event(struct supervisor *v, uint64_t event)
{
	if (event == EVENT_CHANNEL)
		return handle_channel(v);
	if (event == EVENT_SIGNAL)
		return read_signals(v);
	if (event == EVENT_TIMER)
		return handle_timer(v);
	if (event == EVENT_MOUNTS)
		return handle_mounts(v);
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

static int run_loop(struct supervisor *v)
{
	while (v->phase != PHASE_OVER) {
		struct epoll_event events[8];
		int n = epoll_wait(v->epoll, events, 8, newpath_watch_wait_ms(&v->out->watch));

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n && v->phase != PHASE_OVER; i++) {
			int r = handle_event(v, events[i].data.u64);
			if (r < 0)
				return r;
		}
		newpath_watch_step(&v->out->watch);
	}
	return 0;
}

static int watch_session(struct supervisor *v)
{
	v->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (v->epoll < 0)
		return fault(v, -errno, "cannot watch for events");
	int r = watch(v, v->launch->channel, EVENT_CHANNEL);
	if (r >= 0)
		r = watch(v, v->signals->fd, EVENT_SIGNAL);
	if (r < 0)
		return fault(v, r, "cannot watch for events");
	r = confine_self(v->plan);
	v->out->confined = r >= 0;
	return r < 0 ? fault(v, r, "the supervisor cannot confine itself") : 0;
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
		.mounts = -1,
		.out = ret,
		.at_start = at_start,
		.context = context,
		.e = e };

	*ret = (struct outcome){ .op = -1 };
	int r = watch_session(&v);
	if (r >= 0) {
		r = run_loop(&v);
		if (r < 0 && e && e->code == ERROR_NONE)
			r = fault(&v, r, "the session cannot be supervised");
	}
	const struct job job = job_of(&v);
	job_drain(&job, v.end_requested);
	newpath_watch_stop(&ret->watch);
	fd_close(&v.mounts);
	fd_close(&v.timer);
	fd_close(&v.epoll);
	return r;
}

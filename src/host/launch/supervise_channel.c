/*
 * supervise_channel.c - what init says, and what follows from it: supervisor.h.
 *
 * Runs in: S.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/egress/publish.h"
#include "host/launch/notes.h"
#include "host/launch/supervisor.h"
#include "host/machine/explain.h"
#include "host/stdio/passed.h"

enum { CLOSE_MS = 700 }; /* after time-out and grace, for review, quarantine and removal */

/* From here on no mount may disappear; one that is missing already is found at once. */
static int watch_mounts(struct supervisor *v)
{
	int r = cover_watch(&v->out->cover, v->plan, v->launch->init, &v->out->watch, v->epoll,
		EVENT_MOUNTS);

	v->out->unwatched = r == -ENOENT; /* the report says so */
	return v->out->unwatched ? 0 : r;
}

/* The caller was promised `timeout` + `grace` + 1 s. */
static int64_t deadline(const struct supervisor *v)
{
	const uint64_t most_ms = INT64_MAX / 4000000;
	const struct policy *policy = v->plan->policy;
	uint64_t ms = policy->timeout_ms.value + policy->grace_ms.value + CLOSE_MS;

	return v->started_ns + (int64_t)(ms < most_ms ? ms : most_ms) * 1000000;
}

/* 1: the command begins in the foreground of its terminal; 0: it does not (tty_start()). */
static int start_tty(struct supervisor *v, int master)
{
	if (master < 0)
		return -EPROTO;
	int r = tty_open(&v->tty, v->stdio, master, v->e);
	v->has_tty = r >= 0;
	return r < 0 ? r : tty_start(&v->tty, v->epoll, EVENT_TTY);
}

/* Every wall stands: hand over the descriptors and let the command start. */
static int start_command(struct supervisor *v, int master)
{
	struct channel_record record = { .kind = CHANNEL_EXEC };
	int fds[CHANNEL_STREAMS + PASS_MAX];
	unsigned count = 0;
	int r = v->stdio->want_pty ? start_tty(v, master) : 0;

	if (r < 0)
		return r;
	record.flag = r > 0;
	for (unsigned i = 0; i < CHANNEL_STREAMS; i++) {
		if (v->stdio->child_fd[i] < 0)
			continue;
		fds[count++] = v->stdio->child_fd[i];
		record.streams |= 1u << i;
	}
	if (v->stdio->passed)
		count += passed_fill(v->stdio->passed, fds + count);
	r = v->plan->clone_flags ? watch_mounts(v) : 0;
	if (r < 0)
		return r;
	v->phase = PHASE_RUNNING;
	v->out->started = STARTED_UNKNOWN;
	v->started_ns = clock_now_ns();
	r = channel_send(v->launch->channel, &record, fds, count);
	if (r < 0)
		return r == -EPIPE ? 0 : r;
	newpath_watch_begin(&v->out->watch, v->plan, v->epoll, EVENT_NEWPATH);
	stdio_child_started(v->stdio);
	if (v->stdio->passed)
		passed_close(v->stdio->passed);
	r = stdio_start(v->stdio, v->epoll, EVENT_STDIO);
	if (r < 0)
		return r;
	if (v->plan->policy->timeout_ms.set) {
		v->out->deadline_ns = deadline(v);
		r = supervisor_set_timer(v, v->plan->policy->timeout_ms.value);
	}
	launch_reap(v->launch);
	if (r >= 0 && v->at_start)
		v->at_start(v->context);
	return r;
}

/* The command may start: init has applied the plan, and carrel-egress, where there is one, is ready. */
static int go_on(struct supervisor *v)
{
	struct egress *g = &v->launch->egress;

	if (!v->set_up || v->phase != PHASE_SETUP || (g->begun && !g->ready))
		return 0;
	if (v->timer >= 0) {
		int r = supervisor_set_timer(v, 0);

		if (r < 0)
			return r;
	}
	publish_tell(g, v->plan->policy);
	notes_unresolved(v->plan->policy, g);
	return start_command(v, take_fd(&v->master));
}

static int set_up(struct supervisor *v, int *master)
{
	struct egress *g = &v->launch->egress;

	v->set_up = true;
	v->master = take_fd(master);
	int r = g->begun && !g->ready && !g->lost ? supervisor_set_timer(v, EGRESS_START_MS)
						  : 0;
	return r < 0 ? r : go_on(v);
}

int supervisor_egress(struct supervisor *v)
{
	struct egress *g = &v->launch->egress;
	bool told = g->lost;

	egress_read(g);
	if (g->lost && v->phase == PHASE_SETUP) {
		v->phase = PHASE_OVER;
		return egress_explain(g, v->e);
	}
	if (g->lost && !told)
		notes_egress_lost(v->plan->policy);
	return go_on(v);
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
	o->no_route = record->no_route;
	o->no_listener = record->no_listener;
	o->usage_known = o->ended;
	/* An open descriptor would keep the mounts alive, and S would have to wait for their end. */
	if (!v->out->breached && cover_finish(&v->out->cover, v->e) < 0)
		v->out->breached = true;
	cover_end(&v->out->cover);
	launch_close_views(v->launch);
	v->phase = PHASE_OVER;
}

/* Those that did not come are -1; carrel-egress gets copies, and the caller closes these. */
static int give_sockets(
	struct supervisor *v, const struct channel_record *record, const int *fds)
{
	unsigned count = 0;

	while (count < CHANNEL_FDS_MAX && fds[count] >= 0)
		count++;
	return egress_sockets(&v->launch->egress, fds, count, record->number);
}

static int handle_record(struct supervisor *v, const struct channel_record *record, int *fd)
{
	switch ((enum channel_kind)record->kind) {
	case CHANNEL_SCRATCH:
		if (v->phase != PHASE_SETUP || *fd < 0 || v->launch->scratch >= 0)
			return -EPROTO;
		v->launch->scratch = take_fd(fd);
		return 0;
	case CHANNEL_SOCKETS:
		if (v->phase != PHASE_SETUP || !v->launch->egress.begun)
			return -EPROTO;
		return give_sockets(v, record, fd);
	case CHANNEL_READY:
		if (v->phase != PHASE_SETUP)
			return -EPROTO;
		v->out->ready = true;
		if (record->flag)
			v->launch->mounts[0] = take_fd(fd++);
		return set_up(v, fd);
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
		return supervisor_stopped(v, record->number);
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

int supervisor_record(struct supervisor *v)
{
	struct channel_record record;
	int fds[CHANNEL_FDS_MAX];
	int r = channel_receive(v->launch->channel, &record, fds);

	/*
	 * Init has ended with a record of S unread. The kernel tells that error once; what init
	 * said before is queued behind it: unix(7), unix_release_sock().
	 */
	if (r == -ECONNRESET)
		r = channel_receive(v->launch->channel, &record, fds);
	if (r == 0 || r == -ECONNRESET) {
		/* Init ended without a last record: it was killed, or had no memory. */
		take_time(v);
		v->phase = PHASE_OVER;
		return error_set(v->e, ERROR_PROTOCOL, "supervise", 0, NULL,
			"init ended before it reported how the command ended");
	}
	if (r > 0)
		r = handle_record(v, &record, &fds[0]);
	for (int i = 0; i < CHANNEL_FDS_MAX; i++)
		fd_close(&fds[i]);
	return r;
}

/*
 * serve.c - see serve.h. The loop, the clock, and the ways to the end.
 *
 * Runs in: S. Every step can be followed by the death of S: then init sees the end of its channel, and
 * the kernel ends everything inside.
 */
#include "host/serve/serve.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "box/rest.h"
#include "host/launch/notes.h"
#include "host/machine/explain.h"
#include "host/process/confine_self.h"
#include "host/serve/server.h"

#define REST_AFTER_NS (INT64_C(1000000) * REST_AFTER_MS)

enum { EVENTS = 32, KILL_SPARE_MS = 4000 };

static int fault(struct server *s, int r, const char *what)
{
	return error_set(s->e, ERROR_INTERNAL, "supervise", -r, NULL, "%s", what);
}

static int unconfined(struct server *s, int r)
{
	s->out->confined = false;
	return fault(s, r, "the supervisor cannot confine itself");
}

int server_watch(struct server *s, int fd, enum server_event what, unsigned index)
{
	struct epoll_event event = {
		.events = EPOLLIN,
		.data.u64 = (uint64_t)what << 32 | index,
	};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int server_init_channel(const struct server *s, unsigned view)
{
	return view ? s->launch->views[view] : s->launch->channel;
}

/* --- the clock ------------------------------------------------------------------------------- */

static int64_t idle_deadline(const struct server *s)
{
	return s->busy || s->client_count || s->phase != SERVER_SERVING
		? 0
		: s->idle_since_ns + s->settings->idle_ms * 1000000;
}

static void earlier(int64_t *best, int64_t deadline)
{
	if (deadline && (!*best || deadline < *best))
		*best = deadline;
}

static int set_timer(struct server *s)
{
	int64_t next = 0;

	if (s->phase == SERVER_SERVING) {
		earlier(&next, s->begun_ns + s->settings->lifetime_ms * 1000000);
		earlier(&next, idle_deadline(s));
		if (!s->resting && idle_deadline(s))
			earlier(&next, s->idle_since_ns + REST_AFTER_NS);
		if (!s->listening)
			earlier(&next, s->listen_ns);
	}
	earlier(&next, s->end_deadline_ns);
	earlier(&next, s->out->breached ? 0 : cover_late_ns(&s->out->cover));
	earlier(&next, s->egress_ns);
	earlier(&next, s->change.deadline_ns);
	earlier(&next, s->settings->limits->again_ns);
	for (unsigned i = 0; i < s->slot_count; i++)
		if (s->slots[i].state != SLOT_FREE) {
			earlier(&next, s->slots[i].deadline_ns);
			earlier(&next, s->slots[i].log.due_ns);
		}
	if (next == s->timer_ns)
		return 0;
	struct itimerspec t = { .it_value = { .tv_sec = next / 1000000000,
					.tv_nsec = next % 1000000000 } };
	s->timer_ns = next;
	return timerfd_settime(s->timer, TFD_TIMER_ABSTIME, &t, NULL) < 0 ? -errno : 0;
}

static void handle_mounts(struct server *s, uint64_t event)
{
	if (s->out->breached || cover_event(&s->out->cover, event, s->e) == 0)
		return;
	s->out->breached = true;
	s->phase = SERVER_OVER;
}

static void handle_timer(struct server *s)
{
	int64_t now = clock_now_ns();
	uint64_t ticks;

	/* The deadlines themselves say what is due. */
	(void)!read(s->timer, &ticks, sizeof(ticks));
	s->timer_ns = 0;
	if (s->listen_ns <= now)
		server_listen_again(s);
	if (cover_late_ns(&s->out->cover) && cover_late_ns(&s->out->cover) <= now)
		handle_mounts(s, ((uint64_t)SERVER_EVENT_MOUNTS << 32) + 1);
	for (unsigned i = 0; i < s->slot_count; i++) {
		struct slot *slot = &s->slots[i];

		if (slot->log.due_ns && slot->log.due_ns <= now)
			server_log_due(s, slot);
		if (slot->state != SLOT_FREE && slot->deadline_ns && slot->deadline_ns <= now)
			server_slot_deadline(s, slot);
	}
	if (s->change.deadline_ns && s->change.deadline_ns <= now)
		server_allow_late(s);
	limits_try_again(s->settings->limits, now);
	int64_t idle = idle_deadline(s);
	if (idle && !s->resting && s->idle_since_ns + REST_AFTER_NS <= now) {
		s->resting = true;
		server_dismiss_idle(s, SERVER_SPARE);
	}
	if (s->phase == SERVER_SERVING &&
		((idle && idle <= now) ||
			s->begun_ns + s->settings->lifetime_ms * 1000000 <= now))
		server_begin_end(s);
	if (s->end_deadline_ns && s->end_deadline_ns <= now)
		s->phase = SERVER_OVER; /* what is left dies with init */
}

/* --- the ways to the end --------------------------------------------------------------------- */

void server_begin_end(struct server *s)
{
	if (s->phase != SERVER_SERVING) {
		if (s->phase == SERVER_STARTING)
			s->phase = SERVER_OVER;
		return;
	}
	s->phase = SERVER_ENDING;
	s->end_deadline_ns = clock_now_ns() +
		((int64_t)s->plan->policy->grace_ms.value + KILL_SPARE_MS) * 1000000;
	for (unsigned i = 0; i < s->slot_count; i++)
		if (s->slots[i].state == SLOT_RUNNING || s->slots[i].state == SLOT_PTY)
			server_ask_to_end(s, &s->slots[i], SIGTERM);
}

static bool is_over(const struct server *s)
{
	return s->phase == SERVER_OVER || (s->phase == SERVER_ENDING && !s->busy);
}

static void handle_signals(struct server *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int signal = (int)info.ssi_signo;

		if (signal != SIGTERM && signal != SIGINT && signal != SIGHUP &&
			signal != SIGQUIT)
			continue;
		/* At the second signal there is no grace any more. */
		if (s->phase == SERVER_ENDING)
			s->phase = SERVER_OVER;
		else
			server_begin_end(s);
	}
}

/* --- init ------------------------------------------------------------------------------------ */

static int watch_mounts(struct server *s)
{
	int r = cover_watch(&s->out->cover, s->plan, s->launch->init, &s->out->watch, s->epoll,
		(uint64_t)SERVER_EVENT_MOUNTS << 32);

	s->out->unwatched = r == -ENOENT;
	return s->out->unwatched ? 0 : r;
}

static int begin_serving(struct server *s)
{
	int r = watch_mounts(s);

	if (r >= 0)
		r = server_watch(s, s->settings->listener, SERVER_EVENT_LISTENER, 0);
	if (r < 0)
		return fault(s, r, "the session cannot be served");
	s->out->ready = true;
	s->listening = true;
	s->phase = SERVER_SERVING;
	s->begun_ns = clock_now_ns();
	s->idle_since_ns = s->begun_ns;
	server_fill_spare(s);
	newpath_watch_begin(
		&s->out->watch, s->plan, s->epoll, (uint64_t)SERVER_EVENT_NEWPATH << 32);
	launch_reap(s->launch);
	s->out->cover.apart = s;
	s->out->cover.apart_size = sizeof(*s);
	r = cover_begin(&s->out->cover, s->launch->box, s->launch->mounts);
	launch_close_views(s->launch);
	if (r < 0)
		return unconfined(s, r);
	s->settings->ready(s->settings->context);
	return 0;
}

/* Begin to serve when every init has applied its plan and carrel-egress, where there is one, is ready. */
static int may_serve(struct server *s)
{
	const struct egress *g = &s->launch->egress;

	if (s->views_awaited || s->phase != SERVER_STARTING)
		return 0;
	s->egress_ns =
		g->begun && !g->ready ? clock_now_ns() + (int64_t)EGRESS_START_MS * 1000000 : 0;
	return s->egress_ns ? 0 : begin_serving(s);
}

static int handle_egress(struct server *s)
{
	struct egress *g = &s->launch->egress;
	bool told = g->lost;

	egress_read(g);
	if (g->lost && s->phase == SERVER_STARTING) {
		s->phase = SERVER_OVER;
		return egress_explain(g, s->e);
	}
	if (g->lost && !told)
		notes_egress_lost(s->plan->policy);
	server_allow_go_on(s);
	return g->ready ? may_serve(s) : 0;
}

/* Handles a record of init, or of a tighter view's. They send only READY, and init SCRATCH and SOCKETS before it;
 * anything else, and the end of one of them, ends the session. */
static int handle_init(struct server *s, unsigned view)
{
	struct channel_record record;
	int fds[CHANNEL_FDS_MAX];
	int channel = server_init_channel(s, view);
	int r = channel_receive(channel, &record, fds);

	if (r == -ECONNRESET)
		r = channel_receive(channel, &record, fds);
	if (r > 0 && record.kind == CHANNEL_SOCKETS && view == 0 && s->views_awaited & 1u &&
		s->launch->egress.begun) {
		r = server_give_sockets(s, &record, fds);
		for (int i = 0; i < CHANNEL_FDS_MAX; i++)
			fd_close(&fds[i]);
		return r;
	}
	autofd int fd = take_fd(&fds[0]);
	if (r > 0 && record.kind == CHANNEL_READY && record.flag)
		s->launch->mounts[view] = take_fd(&fd);
	for (int i = 0; i < CHANNEL_FDS_MAX; i++)
		fd_close(&fds[i]);
	if (r > 0 && record.kind == CHANNEL_SCRATCH && view == 0 && s->views_awaited & 1u &&
		fd >= 0 && s->launch->scratch < 0) {
		s->launch->scratch = take_fd(&fd);
		return 0;
	}
	if (r > 0 && record.kind == CHANNEL_READY && (s->views_awaited & (1u << view))) {
		s->views_awaited &= ~(1u << view);
		return may_serve(s);
	}
	s->phase = SERVER_OVER;
	if (r > 0 && record.kind == CHANNEL_FAILED) {
		s->out->op = record.op;
		s->out->errnum = record.errnum;
		return explain_op(s->plan, record.op, record.errnum, true, s->e);
	}
	return error_set(
		s->e, ERROR_PROTOCOL, "supervise", 0, NULL, "init ended before the session");
}

/* --- the loop -------------------------------------------------------------------------------- */

static int handle_event(struct server *s, uint64_t data)
{
	unsigned index = (unsigned)data;

	switch ((enum server_event)(data >> 32)) {
	case SERVER_EVENT_INIT:
		return handle_init(s, index);
	case SERVER_EVENT_SIGNAL:
		handle_signals(s);
		return 0;
	case SERVER_EVENT_TIMER:
		handle_timer(s);
		if (!s->egress_ns || s->egress_ns > clock_now_ns())
			return 0;
		s->phase = SERVER_OVER;
		return egress_explain(&s->launch->egress, s->e);
	case SERVER_EVENT_EGRESS:
		return handle_egress(s);
	case SERVER_EVENT_MOUNTS:
		handle_mounts(s, data);
		return 0;
	case SERVER_EVENT_LISTENER:
		server_accept(s);
		return 0;
	case SERVER_EVENT_PARENT:
		if (epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->settings->die_with, NULL) == 0)
			server_begin_end(s);
		return 0;
	case SERVER_EVENT_CLIENT:
		if (s->clients[index].fd >= 0)
			server_client_event(s, index);
		return 0;
	case SERVER_EVENT_SLOT:
		server_slot_event(s, index);
		return 0;
	case SERVER_EVENT_LOG:
		server_log_event(s, index);
		return 0;
	case SERVER_EVENT_NEWPATH:
		newpath_watch_wake(&s->out->watch);
		return 0;
	}
	return -EPROTO;
}

/* How many events, or -errno. */
static int wait_for_events(const struct server *s, struct epoll_event *events)
{
	int ms = newpath_watch_wait_ms(&s->out->watch);
	int n = s->resting ? rest_epoll(s->launch->box, s->epoll, events, EVENTS, ms)
			   : epoll_wait(s->epoll, events, EVENTS, ms);
	return n < 0 && !s->resting ? -errno : n;
}

static int run_loop(struct server *s)
{
	while (!is_over(s)) {
		struct epoll_event events[EVENTS];
		int r = set_timer(s);
		int n = r < 0 ? r : wait_for_events(s, events);

		if (n < 0 && (r < 0 || n != -EINTR))
			return fault(s, n, "cannot wait for events");
		for (int i = 0; i < n && s->phase != SERVER_OVER; i++) {
			r = handle_event(s, events[i].data.u64);
			if (r < 0)
				return r;
		}
		if (s->phase != SERVER_OVER)
			newpath_watch_step(&s->out->watch);
	}
	return 0;
}

/* Each execution and each client takes a descriptor of S; init keeps the old limit. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* fewer clients then, and they are told */
}

static int watch_all(struct server *s)
{
	const int die_with = s->settings->die_with, egress = s->launch->egress.channel;
	int r = 0;

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->epoll < 0 || s->timer < 0)
		return -errno;
	for (unsigned view = 0; view < VIEW_COUNT && r >= 0; view++) {
		int channel = server_init_channel(s, view);

		if (channel < 0)
			continue;
		s->views_awaited |= 1u << view;
		r = server_watch(s, channel, SERVER_EVENT_INIT, view);
	}
	if (r < 0)
		return r;
	r = server_watch(s, s->signals->fd, SERVER_EVENT_SIGNAL, 0);
	if (r < 0)
		return r;
	r = server_watch(s, s->timer, SERVER_EVENT_TIMER, 0);
	if (r < 0)
		return r;
	r = die_with >= 0 ? server_watch(s, die_with, SERVER_EVENT_PARENT, 0) : 0;
	if (r < 0)
		return r;
	return egress >= 0 ? server_watch(s, egress, SERVER_EVENT_EGRESS, 0) : 0;
}

static int watch_session(struct server *s)
{
	int r = watch_all(s);

	if (r < 0)
		return fault(s, r, "cannot watch for events");
	raise_descriptor_limit();
	s->out->cover.explain = s->launch->explain;
	r = confine_self();
	s->out->confined = r >= 0;
	return r < 0 ? unconfined(s, r) : 0;
}

/* Clients that wait for the end keep their connection; the others see it close. */
static void leave_clients(struct server *s)
{
	struct serve_outcome *o = s->out;

	for (unsigned i = 0; i < s->client_slots; i++) {
		struct server_client *c = &s->clients[i];

		if (c->fd >= 0 && c->ends_session && o->waiting_count < SERVE_WAITING_MAX) {
			o->waiting_tags[o->waiting_count] = c->end_tag;
			o->waiting[o->waiting_count++] = take_fd(&c->fd);
		}
		fd_close(&c->fd);
	}
	for (unsigned i = 0; i < s->slot_count; i++)
		if (s->slots[i].state != SLOT_FREE)
			server_free_slot(s, &s->slots[i]);
}

int serve(const struct plan *plan, struct launch *l, struct signals *signals,
	const struct serve_settings *settings, struct serve_outcome *ret, struct error *e)
{
	struct server *s = calloc(1, sizeof(*s));

	*ret = (struct serve_outcome){ .op = -1 };
	if (!s) {
		launch_kill(l);
		return error_no_memory(e, "supervise");
	}
	s->plan = plan;
	s->launch = l;
	s->signals = signals;
	s->settings = settings;
	s->out = ret;
	s->e = e;
	ret->cover = COVER_NONE;
	s->epoll = s->timer = -1;
	int r = watch_session(s);
	if (r >= 0)
		r = run_loop(s);
	newpath_watch_stop(&ret->watch);
	cover_end(&ret->cover);
	int settled = ret->confined ? cover_settle(&ret->cover) : 0;
	if (settled < 0 && r >= 0)
		r = unconfined(s, settled);
	cover_reap(&ret->cover);
	launch_close_views(l);
	launch_kill(l);
	leave_clients(s);
	fd_close(&s->timer);
	fd_close(&s->epoll);
	free(s->change.texts);
	free(s);
	return r;
}

void serve_farewell(struct serve_outcome *o, const char *text, const struct error *e)
{
	for (unsigned i = 0; i < o->waiting_count; i++) {
		const struct control_record done = { .kind = CONTROL_DONE,
			.tag = o->waiting_tags[i] };
		size_t length = strlen(text);

		/* A client that has gone waits for nothing. */
		(void)!(e ? control_send_error(o->waiting[i], &done, e)
			  : control_send(o->waiting[i], &done, text,
				    length < CONTROL_BODY_MAX ? length : CONTROL_BODY_MAX, NULL,
				    0));
		fd_close(&o->waiting[i]);
	}
	o->waiting_count = 0;
}

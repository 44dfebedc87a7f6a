/*
 * serve_slot.c - the monitors of a live session, and the end of executions.
 *
 * Runs in: S. A slot holds a monitor: it is idle before and after an execution, and free when the monitor has
 * ended. May not: wait for one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/serve/server.h"

enum { KILL_PATIENCE_MS = 3000, GRACE_DEFAULT_MS = 5000 };

static int64_t in_ms(uint64_t ms)
{
	return clock_now_ns() + (int64_t)ms * 1000000;
}

/* The end of the channel can be seen before its event is handled: a monitor that has ended must
 * get no work. */
static bool has_ended(const struct slot *slot)
{
	struct pollfd event = { .fd = slot->channel };

	return poll(&event, 1, 0) != 0;
}

static unsigned index_of(const struct server *s, const struct slot *slot)
{
	return (unsigned)(slot - s->slots);
}

/* --- monitors --------------------------------------------------------------------------------- */

void server_free_slot(struct server *s, struct slot *slot)
{
	if (slot->state == SLOT_FREE)
		return; /* its client was dropped while it was told, which freed this slot */
	if (slot->state != SLOT_IDLE) {
		s->busy--;
		s->idle_since_ns = clock_now_ns();
	}
	fd_close(&slot->channel); /* a monitor that still lives clears up and ends */
	if (slot->request)
		control_close_fds(slot->request);
	free(slot->request);
	free(slot->requested_path);
	limits_execution_end(s->settings->limits, &slot->group);
	server_log_close(s, slot);
	*slot = (struct slot){ .state = SLOT_FREE,
		.channel = -1,
		.client = -1,
		.group = CGROUP_NONE,
		.log = SLOT_NO_LOG };
}

void server_rest_slot(struct server *s, struct slot *slot)
{
	if (slot->state == SLOT_FREE)
		return; /* its client was dropped while it was told, which freed this slot */
	s->busy--;
	s->idle_since_ns = clock_now_ns();
	free(slot->requested_path);
	*slot = (struct slot){ .state = SLOT_IDLE,
		.channel = slot->channel,
		.pid = slot->pid,
		.host_pid = slot->host_pid,
		.view = slot->view,
		.client = -1,
		.group = CGROUP_NONE,
		.log = SLOT_NO_LOG };
	server_dismiss_idle(s, SERVER_IDLE);
}

void server_dismiss_idle(struct server *s, unsigned most)
{
	unsigned spare = 0, others = 0;

	for (unsigned i = 0; i < s->slot_count; i++) {
		struct slot *slot = &s->slots[i];

		if (slot->state != SLOT_IDLE)
			continue;
		if (slot->view ? ++others > most - SERVER_SPARE : ++spare > most)
			server_free_slot(s, slot);
	}
}

static struct slot *new_monitor(struct server *s, unsigned view)
{
	const struct channel_record record = { .kind = CHANNEL_MONITOR };
	struct slot *slot = NULL;
	int pair[2];

	for (unsigned i = 0; i < SERVER_SLOTS && !slot; i++)
		if (s->slots[i].state == SLOT_FREE)
			slot = &s->slots[i];
	if (!slot || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return NULL;
	autofd int own = pair[0], its = pair[1];
	/* Only our end is non-blocking: the monitor may wait, since it has nothing else to do. */
	if (fcntl(own, F_SETFL, O_NONBLOCK) < 0)
		return NULL;
	/*
	 * With SO_PASSCRED the monitor's first record brings its pid, which is needed for the group
	 * of its execution, and to explain what the execution was refused (unix(7)).
	 */
	if ((s->settings->limits->session.group.dir >= 0 || s->launch->explain) &&
		setsockopt(own, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int)) < 0)
		return NULL;
	if (channel_send(server_init_channel(s, view), &record, &its, 1) < 0 ||
		server_watch(s, own, SERVER_EVENT_SLOT, index_of(s, slot)) < 0)
		return NULL;
	if (index_of(s, slot) >= s->slot_count)
		s->slot_count = index_of(s, slot) + 1;
	*slot = (struct slot){ .state = SLOT_IDLE,
		.channel = take_fd(&own),
		.view = view,
		.client = -1,
		.group = CGROUP_NONE,
		.log = SLOT_NO_LOG };
	return slot;
}

void server_fill_spare(struct server *s)
{
	unsigned idle = 0;

	if (s->phase != SERVER_SERVING)
		return;
	for (unsigned i = 0; i < s->slot_count; i++)
		idle += s->slots[i].state == SLOT_IDLE && !s->slots[i].view;
	for (; idle < SERVER_SPARE; idle++)
		if (!new_monitor(s, 0))
			return; /* the next execution tries again, and says why not */
}

struct slot *server_take_monitor(
	struct server *s, unsigned client, uint64_t tag, unsigned view, struct error *e)
{
	struct slot *slot = NULL;

	for (unsigned i = 0; i < s->slot_count && !slot; i++) {
		if (s->slots[i].state != SLOT_IDLE || s->slots[i].view != view)
			continue;
		if (has_ended(&s->slots[i]))
			server_free_slot(s, &s->slots[i]);
		else
			slot = &s->slots[i];
	}
	if (!slot)
		slot = new_monitor(s, view);
	if (!slot) {
		(void)error_set(e, ERROR_LIMIT, "session", ERROR_OWN(EAGAIN), NULL,
			"the session has as many executions as it can");

		return NULL;
	}
	slot->client = (int)client;
	slot->tag = tag;
	return slot;
}

void server_make_busy(struct server *s, struct slot *slot, enum slot_state state)
{
	if (slot->state == SLOT_IDLE)
		s->busy++;
	slot->state = state;
}

int server_send_monitor(struct slot *slot, const struct channel_record *record)
{
	return channel_send(slot->channel, record, NULL, 0);
}

/* --- the end --------------------------------------------------------------------------------- */

static int signal_monitor(struct slot *slot, int signal, bool everything)
{
	const struct channel_record record = {
		.kind = CHANNEL_SIGNAL, .number = signal, .flag = everything
	};

	return server_send_monitor(slot, &record);
}

void server_kill_slot(struct slot *slot)
{
	if (slot->state == SLOT_KILLING || slot->state == SLOT_LINGERS)
		return; /* asking again gains no time */
	slot->state = SLOT_KILLING;
	slot->deadline_ns = in_ms(KILL_PATIENCE_MS);
	(void)!signal_monitor(
		slot, SIGKILL, true); /* what does not take it is dismissed at the deadline */
}

/* The execution has not begun, and will not begin any more. */
static void abandon(struct server *s, struct slot *slot)
{
	struct control_record record = { .started = STARTED_NO, .wait_status = SIGKILL };

	server_send_end(s, slot, &record, NULL);
	server_free_slot(s, slot);
}

void server_ask_to_end(struct server *s, struct slot *slot, int signal)
{
	if (slot->state == SLOT_PTY) {
		abandon(s, slot);
		return;
	}
	if (slot->state == SLOT_STOPPING)
		server_kill_slot(slot);
	if (slot->state != SLOT_RUNNING)
		return;
	slot->state = SLOT_STOPPING;
	slot->deadline_ns =
		in_ms((uint64_t)(slot->grace_ms ? slot->grace_ms : GRACE_DEFAULT_MS));
	/* A stopped command must run to see the signal. */
	int r = signal_monitor(slot, signal, true);
	if (r >= 0)
		(void)!signal_monitor(slot, SIGCONT, true); /* the grace ends in any case */
}

/* The monitor has ended. What killed it may have been meant for all processes, as kill(-1) is, and
 * then the idle monitors may be dying too: the next execution gets one that is forked after this. */
static void lose_execution(struct server *s, struct slot *slot)
{
	struct control_record record = { .started = STARTED_UNKNOWN, .number = EIO };

	if (slot->state == SLOT_RUNNING || slot->state == SLOT_STOPPING ||
		slot->state == SLOT_KILLING || slot->state == SLOT_PTY)
		server_send_end(s, slot, &record, NULL);
	if (slot->state == SLOT_OPENING) {
		struct error e = { 0 };
		const struct control_record request = { .tag = slot->tag };
		(void)error_set(&e, ERROR_LIMIT, "session", EIO, NULL,
			"the session cannot do this at the moment");

		server_refuse(s, slot->client, &request, &e);
	}
	server_free_slot(s, slot);
	for (unsigned i = 0; i < s->slot_count; i++)
		if (s->slots[i].state == SLOT_IDLE)
			server_free_slot(s, &s->slots[i]);
}

void server_slot_deadline(struct server *s, struct slot *slot)
{
	const struct channel_record dismiss = { .kind = CHANNEL_DISMISS, .number = slot->pid };

	slot->deadline_ns = 0;
	switch (slot->state) {
	case SLOT_RUNNING:
		slot->timed_out = true;
		server_ask_to_end(s, slot, SIGTERM);
		return;
	case SLOT_STOPPING:
		server_kill_slot(slot);
		return;
	case SLOT_KILLING:
		/* A process inside stopped the monitor, or a process cannot die: init takes over
		 * and kills. */
		if (slot->pid &&
			channel_send(server_init_channel(s, slot->view), &dismiss, NULL, 0) < 0)
			server_begin_end(s);
		slot->deadline_ns = in_ms(KILL_PATIENCE_MS);
		return;
	case SLOT_FREE:
	case SLOT_IDLE:
	case SLOT_OPENING:
	case SLOT_PTY:
	case SLOT_LINGERS:
		return;
	}
}

static void take_end(struct server *s, struct slot *slot, const struct channel_record *record)
{
	struct control_record answer = {
		.number = record->errnum,
		.flag = (uint32_t)record->op,
		.wait_status = record->wait_status,
		.started = record->started,
		.user_us = record->user_us,
		.system_us = record->system_us,
		.max_rss_bytes = record->max_rss_kib * 1024,
	};
	int signal = limits_signal(record->wait_status, slot->cpu_time, slot->file_size);

	if (signal)
		answer.limit =
			signal == SIGXCPU ? CONTROL_LIMIT_CPU_TIME : CONTROL_LIMIT_FILE_SIZE;
	/* Without a cgroup the monitor reports whether the session's limit was reached at the end. */
	if (!answer.limit && record->number == EAGAIN && record->started == STARTED_YES &&
		record->wait_status != 0)
		answer.limit = CONTROL_LIMIT_PIDS;
	slot->state = SLOT_LINGERS;
	slot->deadline_ns = 0;
	server_send_end(s, slot, &answer, record);
	/* The client reads the terminal to its end first. It may have disconnected while it was
	 * sent the record. */
	bool waits = record->flag && !slot->has_tty && !slot->detached && slot->group.dir < 0;
	if (slot->state == SLOT_LINGERS && waits)
		server_rest_slot(s, slot);
	else if (slot->state == SLOT_LINGERS && (!slot->has_tty || slot->client < 0))
		server_free_slot(s, slot);
}

static void take_terminal(struct server *s, struct slot *slot, int *master)
{
	const struct control_record record = {
		.kind = CONTROL_TERMINAL, .tag = slot->tag, .execution = slot->number
	};

	server_answer(s, slot->client, &record, NULL, 0, master, 1);
}

/* The service runs and belongs to the session now: its client hears no more of it. */
static void release_service(struct server *s, struct slot *slot)
{
	const struct control_record record = {
		.kind = CONTROL_DONE, .tag = slot->tag, .execution = slot->number
	};

	server_answer(s, slot->client, &record, NULL, 0, NULL, 0);
	slot->client = -1;
}

static void handle_record(struct server *s, struct slot *slot,
	const struct channel_record *record, int *fd, const char *body)
{
	struct control_record stopped = { .kind = CONTROL_STOPPED,
		.tag = slot->tag,
		.execution = slot->number,
		.number = record->number };

	switch ((enum channel_kind)record->kind) {
	case CHANNEL_READY:
		if (*fd < 0 && !slot->pid) {
			slot->pid = record->number;
			server_monitor_known(s, slot);
			return;
		}
		if (*fd < 0 || slot->state != SLOT_PTY || !slot->has_tty)
			break;
		take_terminal(s, slot, fd);
		return;
	case CHANNEL_STARTED:
		slot->started = true;
		if (slot->detached)
			release_service(s, slot);
		return;
	case CHANNEL_STOPPED:
		server_answer(s, slot->client, &stopped, NULL, 0, NULL, 0);
		return;
	case CHANNEL_OPENED:
		if (slot->state != SLOT_OPENING)
			break;
		server_opened(s, slot, record, fd, body, record->body);
		return;
	case CHANNEL_ENDED:
		if (slot->state != SLOT_RUNNING && slot->state != SLOT_STOPPING &&
			slot->state != SLOT_KILLING)
			break;
		take_end(s, slot, record);
		return;
	case CHANNEL_FAILED:
		lose_execution(s, slot);
		return;
	case CHANNEL_GO:
	case CHANNEL_SESSION:
	case CHANNEL_SCRATCH:
	case CHANNEL_SOCKETS:
	case CHANNEL_EXEC:
	case CHANNEL_SIGNAL:
	case CHANNEL_CONTINUE:
	case CHANNEL_MONITOR:
	case CHANNEL_DISMISS:
	case CHANNEL_PTY:
	case CHANNEL_OPEN:
		break;
	}
	lose_execution(s, slot);
}

void server_slot_event(struct server *s, unsigned index)
{
	struct slot *slot = &s->slots[index];
	struct channel_record record;
	int fds[CHANNEL_FDS_MAX];
	pid_t sender = 0;

	if (slot->state == SLOT_FREE)
		return;
	int r = channel_receive_from(
		slot->channel, &record, fds, s->path, sizeof(s->path), &sender);
	/*
	 * The monitor has ended with a signal from S unread. The kernel tells that error once; what
	 * the monitor said before is queued behind it: unix(7), unix_release_sock().
	 */
	if (r == -ECONNRESET)
		r = channel_receive_from(
			slot->channel, &record, fds, s->path, sizeof(s->path), &sender);
	if (r == -EAGAIN)
		return;
	if (r <= 0) {
		lose_execution(s, slot);
		return;
	}
	/* The first record comes from the monitor itself: nothing else has run yet that has this
	 * socket. */
	if (!slot->host_pid)
		slot->host_pid = sender;
	if (record.body < sizeof(s->path))
		handle_record(s, slot, &record, &fds[0], s->path);
	else
		lose_execution(s, slot); /* our monitors send neither so much nor a part */
	for (int i = 0; i < CHANNEL_FDS_MAX; i++)
		fd_close(&fds[i]);
}

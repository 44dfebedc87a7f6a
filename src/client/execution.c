/*
 * execution.c - see execution.h.
 *
 * Runs in: the client. If it is killed, the session's supervisor ends the execution.
 */
#include "client/execution.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/channel.h"
#include "client/request.h"
#include "host/launch/job.h"
#include "host/machine/explain.h"

enum event {
	EVENT_CONTROL,
	EVENT_SIGNAL,
	EVENT_TIMER,
	EVENT_STDIO = 8,
	EVENT_TTY = 16,
};

enum { GRACE_DEFAULT_MS = 5000 };

static int watch(struct execution *x, int fd, enum event event)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = (uint64_t)event };

	return epoll_ctl(x->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int send_control(struct execution *x, enum control_kind kind, int number, bool flag)
{
	const struct control_record record = { .kind = (uint16_t)kind,
		.execution = x->end.number,
		.number = number,
		.flag = flag };
	int r = control_send(x->session->fd, &record, NULL, 0, NULL, 0);

	/* The session has just ended; what it sent before is still to be read. */
	return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

/* --- signals --------------------------------------------------------------------------------- */

static int start_grace(struct execution *x)
{
	uint64_t asked_ms = x->request->head.limits[EXECUTION_GRACE];
	uint64_t ms = asked_ms ? asked_ms : GRACE_DEFAULT_MS;
	struct itimerspec t = { .it_value = { .tv_sec = (time_t)(ms / 1000),
					.tv_nsec = (long)(ms % 1000) * 1000000 } };

	x->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (x->timer < 0)
		return -errno;
	int r = watch(x, x->timer, EVENT_TIMER);
	if (r < 0)
		return r;
	return timerfd_settime(x->timer, 0, &t, NULL) < 0 ? -errno : 0;
}

static int kill_tree(struct execution *x)
{
	x->killed = true;
	return send_control(x, CONTROL_SIGNAL, SIGKILL, true);
}

static int ask_to_end(struct execution *x, int signal)
{
	if (x->end_requested)
		return signal == SIGHUP || signal == SIGQUIT || x->killed ? 0 : kill_tree(x);
	x->end_requested = true;
	int r = send_control(x, CONTROL_SIGNAL, signal, false);
	if (r >= 0)
		r = send_control(x, CONTROL_SIGNAL, SIGCONT, false);
	return r < 0 ? r : start_grace(x);
}

static int job_send(void *context, int signal)
{
	return send_control(context, CONTROL_SIGNAL, signal, false);
}

static int job_go_on(void *context, bool in_front)
{
	return send_control(context, CONTROL_CONTINUE, 0, in_front);
}

static int job_end(void *context, int signal)
{
	return ask_to_end(context, signal);
}

static int job_close(void *context)
{
	struct execution *x = context;

	return x->has_tty ? send_control(x, CONTROL_CLOSE, 0, false) : 0;
}

static struct job job_of(struct execution *x)
{
	static const struct job_calls calls = { job_send, job_go_on, job_end, job_close };

	return (struct job){ .tty = x->has_tty ? &x->tty : NULL,
		.stdio = x->relaying ? &x->stdio : NULL,
		.signals = &x->signals,
		.running = !x->end_requested,
		.calls = &calls,
		.context = x };
}

static int handle_signal(struct execution *x, int signal)
{
	const struct job job = job_of(x);

	return job_signal(&job, signal);
}

static uint64_t bit_of(int signal)
{
	return UINT64_C(1) << (signal - 1);
}

/* The execution has no number yet. A caller who signals twice does not wait any longer for a silent session. */
static int keep_early(struct execution *x, int signal)
{
	const uint64_t ending =
		bit_of(SIGTERM) | bit_of(SIGINT) | bit_of(SIGHUP) | bit_of(SIGQUIT);

	if ((bit_of(signal) & ending) && (x->early & ending))
		return error_set(x->e, ERROR_SESSION, "session", EINTR, x->session->id,
			"the session does not answer");
	x->early |= bit_of(signal);
	return 0;
}

static int handle_early(struct execution *x)
{
	int r = 0;

	for (int signal = 1; signal <= 64 && r >= 0; signal++)
		if (x->early & bit_of(signal))
			r = handle_signal(x, signal);
	return r;
}

static int read_signals(struct execution *x)
{
	struct signalfd_siginfo info;
	int r = 0;

	while (r >= 0 && read(x->signals.fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int signal = (int)info.ssi_signo;

		r = x->end.number ? handle_signal(x, signal) : keep_early(x, signal);
	}
	return r;
}

/* --- records --------------------------------------------------------------------------------- */

static int take_terminal(struct execution *x)
{
	if (x->has_tty || x->message.fd_count != 1)
		return -EPROTO;
	int r = tty_open(&x->tty, &x->stdio, take_fd(&x->message.fds[0]), x->e);
	x->has_tty = r >= 0;
	int front = r < 0 ? r : tty_start(&x->tty, x->epoll, EVENT_TTY);
	return front < 0 ? front : send_control(x, CONTROL_START, 0, front > 0);
}

/* Save the output in a directory beside the scratch, which tools can read and not write. */
static int save_output(struct execution *x)
{
	const struct client_session *s = x->session;

	(void)snprintf(x->results_path, sizeof(x->results_path), "%s/tool-results", s->path);
	x->results = fd_open_at(s->dir, "tool-results", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (x->results < 0)
		return error_set(x->e, ERROR_SCRATCH, "session", -x->results, x->results_path,
			"cannot open the directory for outputs");
	stdio_save_in(&x->stdio, x->results, x->results_path, x->end.number, false);
	return 0;
}

/* Now that the execution has a number, its outputs have names. */
static int accepted(struct execution *x, uint32_t number)
{
	x->end.number = number;
	int r = stdio_is_held(&x->stdio) ? save_output(x) : 0;
	if (r >= 0)
		r = stdio_start(&x->stdio, x->epoll, EVENT_STDIO);
	x->relaying = r >= 0;
	return r < 0 ? r : handle_early(x);
}

/* Names or a text with their NUL, if the record says so; then what was used, if limits hold. */
static void read_end_body(struct execution *x)
{
	struct execution_end *end = &x->end;
	const char *body = x->message.body;
	size_t size = x->message.size;

	if (end->how.started == STARTED_YES &&
		(end->how.number == CONTROL_NETWORK_NAMES ||
			end->how.number == CONTROL_NETWORK_TEXT)) {
		size_t length = strnlen(body, size) + 1; /* a NUL is behind the body */

		if (length <= sizeof(end->network))
			memcpy(end->network, body, length);
		length = length > size ? size : length;
		body += length;
		size -= length;
	}
	end->limited = size == sizeof(end->usage);
	if (end->limited)
		memcpy(&end->usage, body, sizeof(end->usage));
}

static int handle_message(struct execution *x, bool *ret_over)
{
	const struct control_record *m = &x->message.head;
	const struct job job = job_of(x);

	switch ((enum control_kind)m->kind) {
	case CONTROL_ACCEPTED:
		return x->end.number ? -EPROTO : accepted(x, m->execution);
	case CONTROL_TERMINAL:
		return take_terminal(x);
	case CONTROL_STOPPED:
		return job_stopped(&job, m->number);
	case CONTROL_DONE:
		if (!x->end.number || !(x->request->head.flags & REQUEST_DETACH))
			return -EPROTO;
		x->end.runs = true;
		*ret_over = true;
		return 0;
	case CONTROL_ENDED:
		x->end.ended = true;
		x->end.how = *m;
		read_end_body(x);
		if (x->message.fd_count == 1)
			x->end.refused = take_fd(&x->message.fds[0]);
		*ret_over = true;
		return 0;
	case CONTROL_ERROR:
		control_read_error(&x->message, x->e);
		/* The session answers so if the execution has just ended: that is no error. */
		if (x->end.number && x->e && x->e->code == ERROR_EXECUTION) {
			*x->e = (struct error){ 0 };
			return 0;
		}
		return -EIO;
	case CONTROL_EXEC:
	case CONTROL_START:
	case CONTROL_SIGNAL:
	case CONTROL_CONTINUE:
	case CONTROL_CLOSE:
	case CONTROL_SHOW:
	case CONTROL_STOP:
	case CONTROL_OPEN:
	case CONTROL_CLASSIFY:
	case CONTROL_END:
	case CONTROL_LOG:
	case CONTROL_MOVED:
	case CONTROL_ALLOW:
	case CONTROL_TEXT:
	case CONTROL_OPENED:
		break;
	}
	return -EPROTO;
}

static int handle_control(struct execution *x, bool *ret_over)
{
	int r = control_receive(x->session->fd, &x->message);

	if (r == -EAGAIN)
		return 0;
	if (r == 0 || r == -ECONNRESET)
		return error_set(x->e, ERROR_SESSION, "session", 0, x->session->id,
			"the session ended before the command did");
	if (r > 0)
		r = handle_message(x, ret_over);
	control_close_fds(&x->message);
	return r;
}

/* --- the loop -------------------------------------------------------------------------------- */

static int handle_event(struct execution *x, uint64_t event, bool *ret_over)
{
	if (event == EVENT_CONTROL)
		return handle_control(x, ret_over);
	if (event == EVENT_SIGNAL)
		return read_signals(x);
	if (event == EVENT_TIMER) {
		fd_close(&x->timer);
		return kill_tree(x);
	}
	if (event >= EVENT_TTY)
		return tty_step(&x->tty, event) == TTY_HANGUP ? ask_to_end(x, SIGHUP) : 0;
	if (event >= EVENT_STDIO && event < EVENT_STDIO + STDIO_STREAMS)
		return stdio_step(&x->stdio, (unsigned)(event - EVENT_STDIO)) &&
				!x->end_requested
			? ask_to_end(x, SIGTERM)
			: 0;
	return 0;
}

static int run_loop(struct execution *x)
{
	bool over = false;

	while (!over) {
		struct epoll_event events[8];
		int n = epoll_wait(x->epoll, events, 8, -1);

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n && !over; i++) {
			int r = handle_event(x, events[i].data.u64, &over);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int begin_execution(struct execution *x)
{
	int caller_fd[STDIO_STREAMS] = { 0, 1, 2 };
	int r = signals_block(&x->signals);

	x->epoll = r < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
	if (x->epoll < 0)
		return error_set(x->e, ERROR_INTERNAL, "launch", r < 0 ? -r : errno, NULL,
			"cannot watch for events");
	/* A reader that reads our output to its end must not wait for a service. */
	autofd int null = -1;
	if (x->request->head.flags & REQUEST_DETACH) {
		null = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
		if (null < 0)
			return error_set(x->e, ERROR_INTERNAL, "launch", -null, "/dev/null",
				"cannot open");
		for (unsigned i = 0; i < STDIO_STREAMS; i++)
			caller_fd[i] = null;
	}
	r = stdio_prepare_output(
		&x->stdio, caller_fd, x->request->tty, &x->request->output, x->e);
	if (r < 0)
		return r;
	x->has_stdio = true;
	r = watch(x, x->session->fd, EVENT_CONTROL);
	if (r < 0)
		return r;
	r = watch(x, x->signals.fd, EVENT_SIGNAL);
	if (r < 0)
		return r;
	r = request_send(x->session->fd, x->request, &x->stdio, x->e);
	if (r < 0)
		return r;
	stdio_child_started(&x->stdio);
	passed_close(&x->request->passed);
	return 0;
}

int execution_run(struct execution *x, const struct client_session *session,
	const struct execution_request *request, struct execution_end *ret, struct error *e)
{
	x->session = session;
	x->request = request;
	x->e = e;
	x->epoll = x->timer = x->signals.fd = x->results = x->end.refused = -1;
	int r = begin_execution(x);
	if (r >= 0)
		r = run_loop(x);
	if (r < 0 && e && e->code == ERROR_NONE)
		r = error_set(e, ERROR_PROTOCOL, "session", -r, session->id,
			"the execution cannot be followed");
	const struct job job = job_of(x);
	job_drain(&job, x->end_requested);
	if (x->has_stdio) {
		int closed = stdio_close(&x->stdio, e);

		r = r < 0 ? r : closed;
	}
	fd_close(&x->results);
	fd_close(&x->timer);
	fd_close(&x->epoll);
	fd_close(&x->signals.fd);
	*ret = x->end;
	return r;
}

/* The command was looked for in the PATH of the execution, else of the session, as in box/command.c. */
static int explain_unstarted(const struct control_record *how, const struct client_session *s,
	const struct execution_request *request, struct error *e)
{
	char *session_path = client_path_env(s);
	const char *path = session_path;

	for (const char *const *env = request->envp; env && *env; env++)
		if (!strncmp(*env, "PATH=", 5))
			path = *env + 5;
	int status = explain_exec(
		(int)how->flag, how->number, request->argv[0], request->cwd, path, true, e);
	free(session_path);
	return status;
}

int execution_status(const struct execution_end *end, const struct client_session *session,
	const struct execution_request *request, struct error *e)
{
	const struct control_record *how = &end->how;
	const char *name = request->argv[0];
	bool full = how->limit == CONTROL_LIMIT_MEMORY;

	if (!end->ended)
		return end->number ? 0 : STATUS_CARREL;
	if (how->limit == CONTROL_LIMIT_TIMEOUT)
		return STATUS_TIMED_OUT;
	if (how->started == STARTED_NO && how->number)
		return explain_unstarted(how, session, request, e);
	if (how->started == STARTED_NO) {
		(void)error_set(e, ERROR_PROTOCOL, "session", 0, name,
			"the command was killed before it started");
		return STATUS_CARREL;
	}
	if (how->started == STARTED_UNKNOWN && (full || !how->wait_status)) {
		(void)error_set(e, full ? ERROR_LIMIT : ERROR_PROTOCOL, "session",
			full ? ERROR_OWN(ENOMEM) : 0, name, "%s",
			full ? "the memory limit was reached while the command was started"
			     : "it is not known how the command ended");
		if (full)
			error_hint(e,
				"it needs some hundred KiB, a shell a few MiB, beside what is left in "
				"/dev/shm: remove files there, end the session, or give more with "
				"--memory");
		return STATUS_CARREL;
	}
	return WIFSIGNALED(how->wait_status) ? 128 + WTERMSIG(how->wait_status)
					     : WEXITSTATUS(how->wait_status);
}

/*
 * tool_exec.c - the tool `exec`: a command in the session, its output within a budget.
 *
 * Runs in: carrel-agent, outside. The command runs inside, as any execution of the session does.
 *
 * One call is one execution: three pipes, an EXEC record, ACCEPTED, and ENDED, which comes when
 * nothing of the execution is alive any more.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/capture.h"
#include "agent/exec_notes.h"
#include "agent/exec_refused.h"
#include "agent/exec_request.h"
#include "agent/harmless.h"
#include "agent/tool_exec_fields.h"
#include "agent/tools.h"
#include "base/fd.h"
#include "base/name.h"
#include "box/channel.h"
#include "host/launch/notes.h"

enum { STREAMS = 2 };

struct work {
	struct session_request request; /* first: the answer's struct is the work */
	struct call *call;
	struct agent_session *session;
	const json_t *arguments;
	struct capture out[STREAMS];
	bool merged, cancelled, too_long;
	struct watch in;  /* stdin, while there is text for it */
	const char *text; /* of stdin */
	size_t left;
	uint32_t execution;        /* 0: not accepted yet */
	struct control_record end; /* ENDED, while the session is asked what it took away */
	char network
		[NOTES_TEXT_MAX]; /* CONTROL_NETWORK_NAMES, CONTROL_NETWORK_TEXT: of the end's body */
	int refused; /* what the command was (host/explain/board.h), until it is said; -1: not known */
};

static const char *const names[STREAMS] = { "stdout", "stderr" };

static void work_free(struct work *w)
{
	agent_session_forget(w->session, &w->request);
	loop_close_watched(w->session->loop, &w->in);
	for (int i = 0; i < STREAMS; i++)
		capture_free(&w->out[i]);
	fd_close(&w->refused);
	free(w);
}

/* --- stdin ------------------------------------------------------------------------------------ */

/* A command need not read its input: then the rest is dropped, as a shell does. */
static void feed(struct watch *in, uint32_t events)
{
	struct work *w = in->context;

	(void)events;
	while (w->left > 0) {
		ssize_t n = write(in->fd, w->text, w->left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			break;
		w->text += n;
		w->left -= (size_t)n;
	}
	loop_close_watched(w->session->loop, in);
}

/* The end that the command reads, if there is text for it; our end is w->in. */
static int open_stdin(struct work *w, const json_t *text)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	w->in = (struct watch){ .fd = ends[1], .ready = feed, .context = w };
	w->text = json_string_value(text);
	w->left = json_string_length(text);
	if (fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0 ||
		(!w->session->own_user && fchmod(ends[0], 0444) < 0)) {
		int r = -errno;

		close(ends[0]);
		return r;
	}
	return ends[0];
}

/* --- the answer ------------------------------------------------------------------------------- */

/* Add one stream to both forms of the answer. */
static int add_stream(struct work *w, int i, json_t *structured, struct buffer *text)
{
	struct capture *c = &w->out[i];
	autobuffer struct buffer shown = { 0 };
	char path[2048], key[16];
	int r = 0;

	harmless_add(&shown, c->kept.data, c->kept.used);
	if (c->kept.failed || shown.failed)
		return -ENOMEM;
	if (i == 1 && shown.used > 0)
		buffer_format(text, "%s[stderr]\n", text->used ? "\n" : "");
	buffer_add(text, shown.data, shown.used);
	if (text->used > 0 && text->data[text->used - 1] != '\n')
		buffer_text(text, "\n");
	r |= json_object_set_new(
		structured, names[i], json_stringn(shown.data ? shown.data : "", shown.used));
	(void)snprintf(key, sizeof(key), "%s_chars", names[i]);
	r |= json_object_set_new(structured, key, json_integer((json_int_t)c->budget.chars));
	budget_path(&c->budget, path, sizeof(path));
	(void)snprintf(key, sizeof(key), "%s_file", names[i]);
	if (path[0])
		r |= json_object_set_new(structured, key, json_string(path));
	return r;
}

static void add_end(const struct work *w, const struct control_record *end, struct buffer *text)
{
	const char *word = exec_request_limit(end, w->too_long);

	if (WIFSIGNALED(end->wait_status)) {
		const char *name = name_signal(WTERMSIG(end->wait_status));

		buffer_format(text, "[ended by %s", name ? name : "a signal");
	} else if (WEXITSTATUS(end->wait_status) != 0) {
		buffer_format(text, "[exit status %d", WEXITSTATUS(end->wait_status));
	} else if (word || text->used == 0) {
		buffer_text(text, text->used ? "[exit status 0" : "[exit status 0, no output");
	} else {
		return;
	}
	if (word)
		buffer_format(text, "; limit: %s", word);
	buffer_text(text, "]\n");
}

static json_t *structure(const struct work *w, const struct control_record *end)
{
	const char *signal =
		WIFSIGNALED(end->wait_status) ? name_signal(WTERMSIG(end->wait_status)) : NULL;
	json_t *status = WIFEXITED(end->wait_status)
		? json_integer(WEXITSTATUS(end->wait_status))
		: json_null();
	json_t *value = json_pack("{s:I, s:o, s:s?, s:b, s:s?}", "execution",
		(json_int_t)w->execution, "status", status, "signal", signal, "timed_out",
		end->limit == CONTROL_LIMIT_TIMEOUT, "limit",
		exec_request_limit(end, w->too_long));
	int r = value ? 0 : -1;

	r |= json_object_set_new(
		value, "wall_ms", json_integer((json_int_t)(end->wall_us / 1000)));
	r |= json_object_set_new(value, "cpu_ms",
		json_integer((json_int_t)((end->user_us + end->system_us) / 1000)));
	r |= json_object_set_new(
		value, "max_rss_bytes", json_integer((json_int_t)end->max_rss_bytes));
	if (r == 0)
		return value;
	json_decref(value);
	return NULL;
}

/* @moved: the session's answer about what it moved away; NULL: it gave none. */
static void add_notes(struct work *w, const struct control_message *moved, json_t *structured,
	struct buffer *text)
{
	json_t *notes = json_array();

	exec_notes_network(&w->end, w->network, notes, text);
	if (moved)
		exec_notes_moved(w->session, moved, notes, text);
	if (json_array_size(notes) > 0)
		(void)json_object_set(structured, "notes", notes);
	json_decref(notes);
}

static void answer_end(struct work *w, const struct control_message *moved)
{
	const struct control_record *end = &w->end;
	autobuffer struct buffer text = { 0 };
	json_t *structured = structure(w, end);
	int r = structured ? 0 : -ENOMEM;

	for (int i = 0; i < STREAMS && r == 0; i++) {
		if (i == 1 && w->merged)
			break;
		capture_cut(&w->out[i]);
		r = add_stream(w, i, structured, &text);
	}
	add_end(w, end, &text);
	if (r == 0)
		r = exec_refused(w->session, w->arguments, &w->refused, structured, &text);
	if (r == 0)
		add_notes(w, moved, structured, &text);
	struct call *c = w->call;
	text.failed = text.failed || r < 0;
	call_log(c, LEVEL_INFO, "execution %u ended after %llu ms", w->execution,
		(unsigned long long)end->wall_us / 1000);
	work_free(w);
	call_answer_text(c, &text, structured);
}

static bool begin_execution(struct work *w, struct buffer *why);

/* The command was not started: say why, and what to do. */
static void answer_unstarted(struct work *w, const struct control_record *end)
{
	struct call *c = w->call;
	autobuffer struct buffer why = { 0 };
	bool no_program = end->number == ENOENT && (int32_t)end->flag != STEP_CWD;

	if (no_program && !w->session->no_bash && field_get(w->arguments, "command")) {
		w->session->no_bash = true;
		for (int i = 0; i < STREAMS; i++)
			capture_free(&w->out[i]);
		loop_close_watched(w->session->loop, &w->in);
		agent_session_forget(w->session, &w->request);
		w->execution = 0;
		if (begin_execution(w, &why))
			return;
	}
	exec_request_explain(w->session, w->arguments, end, &why);
	work_free(w);
	call_refuse(c, "%s", why.data ? why.data : "out of memory");
}

static void forget_execution(struct work *w)
{
	struct control_record record = {
		.kind = CONTROL_SIGNAL, .execution = w->execution, .number = SIGKILL, .flag = 1
	};

	/* If the session does not take the request, it is gone; else the end of the connection stops the command. */
	(void)!control_send(w->session->watch.fd, &record, NULL, 0, NULL, 0);
}

static void accepted(struct work *w, uint32_t execution)
{
	static const char *const merged[] = { "output" };
	char name[BUDGET_NAME_MAX];
	int r = 0;

	w->execution = execution;
	call_log(w->call, LEVEL_DEBUG, "execution %u started", execution);
	for (int i = 0; i < (w->merged ? 1 : STREAMS) && r == 0; i++) {
		(void)snprintf(name, sizeof(name), "%u.%s.txt", execution,
			w->merged ? merged[0] : names[i]);
		r = capture_start(
			&w->out[i], w->session->results, w->session->tool_results, name);
	}
	if (r == 0 && w->in.fd >= 0 && w->left > 0)
		r = loop_watch(w->session->loop, &w->in, EPOLLOUT);
	if (r < 0 || w->cancelled)
		forget_execution(w);
}

/* The command has ended; the tool's answer still waits for the session's answer to MOVED. */
static void ask_moved(struct work *w, const struct control_message *m)
{
	struct control_record record = { .kind = CONTROL_MOVED };

	w->end = m->head;
	if ((m->head.number == CONTROL_NETWORK_NAMES ||
		    m->head.number == CONTROL_NETWORK_TEXT) &&
		strnlen(m->body, m->size) < sizeof(w->network))
		memcpy(w->network, m->body, strnlen(m->body, m->size));
	agent_session_forget(w->session, &w->request);
	if (agent_session_send(w->session, &w->request, &record, NULL, 0, NULL, 0) < 0)
		answer_end(w, NULL);
}

static void exec_answered(struct session_request *a, struct control_message *m)
{
	struct work *w = (struct work *)a;
	struct call *c = w->call;
	autobuffer struct buffer why = { 0 };

	if (w->end.kind)
		return answer_end(w, m && m->head.kind == CONTROL_TEXT ? m : NULL);
	if (!m) {
		work_free(w);
		return call_refuse(c, "the session has ended: start this server again");
	}
	switch (m->head.kind) {
	case CONTROL_ACCEPTED:
		return accepted(w, m->head.execution);
	case CONTROL_ENDED:
		w->refused = m->fd_count == 1 ? take_fd(&m->fds[0]) : -1;
		if (m->head.started == STARTED_NO)
			return answer_unstarted(w, &m->head);
		if (m->head.started == STARTED_YES || m->head.wait_status || m->head.limit)
			return ask_moved(w, m);
		buffer_text(
			&why, "it is not known how the command ended: its monitor was killed");
		break;
	case CONTROL_ERROR:
		agent_session_explain(m, &why);
		break;
	default:
		return;
	}
	work_free(w);
	call_refuse(c, "%s", why.data ? why.data : "out of memory");
}

/* --- beginning -------------------------------------------------------------------------------- */

static int send_request(struct work *w, const struct buffer *body, const int stdio[3])
{
	struct control_record record = { .kind = CONTROL_EXEC, .streams = 7 };
	int fds[CONTROL_FDS_MAX] = { stdio[0], stdio[1], stdio[2], -1 };
	autofd int apart =
		body->used > CONTROL_BODY_MAX ? control_seal(body->data, body->used) : -1;

	if (body->used <= CONTROL_BODY_MAX)
		return agent_session_send(
			w->session, &w->request, &record, body->data, body->used, fds, 3);
	if (apart < 0)
		return apart;
	fds[3] = apart;
	record.body = CONTROL_BODY_FD;
	return agent_session_send(w->session, &w->request, &record, NULL, 0, fds, 4);
}

/* Output that is longer than the session's output-max ends the command, as for `carrel exec`. */
static void output_came(void *context)
{
	struct work *w = context;

	if (w->too_long || !(capture_is_over(&w->out[0]) || capture_is_over(&w->out[1])))
		return;
	w->too_long = true;
	forget_execution(w);
}

static int open_stream(struct work *w, int i, int *ret_write)
{
	const struct agent_session *d = w->session;
	uint64_t most =
		d->output.budget; /* the session's: a call's default, and its upper bound */
	uint64_t budget = (uint64_t)field_integer(
		w->arguments, "budget", most == BUDGET_NONE ? TOOLS_BUDGET : (int64_t)most);

	budget = budget < most ? budget : most;
	int r = capture_open(&w->out[i], d->loop, d->block, budget, d->output.max_bytes,
		d->own_user, ret_write);
	w->out[i].passed = output_came;
	w->out[i].context = w;
	return r;
}

static int open_and_send(struct work *w, const struct buffer *body)
{
	const json_t *text = field_get(w->arguments, "stdin");
	autofd int in = -1, out = -1, err = -1;
	int r = 0;

	if (text && json_string_length(text) > 0)
		r = in = open_stdin(w, text);
	if (r < 0)
		return r;
	r = open_stream(w, 0, &out);
	if (r < 0)
		return r;
	r = w->merged ? 0 : open_stream(w, 1, &err);
	if (r < 0)
		return r;
	const int stdio[3] = { in < 0 ? w->session->null : in, out, w->merged ? out : err };
	return send_request(w, body, stdio);
}

/* False: it did not begin; @why says why, and @w is still there. */
static bool begin_execution(struct work *w, struct buffer *why)
{
	autobuffer struct buffer body = { 0 };
	int r = exec_request_build(
		w->session, w->arguments, w->session->no_bash ? "sh" : "bash", &body, why);

	if (r == -EINVAL)
		return false;
	if (r == 0)
		r = open_and_send(w, &body);
	if (r >= 0)
		return true;
	buffer_format(why,
		"the command could not be started: %s; try again when other calls have ended",
		strerror(-r));
	return false;
}

static void exec_start(struct call *c, const json_t *arguments)
{
	struct work *w = calloc(1, sizeof(*w));
	autobuffer struct buffer why = { 0 };

	if (!w)
		return call_refuse(c, "out of memory");
	w->request.answer = exec_answered;
	w->refused = -1;
	w->call = c;
	w->session = call_context(c);
	w->arguments = arguments;
	w->merged = field_flag(arguments, "merge_output", w->session->output.merge);
	w->in.fd = w->out[0].watch.fd = w->out[1].watch.fd = -1;
	w->out[0].loop = w->out[1].loop = w->session->loop;
	w->out[0].budget.file = w->out[1].budget.file = -1;
	call_set_work(c, w);
	if (begin_execution(w, &why))
		return;
	work_free(w);
	call_refuse(c, "%s", why.data ? why.data : "out of memory");
}

static void exec_cancel(struct call *c)
{
	struct work *w = call_work(c);

	w->cancelled = true;
	if (w->execution)
		forget_execution(w);
}

static void exec_progress(struct call *c, struct buffer *ret_text)
{
	const struct work *w = call_work(c);

	buffer_format(ret_text, "running for %lld s, %llu characters of output",
		(long long)(loop_now_ms() - call_started_ms(c)) / 1000,
		(unsigned long long)(w->out[0].budget.chars + w->out[1].budget.chars));
}

const struct tool tool_exec = {
	.name = "exec",
	.title = "Run a command",
	.description =
		"Run a command in the sandboxed session: the workspace and the scratch are "
		"writable, the rest of the machine is read-only, hidden or not reachable. "
		"Files that are not part of the user's project belong in $CARREL_SCRATCH. "
		"Everything that the command started ends with it.",
	.input = tool_exec_input,
	.output = tool_exec_output,
	.hints = TOOL_DESTRUCTIVE | TOOL_OPEN_WORLD,
	.start = exec_start,
	.cancel = exec_cancel,
	.progress = exec_progress,
};

/*
 * verb_mcp.c - `carrel mcp`: a session for as long as a client is connected, and a server for it.
 *
 * Runs in: carrel-agent, outside, as the caller: one thread, one loop. May not: write anything but
 * messages to stdout.
 *
 * The program never waits for the client. What the client does not read stays in the queue, and while more than
 * QUEUE_HIGH bytes wait, the program reads nothing from the client: so the client cannot make it hold more.
 *
 * The program ends with its input. Calls under way have END_MS to answer, so that a script that sends its
 * requests and closes gets the answers. SIGTERM, SIGINT and SIGHUP end everything at once. The program ends the
 * session and waits for its end; if the program is killed, the supervisor notices, and ends the session.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/lines.h"
#include "agent/message.h"
#include "agent/output.h"
#include "agent/spawn.h"
#include "agent/tools.h"
#include "agent/verbs.h"
#include "base/error_report.h"
#include "base/fd.h"
#include "base/text.h"
#include "client/find.h"

enum {
	QUEUE_HIGH = 1 << 20,
	END_MS = 5000,    /* for calls under way, after the end of input */
	CLOSE_MS = 30000, /* for the session to end */
};

static const char usage[] =
	"usage: carrel mcp [SETTING ...]\n"
	"\n"
	"Serves the Model Context Protocol on stdin and stdout, in a session of its own that ends with\n"
	"the input. The settings are those of `carrel session start`: --workspace DIR, --profile NAME,\n"
	"--net none, ... `man carrel-mcp` shows how to register it with a host.\n";

struct mcp {
	struct loop loop;
	struct watch in, out, signals;
	struct lines lines;
	struct output output;
	struct agent_session session;
	struct server *server;
	struct buffer prompt;
	bool eof;       /* no more input */
	bool gone;      /* the client does not read any more, or a signal came: end now */
	int64_t end_ms; /* after eof: until then it waits for calls */
};

/* --- the client ------------------------------------------------------------------------------- */

static void send_message(void *context, const json_t *message)
{
	struct mcp *m = context;
	char *text = json_dumps(message, JSON_COMPACT);

	/* If there is no memory for an answer, end: otherwise the client would wait for ever. */
	if (!text || !output_line(&m->output, text, strlen(text)))
		m->gone = true;
	free(text);
}

static bool is_busy(void *context)
{
	const struct mcp *m = context;

	return output_pending(&m->output) >= QUEUE_HIGH;
}

/* Handle the whole lines that were read, as long as there is room for the answers. */
static void handle_lines(struct mcp *m)
{
	while (!is_busy(m) && !m->gone) {
		char *line = NULL;
		size_t size = 0;
		enum lines_what what = lines_next(&m->lines, &line, &size);

		if (what == LINES_NONE && m->eof)
			what = lines_last(&m->lines, &line, &size);
		if (what == LINES_NONE)
			return;
		if (what == LINES_LONG)
			server_long_line(m->server);
		else
			server_line(m->server, line, size, loop_now_ms());
	}
}

static void read_input(struct watch *w, uint32_t events)
{
	struct mcp *m = w->context;
	char *at;
	size_t size;

	(void)events;
	if (lines_room(&m->lines, &at, &size) < 0) {
		m->gone = true;
		return;
	}
	ssize_t n = read(w->fd, at, size);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0)
		lines_filled(&m->lines, (size_t)n);
	if (n <= 0) {
		m->eof = true;
		m->end_ms = loop_now_ms() + END_MS;
		loop_forget(&m->loop, w);
	}
	handle_lines(m);
}

static void output_ready(struct watch *w, uint32_t events)
{
	struct mcp *m = w->context;

	/* Each turn of the loop flushes the output, so that its only event here is EPOLLERR: the client no longer reads. */
	if (events & (EPOLLERR | EPOLLHUP))
		m->gone = true;
}

static void signal_came(struct watch *w, uint32_t events)
{
	struct mcp *m = w->context;
	struct signalfd_siginfo info;

	(void)events;
	if (read(w->fd, &info, sizeof(info)) == sizeof(info))
		m->gone = true;
}

/* After a turn: write, and choose what to wait for now. */
static int settle(struct mcp *m)
{
	int r;

	/* First handle what is in our buffer: the client may send nothing more. */
	do {
		r = output_flush(&m->output);
		if (r < 0 && r != -EAGAIN) {
			m->gone = true;
			return 0;
		}
		handle_lines(m);
	} while (r == 0 && output_pending(&m->output) > 0 && !m->gone);
	r = loop_watch(&m->loop, &m->out, r == -EAGAIN ? EPOLLOUT : 0);
	if (r == 0 && is_busy(m))
		loop_forget(&m->loop, &m->in);
	else if (r == 0 && !m->eof)
		r = loop_watch(&m->loop, &m->in, EPOLLIN);
	return r;
}

static bool is_over(const struct mcp *m)
{
	if (m->gone || m->session.lost)
		return true;
	if (!m->eof)
		return false;
	return loop_now_ms() >= m->end_ms ||
		(server_calls(m->server) == 0 && output_pending(&m->output) == 0);
}

static int wait_ms(const struct mcp *m)
{
	int64_t now = loop_now_ms(), least = server_wait_ms(m->server, now);

	if (m->eof && (least < 0 || m->end_ms - now < least))
		least = m->end_ms - now;
	return m->eof && least < 0 ? 0 : (int)least;
}

static int serve_host(struct mcp *m)
{
	int r = settle(m);

	while (r == 0 && !is_over(m)) {
		r = loop_turn(&m->loop, wait_ms(m));
		server_tick(m->server, loop_now_ms());
		if (r == 0)
			r = settle(m);
	}
	return r;
}

/* --- beginning -------------------------------------------------------------------------------- */

static int prepare_signals(struct mcp *m)
{
	const struct sigaction ignored = { .sa_handler = SIG_IGN };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || sigaction(SIGPIPE, &ignored, NULL) < 0)
		return -errno;
	m->signals = (struct watch){ .ready = signal_came, .context = m };
	m->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return m->signals.fd < 0 ? -errno : loop_watch(&m->loop, &m->signals, EPOLLIN);
}

/* The answer of `session start`; NULL: it could not start the session, and has said why. */
static json_t *start_session(int argc, char **argv, int *ret_status)
{
	static const char *const begin[] = { "session", "start", "--json", "--die-with" };
	autobuffer struct buffer text = { 0 };
	const char **words = calloc((size_t)argc + 5, sizeof(*words));
	char pid[16];

	if (!words) {
		*ret_status = -ENOMEM;
		return NULL;
	}
	(void)snprintf(pid, sizeof(pid), "%d", getpid());
	memcpy(words, begin, sizeof(begin));
	words[4] = pid;
	memcpy(words + 5, argv + 1, (size_t)(argc - 1) * sizeof(*words));
	int status = spawn_wait(words, &text);
	free(words);
	json_t *said = status == 0 ? agent_session_json(text.data, text.used) : NULL;

	if (!said)
		*ret_status = status > 0 ? status : status < 0 ? status : -EPROTO;
	return said;
}

static void learn_prompt(struct mcp *m)
{
	const char *const words[] = { "prompt", "-s", m->session.id, NULL };
	int status = spawn_wait(words, &m->prompt);

	/* The server works without instructions, too; stderr says what went wrong. */
	if (status != 0 || !m->prompt.data || !text_is_utf8(m->prompt.data, m->prompt.used))
		buffer_free(&m->prompt);
}

static int open_server(struct mcp *m)
{
	static const struct tool *const all[] = { &tool_exec, &tool_read, &tool_write,
		&tool_list, &tool_promote, &tool_pad, &tool_status };
	struct server_setup setup = { .tools = all,
		.tool_count = sizeof(all) / sizeof(all[0]),
		.instructions = m->prompt.data,
		.tool_context = &m->session,
		.send = send_message,
		.busy = is_busy,
		.context = m };

	lines_init(&m->lines, MESSAGE_MAX);
	m->in = (struct watch){ .fd = STDIN_FILENO, .ready = read_input, .context = m };
	int r = output_init(&m->output, STDOUT_FILENO);
	m->out = (struct watch){ .fd = m->output.fd, .ready = output_ready, .context = m };
	m->server = server_new(&setup);
	return r == 0 && !m->server ? -ENOMEM : r;
}

/* --- the end ---------------------------------------------------------------------------------- */

/* The session says something, or its connection ends. What it says, such as what was quarantined, is for the user. */
static void session_ended(struct session_request *a, struct control_message *message)
{
	if (message && message->head.kind == CONTROL_DONE)
		(void)!fd_write_all(STDERR_FILENO, message->body, message->size);
	a->tag = 0;
}

/* End the session and wait for it. Calls under way end with it, and their answers are not sent. */
static int end_session(struct mcp *m, struct error *e)
{
	struct control_record record = { .kind = CONTROL_END };
	struct session_request request = { .answer = session_ended };
	int64_t deadline = loop_now_ms() + CLOSE_MS;
	autofd int supervisor = client_supervisor(m->session.watch.fd);

	loop_forget(&m->loop, &m->in);
	loop_forget(&m->loop, &m->out);
	loop_forget(&m->loop, &m->signals);
	server_cancel_all(m->server);
	int r = agent_session_send(&m->session, &request, &record, NULL, 0, NULL, 0);
	while (r == 0 && request.tag && loop_now_ms() < deadline)
		r = loop_turn(&m->loop, (int)(deadline - loop_now_ms()));
	if (r == 0 && request.tag)
		r = -ETIMEDOUT;
	agent_session_forget(&m->session, &request);
	if (r == 0)
		client_await_end(supervisor);
	return r < 0 ? error_set(e, ERROR_SESSION, "close", -r, m->session.id,
			       "the session did not end")
		     : 0;
}

static void free_all(struct mcp *m)
{
	agent_session_close(&m->session);
	server_free(m->server);
	output_free(&m->output);
	lines_free(&m->lines);
	buffer_free(&m->prompt);
	fd_close(&m->signals.fd);
	loop_close(&m->loop);
}

/* --- all -------------------------------------------------------------------------------------- */

static int run_server(struct mcp *m, json_t *started, struct error *e)
{
	int r = agent_session_open(&m->session, &m->loop, started, e);

	if (r < 0)
		return r;
	m->session.umask = umask(022);
	(void)umask(m->session.umask);
	learn_prompt(m);
	r = open_server(m);
	if (r == 0)
		r = serve_host(m);
	if (r < 0)
		return error_set(e, ERROR_INTERNAL, "supervise", -r, NULL, "the server failed");
	if (m->session.lost) {
		(void)!output_flush(&m->output);
		r = error_set(e, ERROR_SESSION, "supervise", 0, m->session.id,
			"the session has ended");
		error_hint(e, "its lifetime may be over; --lifetime and --idle-timeout set it");
		return r;
	}
	/* If the client is gone or has sent a signal, nobody waits for the answers. */
	unsigned unanswered = m->eof && !m->gone ? server_calls(m->server) : 0;
	r = end_session(m, e);
	if (r < 0 || unanswered == 0)
		return r;
	r = error_set(e, ERROR_REQUEST, "supervise", 0, NULL,
		"the input has ended, and %u calls were ended without an answer", unanswered);
	error_hint(e, "keep the input open until their answers have come");
	return r;
}

int verb_mcp(int argc, char **argv)
{
	struct mcp m = { .loop.epoll = -1,
		.signals.fd = -1,
		.session.watch.fd = -1,
		.session.pad = -1,
		.session.results = -1,
		.session.null = -1,
		.output.fd = -1,
		.output.borrowed = -1 };
	struct error e = { 0 };
	int status = 0;

	if (argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")))
		return fd_write_all(STDOUT_FILENO, usage, sizeof(usage) - 1) < 0 ? STATUS_CARREL
										 : 0;
	if (argc > 1 && (argv[1][0] != '-' || !strcmp(argv[1], "--"))) {
		(void)error_set(&e, ERROR_USAGE, "options", 0, argv[1],
			"`carrel mcp` takes settings alone");
		error_hint(&e, "carrel mcp [SETTING ...]");
		return error_report(&e);
	}
	int r = loop_open(&m.loop);
	if (r == 0)
		r = prepare_signals(&m);
	json_t *started = r == 0 ? start_session(argc, argv, &status) : NULL;
	if (status > 0) { /* it has said why */
		free_all(&m);
		return status;
	}
	if (r == 0 && !started)
		r = status;
	if (r < 0)
		error_set(&e, ERROR_INTERNAL, "session", -r, NULL,
			"the session cannot be started");
	else
		r = run_server(&m, started, &e);
	json_decref(started);
	free_all(&m);
	return r < 0 ? error_report(&e) : 0;
}

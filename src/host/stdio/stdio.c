/*
 * stdio.c - see stdio.h.
 *
 * Runs in: S (or the client of an exec). May not: change the caller's descriptions, wait.
 */
#include "host/stdio/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/stdio/stdio_kind.h"

#ifndef TIOCGDEV
#define TIOCGDEV 0x80045432U /* asm-generic/ioctls.h; not in musl's headers */
#endif

int stdio_sanitize(unsigned *ret_closed)
{
	struct pollfd pfd[STDIO_STREAMS] = { { .fd = 0 }, { .fd = 1 }, { .fd = 2 } };
	unsigned closed = 0;

	if (poll(pfd, STDIO_STREAMS, 0) < 0)
		return -errno;
	for (int i = 0; i < STDIO_STREAMS; i++) {
		/* O_PATH descriptors are invalid to poll(2) too, but not closed. */
		if (!(pfd[i].revents & POLLNVAL) || fcntl(i, F_GETFD) >= 0)
			continue;
		/* All below are open by now, so the lowest free number is this one. */
		int fd = open("/dev/null", i == 0 ? O_RDONLY : O_WRONLY);
		if (fd < 0)
			return -errno;
		closed |= 1U << i;
	}
	*ret_closed = closed;
	return 0;
}

/* --- how it gets there ----------------------------------------------------------------------- */

static enum stdio_how how_without_pty(enum stdio_kind kind)
{
	switch (kind) {
	case STDIO_KIND_PIPE:
	case STDIO_KIND_HARMLESS:
	case STDIO_KIND_TERMINAL:
	case STDIO_KIND_UNIX:
		return STDIO_PASS;
	case STDIO_KIND_FIFO:
	case STDIO_KIND_FILE:
	case STDIO_KIND_BLOCK:
	case STDIO_KIND_DEVICE:
	case STDIO_KIND_SOCKET:
	case STDIO_KIND_DATAGRAM:
		return STDIO_RELAY;
	}
	return STDIO_RELAY;
}

static enum pump_kind pump_kind_of(enum stdio_kind kind)
{
	switch (kind) {
	case STDIO_KIND_FILE:
	case STDIO_KIND_BLOCK:
		return PUMP_FILE;
	case STDIO_KIND_UNIX:
	case STDIO_KIND_SOCKET:
		return PUMP_SOCKET;
	case STDIO_KIND_DATAGRAM:
		return PUMP_DATAGRAM;
	case STDIO_KIND_PIPE:
	case STDIO_KIND_FIFO:
	case STDIO_KIND_HARMLESS:
	case STDIO_KIND_TERMINAL:
	case STDIO_KIND_DEVICE:
		return PUMP_SHARED;
	}
	return PUMP_SHARED;
}

struct pump_end stdio_pump_end(const struct stdio_stream *stream)
{
	return (struct pump_end){ .fd = stream->caller_fd, .kind = pump_kind_of(stream->kind) };
}

/* --- the terminal ---------------------------------------------------------------------------- */

/* The terminal's own number, whether it was opened as /dev/pts/N or as /dev/tty; 0 = unknown. */
static unsigned terminal_number(int fd)
{
	unsigned number = 0;

	/* Not ioctl(2): musl declares the request an int, glibc an unsigned long. */
	if (syscall(SYS_ioctl, fd, TIOCGDEV, &number) < 0)
		return 0;
	return number;
}

static bool can_read(const struct stdio_stream *stream)
{
	return stream->access != O_WRONLY;
}

static bool can_write(const struct stdio_stream *stream)
{
	return stream->access != O_RDONLY;
}

/* Keys come from stdin where it is the terminal, the screen is stdout; else what there is. */
static void choose_terminal_ends(struct stdio *s)
{
	static const unsigned screen_order[STDIO_STREAMS] = { 1, 2, 0 };

	for (unsigned i = 0; i < STDIO_STREAMS; i++) {
		const struct stdio_stream *key = &s->stream[i];
		const struct stdio_stream *screen = &s->stream[screen_order[i]];

		if (s->tty_in < 0 && key->how == STDIO_PTY && can_read(key))
			s->tty_in = key->caller_fd;
		if (s->tty_out < 0 && screen->how == STDIO_PTY && can_write(screen))
			s->tty_out = screen->caller_fd;
	}
}

/*
 * `auto`: every stream that is the caller's terminal becomes the pty, also where only one is: the
 * payload in its own session would else read the user's keys past all job control. A stream on
 * some other terminal is relayed as any device is.
 */
static void want_pty_auto(struct stdio *s)
{
	unsigned number = 0;

	for (unsigned i = 0; i < STDIO_STREAMS; i++) {
		struct stdio_stream *stream = &s->stream[i];

		if (stream->kind != STDIO_KIND_TERMINAL || stream->budgeted)
			continue;
		unsigned own = terminal_number(stream->caller_fd);
		if (!s->want_pty)
			number = own;
		stream->how = own == number ? STDIO_PTY : STDIO_RELAY;
		s->want_pty = true;
	}
	choose_terminal_ends(s);
	/* In a pipeline the keyboard may belong to a pager: the payload has it once it reads. */
	s->tty_eager = s->stream[0].how == STDIO_PTY && s->stream[1].how == STDIO_PTY;
}

/* `yes`: all three are the pty, terminal or not, as with ssh -tt. */
static void want_pty_always(struct stdio *s)
{
	s->want_pty = true;
	s->tty_eager = true;
	for (unsigned i = 0; i < STDIO_STREAMS; i++)
		s->stream[i].how = STDIO_PTY;
	s->tty_in = s->stream[0].caller_fd;
	s->tty_out = s->stream[1].caller_fd;
}

/* --- the relays ------------------------------------------------------------------------------ */

static int make_pipe(struct stdio *s, unsigned i)
{
	struct stdio_stream *stream = &s->stream[i];
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	int ours = ends[i == 0 ? 1 : 0];
	int child = ends[i == 0 ? 0 : 1];
	stream->our_end = ours;
	stream->child_end = child;
	s->child_fd[i] = child;
	/* Ours alone: the two ends are two descriptions, the payload's stays as tools expect. */
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	if (i != 0 || (stream->kind != STDIO_KIND_FILE && stream->kind != STDIO_KIND_BLOCK))
		return 0;
	s->stdin_read_end = fcntl(child, F_DUPFD_CLOEXEC, 0);
	return s->stdin_read_end < 0 ? -errno : 0;
}

/* Standard error becomes what standard output is. */
static int join_stdout(struct stdio *s)
{
	s->stream[2].how = s->stream[1].how;
	s->stream[2].with_stdout = true;
	s->child_fd[2] = s->child_fd[1];
	return 0;
}

static int prepare_stream(struct stdio *s, unsigned i)
{
	struct stdio_stream *stream = &s->stream[i];

	if (i == 2 && s->merged)
		return join_stdout(s);
	switch (stream->how) {
	case STDIO_PASS:
		s->child_fd[i] = stream->caller_fd;
		return 0;
	case STDIO_PTY:
		s->child_fd[i] = -1;
		return 0;
	case STDIO_RELAY:
		break;
	}
	if (i == 2 && !stream->budgeted && s->stream[1].how == STDIO_RELAY &&
		stdio_same_description(s->stream[1].caller_fd, stream->caller_fd))
		return join_stdout(s);
	return make_pipe(s, i);
}

static int refuse_stream(unsigned i, const char *why, struct error *e)
{
	char on[] = "descriptor 0";

	on[strlen(on) - 1] = (char)('0' + i);
	int r = error_set(e, ERROR_DESCRIPTOR, "launch", 0, on,
		"%s is %s, a way out of the session", stdio_stream_names[i], why);
	error_hint(e, "redirect it: %s",
		i == 0           ? "</dev/null"
			: i == 1 ? ">/dev/null"
				 : "2>/dev/null");
	return r;
}

static void stdio_init(struct stdio *s, const int caller_fd[STDIO_STREAMS])
{
	*s = (struct stdio){ .tty_in = -1, .tty_out = -1, .stdin_read_end = -1 };
	for (unsigned i = 0; i < STDIO_STREAMS; i++) {
		s->stream[i].caller_fd = caller_fd[i];
		s->stream[i].our_end = -1;
		s->stream[i].child_end = -1;
		s->child_fd[i] = -1;
	}
}

static int classify(struct stdio *s, const struct stdio_output *output, struct error *e)
{
	bool bounded = output->budget != BUDGET_NONE || output->max_bytes != UINT64_MAX;

	for (unsigned i = 0; i < STDIO_STREAMS; i++) {
		struct stdio_stream *stream = &s->stream[i];
		const char *why =
			stdio_classify(stream->caller_fd, &stream->kind, &stream->access);

		if (why)
			return refuse_stream(i, why, e);
		stream->budgeted = bounded && i > 0 && !(i == 2 && output->merge);
		stream->how = stream->budgeted ? STDIO_RELAY : how_without_pty(stream->kind);
	}
	s->merged = output->merge;
	return 0;
}

/* A budget's memory and the pipe, or what else the stream needs. 0 or -errno. */
static int make_stream(struct stdio *s, unsigned i, const struct stdio_output *output)
{
	struct stdio_stream *stream = &s->stream[i];
	int r = 0;

	if (stream->budgeted)
		r = budget_init(&stream->budget, output->budget, output->max_bytes);
	return r < 0 ? r : prepare_stream(s, i);
}

int stdio_prepare_output(struct stdio *s, const int caller_fd[STDIO_STREAMS],
	enum tty_mode mode, const struct stdio_output *output, struct error *e)
{
	stdio_init(s, caller_fd);
	int r = classify(s, output, e);
	if (r < 0)
		return r;
	if (mode == TTY_YES && s->stream[1].budgeted)
		return error_set(e, ERROR_USAGE, "launch", 0, NULL,
			"`tty yes` joins all streams into one, which cannot have a budget");
	if (mode == TTY_AUTO)
		want_pty_auto(s);
	else if (mode == TTY_YES)
		want_pty_always(s);
	for (unsigned i = 0; i < STDIO_STREAMS; i++) {
		r = make_stream(s, i, output);
		if (r == 0)
			continue;
		(void)!stdio_close(s, NULL); /* nothing was relayed yet */
		return error_set(e, ERROR_LIMIT, "launch", -r, stdio_stream_names[i],
			"cannot make a pipe");
	}
	return 0;
}

int stdio_prepare(struct stdio *s, const int caller_fd[STDIO_STREAMS], enum tty_mode mode,
	struct error *e)
{
	static const struct stdio_output as_it_is = { .budget = BUDGET_NONE,
		.max_bytes = UINT64_MAX };

	return stdio_prepare_output(s, caller_fd, mode, &as_it_is, e);
}

void stdio_save_in(
	struct stdio *s, int dir, const char *dir_path, uint64_t execution, bool goes)
{
	static const char *const words[STDIO_STREAMS] = { "", "stdout", "stderr" };
	char name[BUDGET_NAME_MAX];

	for (unsigned i = 1; i < STDIO_STREAMS; i++) {
		if (!s->stream[i].budgeted)
			continue;
		(void)snprintf(name, sizeof(name), "%llu.%s.txt", (unsigned long long)execution,
			s->merged ? "output" : words[i]);
		budget_save_in(&s->stream[i].budget, dir, dir_path, name, goes);
	}
}

void stdio_set_owner(const struct stdio *s, uid_t uid, gid_t gid)
{
	for (unsigned i = 0; i < STDIO_STREAMS; i++) {
		const struct stdio_stream *stream = &s->stream[i];
		bool pipe = stream->how == STDIO_RELAY ||
			(stream->how == STDIO_PASS && stream->kind == STDIO_KIND_PIPE);

		/* A convenience of the payload's: without it only reopening by name fails. */
		if (pipe)
			(void)!fchown(s->child_fd[i], uid, gid);
	}
}

void stdio_child_started(struct stdio *s)
{
	for (unsigned i = 0; i < STDIO_STREAMS; i++)
		fd_close(&s->stream[i].child_end);
}

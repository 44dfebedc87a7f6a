/*
 * stdio.c - see stdio.h.
 *
 * Runs in: S (or the client of an exec). May not: change the caller's descriptions, wait.
 */
#include "host/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/stdio_kind.h"

#ifndef TIOCGDEV
#define TIOCGDEV 0x80045432U /* asm-generic/ioctls.h; not in musl's headers */
#endif

static const char *const stream_names[STDIO_STREAMS] = {
	"standard input",
	"standard output",
	"standard error",
};

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

		if (stream->kind != STDIO_KIND_TERMINAL)
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

/*
 * One open file description behind both? Where kcmp(2) is refused (a container's filter), the
 * same file, flags and offset; two that only look alike then share a pipe, which loses nothing.
 */
static bool same_description(int a, int b)
{
	struct stat sa, sb;
	long r = syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, a, b);

	if (r == 0)
		return true;
	if (fstat(a, &sa) < 0 || fstat(b, &sb) < 0 || sa.st_dev != sb.st_dev ||
		sa.st_ino != sb.st_ino)
		return false;
	int flags = fcntl(a, F_GETFL);
	if (flags != fcntl(b, F_GETFL))
		return false;
	/* Two descriptions that both append have one order: the file's. */
	if (S_ISREG(sa.st_mode) && (flags & O_APPEND))
		return true;
	return r < 0 && lseek(a, 0, SEEK_CUR) == lseek(b, 0, SEEK_CUR);
}

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

static void close_ends(struct stdio *s)
{
	fd_close(&s->stdin_read_end);
	for (unsigned i = 0; i < STDIO_STREAMS; i++) {
		fd_close(&s->stream[i].our_end);
		fd_close(&s->stream[i].child_end);
	}
}

static int prepare_stream(struct stdio *s, unsigned i)
{
	struct stdio_stream *stream = &s->stream[i];

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
	if (i == 2 && s->stream[1].how == STDIO_RELAY &&
		same_description(s->stream[1].caller_fd, stream->caller_fd)) {
		stream->with_stdout = true;
		s->child_fd[2] = s->child_fd[1];
		return 0;
	}
	return make_pipe(s, i);
}

static int refuse(unsigned i, const char *why, struct error *e)
{
	char on[] = "descriptor 0";

	on[strlen(on) - 1] = (char)('0' + i);
	int r = error_set(e, ERROR_DESCRIPTOR, "launch", 0, on,
		"%s is %s, a way out of the session", stream_names[i], why);
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

int stdio_prepare(struct stdio *s, const int caller_fd[STDIO_STREAMS], enum tty_mode mode,
	struct error *e)
{
	stdio_init(s, caller_fd);
	for (unsigned i = 0; i < STDIO_STREAMS; i++) {
		const char *why =
			stdio_classify(caller_fd[i], &s->stream[i].kind, &s->stream[i].access);

		if (why)
			return refuse(i, why, e);
		s->stream[i].how = how_without_pty(s->stream[i].kind);
	}
	if (mode == TTY_AUTO)
		want_pty_auto(s);
	else if (mode == TTY_YES)
		want_pty_always(s);
	for (unsigned i = 0; i < STDIO_STREAMS; i++) {
		int r = prepare_stream(s, i);

		if (r == 0)
			continue;
		close_ends(s);
		return error_set(
			e, ERROR_LIMIT, "launch", -r, stream_names[i], "cannot make a pipe");
	}
	return 0;
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

int stdio_start(struct stdio *s, int epoll_fd, uint64_t id)
{
	for (unsigned i = 0; i < STDIO_STREAMS; i++) {
		struct stdio_stream *stream = &s->stream[i];
		struct pump_end caller = stdio_pump_end(stream);

		if (stream->our_end < 0)
			continue;
		struct pump_end ours = {
			.fd = take_fd(&stream->our_end), .kind = PUMP_OURS, .owned = true
		};
		pump_init(&stream->pump, i == 0 ? caller : ours, i == 0 ? ours : caller);
		stream->active = true;
		int r = pump_register(&stream->pump, epoll_fd, id + i);
		if (r < 0)
			return r;
	}
	return 0;
}

void stdio_step(struct stdio *s, unsigned stream)
{
	if (stream < STDIO_STREAMS && s->stream[stream].active)
		(void)pump_step(
			&s->stream[stream].pump); /* its error is told by stdio_close() */
}

int stdio_drain(struct stdio *s, int64_t deadline_ms, int wake_fd)
{
	for (unsigned i = 1; i < STDIO_STREAMS; i++) {
		struct stdio_stream *stream = &s->stream[i];

		if (!stream->active || stream->pump.done)
			continue;
		int r = pump_drain(&stream->pump, deadline_ms, wake_fd);
		if (!stream->pump.done)
			return r;
	}
	return 0;
}

/* --- the end --------------------------------------------------------------------------------- */

/*
 * Bytes that were taken from the caller's file and that the payload did not read. Not where the
 * same description is written to as well: its offset then means something else.
 */
static void give_back_stdin(struct stdio *s)
{
	struct stdio_stream *in = &s->stream[0];
	int in_pipe = 0;

	if (s->stdin_read_end < 0 || !in->active)
		return;
	if (ioctl(s->stdin_read_end, FIONREAD, &in_pipe) < 0)
		return;
	off_t unread = (off_t)in_pipe + (off_t)pump_held(&in->pump);
	if (unread == 0 || same_description(in->caller_fd, s->stream[1].caller_fd) ||
		same_description(in->caller_fd, s->stream[2].caller_fd))
		return;
	/* A file that cannot seek keeps its place. */
	(void)lseek(in->caller_fd, -unread, SEEK_CUR);
}

/* Neither a reader that went away nor a descriptor open the wrong way round is a fault of ours. */
static int stream_error(const struct stdio_stream *stream)
{
	int error = stream->active ? stream->pump.error : 0;

	return error == EPIPE || error == ECONNRESET || error == EBADF ? 0 : error;
}

int stdio_close(struct stdio *s, struct error *e)
{
	int result = 0;

	give_back_stdin(s);
	close_ends(s);
	for (unsigned i = 0; i < STDIO_STREAMS; i++) {
		struct stdio_stream *stream = &s->stream[i];

		if (stream->active)
			pump_stop(&stream->pump);
		int error = stream_error(stream);
		if (error && result == 0)
			result = error_set(e, ERROR_INTERNAL, "supervise", error,
				stream_names[i],
				i == 0 ? "cannot read the caller's"
				       : "cannot write the caller's");
		stream->active = false;
	}
	return result;
}

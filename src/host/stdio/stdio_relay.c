/*
 * stdio_relay.c - the relays of stdio.h while the command runs, and their end.
 *
 * Runs in: S (or the client of an exec). May not: change the caller's descriptions, wait.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/stdio/stdio.h"
#include "host/stdio/stdio_kind.h"

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
		if (stream->budgeted)
			pump_set_filter(&stream->pump, budget_filter(&stream->budget));
		stream->active = true;
		int r = pump_register(&stream->pump, epoll_fd, id + i);
		if (r < 0)
			return r;
	}
	return 0;
}

bool stdio_step(struct stdio *s, unsigned stream)
{
	if (stream >= STDIO_STREAMS || !s->stream[stream].active)
		return false;
	(void)pump_step(&s->stream[stream].pump); /* stdio_close() reports its error */
	return s->stream[stream].budgeted && budget_is_over(&s->stream[stream].budget);
}

bool stdio_is_over(const struct stdio *s)
{
	for (unsigned i = 1; i < STDIO_STREAMS; i++)
		if (s->stream[i].budgeted && budget_is_over(&s->stream[i].budget))
			return true;
	return false;
}

bool stdio_is_held(const struct stdio *s)
{
	for (unsigned i = 1; i < STDIO_STREAMS; i++)
		if (s->stream[i].budgeted && s->stream[i].budget.limit != BUDGET_NONE)
			return true;
	return false;
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

static void close_ends(struct stdio *s)
{
	fd_close(&s->stdin_read_end);
	for (unsigned i = 0; i < STDIO_STREAMS; i++) {
		fd_close(&s->stream[i].our_end);
		fd_close(&s->stream[i].child_end);
	}
}

static void free_budgets(struct stdio *s)
{
	for (unsigned i = 1; i < STDIO_STREAMS; i++)
		if (s->stream[i].budgeted)
			budget_free(&s->stream[i].budget);
}

/* --- the end --------------------------------------------------------------------------------- */

/*
 * Seek the caller's file back by the bytes that were taken from it and not read by the payload. Not
 * if the same description is written to as well: its offset then means something else.
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
	if (unread == 0 || stdio_same_description(in->caller_fd, s->stream[1].caller_fd) ||
		stdio_same_description(in->caller_fd, s->stream[2].caller_fd))
		return;
	/* A file that cannot seek keeps its place. */
	(void)lseek(in->caller_fd, -unread, SEEK_CUR);
}

/* A reader that went away, or a descriptor that was opened the wrong way round, is the caller's fault. */
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
	free_budgets(s);
	for (unsigned i = 0; i < STDIO_STREAMS; i++) {
		struct stdio_stream *stream = &s->stream[i];

		if (stream->active)
			pump_stop(&stream->pump);
		int error = stream_error(stream);
		if (error && result == 0)
			result = error_set(e, ERROR_INTERNAL, "supervise", error,
				stdio_stream_names[i],
				i == 0 ? "what the caller gives the command cannot be read"
				       : "what the command writes cannot be passed on");
		stream->active = false;
	}
	return result;
}

/*
 * pump.c - see pump.h.
 *
 * Runs in: S, the supervisor. May not: wait, except for a disk.
 */
#include "host/stdio/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008 /* linux/fs.h; not in musl's headers */
#endif

enum {
	FAST_PIPE_BYTES = 1 << 20,
	STEP_TRANSFERS = 16, /* of one step: 1 MiB, then the others have their turn */
	SHARED_WRITE_MAX =
		512, /* what fits for sure where poll(2) says that writing is possible */
};

void pump_init(struct pump *p, struct pump_end source, struct pump_end sink)
{
	*p = (struct pump){ .source = source, .sink = sink, .epoll_fd = -1 };
}

void pump_set_filter(struct pump *p, struct pump_filter filter)
{
	p->filter = filter;
}

/* --- the epoll set --------------------------------------------------------------------------- */

static int end_watch(const struct pump *p, struct pump_end *end, uint32_t events, int op)
{
	struct epoll_event event = { .events = events | EPOLLET, .data.u64 = p->id };

	if (epoll_ctl(p->epoll_fd, op, end->fd, &event) == 0) {
		end->watched = true;
		return 0;
	}
	if (errno != EPERM)
		return -errno;
	end->kind = PUMP_FILE;
	return 0;
}

/* Explicitly: closing a descriptor leaves it in the set while a duplicate lives elsewhere. */
static void end_unwatch(const struct pump *p, struct pump_end *end)
{
	if (end->watched)
		(void)epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, end->fd, NULL);
	end->watched = false;
}

int pump_register(struct pump *p, int epoll_fd, uint64_t id)
{
	p->epoll_fd = epoll_fd;
	p->id = id;
	int r = end_watch(p, &p->source, EPOLLIN, EPOLL_CTL_ADD);
	if (r == 0)
		r = end_watch(p, &p->sink, EPOLLOUT, EPOLL_CTL_ADD);
	if (r < 0)
		pump_unregister(p);
	return r;
}

void pump_unregister(struct pump *p)
{
	end_unwatch(p, &p->source);
	end_unwatch(p, &p->sink);
	p->epoll_fd = -1;
}

/* EPOLL_CTL_MOD looks at the readiness again, and so raises an edge for what is still there. */
static void pump_rearm(struct pump *p)
{
	if (p->source.watched)
		(void)end_watch(p, &p->source, EPOLLIN, EPOLL_CTL_MOD);
	if (p->sink.watched)
		(void)end_watch(p, &p->sink, EPOLLOUT, EPOLL_CTL_MOD);
}

/* --- one transfer ---------------------------------------------------------------------------- */

static short end_poll(const struct pump_end *end, short events)
{
	struct pollfd pfd = { .fd = end->fd, .events = events };

	return poll(&pfd, 1, 0) > 0 ? pfd.revents : 0;
}

/* Another process may take what poll(2) announced; with RWF_NOWAIT this one does not wait then. */
static ssize_t shared_transfer(const struct pump_end *end, char *data, size_t size, bool out)
{
	struct iovec iov = { .iov_base = data, .iov_len = size };
	ssize_t n = syscall(out ? SYS_pwritev2 : SYS_preadv2, end->fd, &iov, 1L, -1L, -1L,
		(long)RWF_NOWAIT);

	/* EPERM: a filter around us that does not know the call. */
	if (n >= 0 ||
		(errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL && errno != EPERM))
		return n;
	if (!end_poll(end, out ? POLLOUT : POLLIN)) {
		errno = EAGAIN;
		return -1;
	}
	if (!out)
		return read(end->fd, data, size);
	return write(end->fd, data, size < SHARED_WRITE_MAX ? size : SHARED_WRITE_MAX);
}

static ssize_t end_read(const struct pump_end *end, char *data, size_t size)
{
	switch (end->kind) {
	case PUMP_SOCKET:
	case PUMP_DATAGRAM:
		return recv(end->fd, data, size, MSG_DONTWAIT);
	case PUMP_SHARED:
		return shared_transfer(end, data, size, false);
	case PUMP_OURS:
	case PUMP_FILE:
		return read(end->fd, data, size);
	}
	errno = EINVAL;
	return -1;
}

static ssize_t end_write(const struct pump_end *end, char *data, size_t size)
{
	switch (end->kind) {
	case PUMP_SOCKET:
	case PUMP_DATAGRAM:
		return send(end->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	case PUMP_SHARED:
		return shared_transfer(end, data, size, true);
	case PUMP_OURS:
	case PUMP_FILE:
		return write(end->fd, data, size);
	}
	errno = EINVAL;
	return -1;
}

static bool reader_is_gone(const struct pump *p)
{
	return p->sink.kind != PUMP_FILE &&
		(end_poll(&p->sink, 0) & (POLLERR | POLLHUP | POLLNVAL));
}

/* Give the filter what lies in the buffer: @size bytes, those that it left before included. */
static void filter_take(struct pump *p, size_t size, bool last)
{
	struct pump_range pass = { 0 };

	p->kept_at = p->filter.take(p->filter.context, p->buffer, size, last, &pass);
	p->kept = size - p->kept_at;
	p->start = pass.start;
	p->end = pass.end;
}

/* Move what the filter did not take to the front. Nothing else is in the buffer. */
static void keep_in_front(struct pump *p)
{
	if (p->kept)
		memmove(p->buffer, p->buffer + p->kept_at, p->kept);
	p->kept_at = 0;
	p->start = p->end = 0;
}

static int fill_rest(struct pump *p)
{
	p->start = 0;
	p->end = p->filter.rest ? p->filter.rest(p->filter.context, p->buffer, p->size) : 0;
	return (int)p->end;
}

static int fill_at_end(struct pump *p)
{
	p->source_over = true;
	if (p->filter.take) {
		keep_in_front(p);
		filter_take(p, p->kept, true);
		return 1;
	}
	if (!p->at_end)
		return 0;
	p->end = p->at_end(p, p->buffer);
	return (int)p->end;
}

static int map_buffer(struct pump *p)
{
	if (p->buffer)
		return 0;
	void *mapped = mmap(NULL, PUMP_BUFFER_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	p->buffer = mapped;
	p->size = PUMP_BUFFER_BYTES;
	return 0;
}

/*
 * Take bytes into the empty buffer. Returns a positive number, even if a filter keeps all of them;
 * 0 at the end; or -errno.
 */
static int fill_buffer(struct pump *p)
{
	int r = map_buffer(p);

	if (r < 0)
		return r;
	if (p->source_over)
		return fill_rest(p);
	keep_in_front(p);
	ssize_t n = end_read(&p->source, p->buffer + p->kept, p->size - p->kept);
	/* There is nothing to move. If the reader has gone, the writer learns it now, not at its next byte. */
	if (n < 0 && errno == EAGAIN)
		return reader_is_gone(p) ? -EPIPE : -EAGAIN;
	/* A pty master whose slaves are all closed says EIO; so does a terminal that hung up. */
	if (n < 0 && errno == EIO && p->source.kind != PUMP_FILE)
		n = 0;
	if (n < 0)
		return -errno;
	/* An empty datagram is a message: go on. */
	if (n == 0 && p->source.kind == PUMP_DATAGRAM)
		return -EINTR;
	if (n == 0)
		return fill_at_end(p);
	if (p->filter.take) {
		filter_take(p, p->kept + (size_t)n, false);
		return 1;
	}
	p->end = (size_t)n;
	p->last = (unsigned char)p->buffer[n - 1];
	return (int)n;
}

/* 1 = moved something, 0 = the end, or -errno. */
static int move(struct pump *p)
{
	if (pump_held(p) == 0) {
		int r = fill_buffer(p);

		if (r <= 0 || pump_held(p) == 0)
			return r;
	}
	ssize_t n = end_write(&p->sink, p->buffer + p->start, pump_held(p));
	if (n < 0)
		return -errno;
	if (n == 0)
		return -EIO;
	p->start += (size_t)n;
	p->moved += (uint64_t)n;
	return 1;
}

/* --- the life of a pump ---------------------------------------------------------------------- */

void pump_stop(struct pump *p)
{
	pump_unregister(p);
	if (p->source.owned)
		fd_close(&p->source.fd);
	if (p->sink.owned)
		fd_close(&p->sink.fd);
	if (p->buffer)
		(void)munmap(p->buffer, p->size);
	p->buffer = NULL;
	p->done = true;
}

static enum pump_state end_pump(struct pump *p, int error)
{
	p->error = error;
	pump_stop(p);
	return PUMP_DONE;
}

/*
 * The source has given a whole step's share and has more: make its pipe and the buffer larger. With
 * fewer switches between its writer and this process a flood passes faster by a half. Not for every
 * pipe: what a user's pipes can hold together is bounded, and beyond it the new ones of all
 * programs are small (pipe(7), pipe-user-pages-soft).
 */
static void speed_up(struct pump *p)
{
	if (p->size != PUMP_BUFFER_BYTES || p->source.kind != PUMP_OURS)
		return;
	(void)fcntl(p->source.fd, F_SETPIPE_SZ, FAST_PIPE_BYTES); /* or it stays as it is */
	void *larger = mremap(p->buffer, p->size, PUMP_FAST_BYTES, MREMAP_MAYMOVE);
	if (larger == MAP_FAILED)
		return;
	p->buffer = larger;
	p->size = PUMP_FAST_BYTES;
}

enum pump_state pump_step(struct pump *p)
{
	if (p->done)
		return PUMP_DONE;
	for (int i = 0; i < STEP_TRANSFERS; i++) {
		int r = move(p);

		if (r > 0 || r == -EINTR)
			continue;
		if (r == -EAGAIN)
			return PUMP_IDLE;
		return end_pump(p, -r);
	}
	/* A filter that holds back everything would never learn it from a write. */
	if (p->filter.take && reader_is_gone(p))
		return end_pump(p, EPIPE);
	if (p->filter.take)
		speed_up(p);
	pump_rearm(p);
	return PUMP_MOVING;
}

static int64_t now_ms(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits until the sink takes more. 0, -ETIMEDOUT or -EINTR. */
static int wait_for_sink(const struct pump *p, int64_t deadline_ms, int wake_fd)
{
	struct pollfd pfd[2] = {
		{ .fd = p->sink.fd, .events = POLLOUT },
		{ .fd = wake_fd, .events = POLLIN },
	};
	int64_t left = deadline_ms - now_ms();

	if (left <= 0)
		return -ETIMEDOUT;
	int n = poll(pfd, 2, left > 60000 ? 60000 : (int)left);
	if (n < 0)
		return -errno;
	return pfd[1].revents ? -EINTR : 0;
}

int pump_drain(struct pump *p, int64_t deadline_ms, int wake_fd)
{
	for (;;) {
		enum pump_state state = pump_step(p);

		if (state == PUMP_DONE)
			return -p->error;
		if (state == PUMP_IDLE && pump_held(p) == 0) {
			/* empty, although something keeps the other end open */
			if (!p->filter.take || p->source_over)
				break;
			(void)fill_at_end(p); /* cannot fail: nothing is read */
			continue;
		}
		int r = state == PUMP_IDLE ? wait_for_sink(p, deadline_ms, wake_fd) : 0;
		if (r == 0 && state == PUMP_MOVING && now_ms() >= deadline_ms)
			r = -ETIMEDOUT;
		if (r < 0)
			return r;
	}
	pump_stop(p);
	return 0;
}

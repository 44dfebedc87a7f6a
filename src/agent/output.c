/*
 * output.c - see output.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum {
	OUTPUT_SOCKET,   /* MSG_DONTWAIT */
	OUTPUT_NONBLOCK, /* a description of our own with O_NONBLOCK */
	OUTPUT_PIPE, /* not ours to reopen: PIPE_BUF bytes at a time, when poll(2) says so */
	OUTPUT_FILE, /* never blocks for long, or (a terminal) is somebody who looks */
};

int output_init(struct output *o, int fd)
{
	struct stat st;

	*o = (struct output){ .fd = fd, .borrowed = fd, .how = OUTPUT_FILE };
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISSOCK(st.st_mode))
		o->how = OUTPUT_SOCKET;
	if (S_ISFIFO(st.st_mode)) {
		char path[32];

		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		int own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

		o->how = own >= 0 ? OUTPUT_NONBLOCK : OUTPUT_PIPE;
		o->fd = own >= 0 ? own : fd;
	}
	return 0;
}

void output_free(struct output *o)
{
	if (o->fd != o->borrowed)
		fd_close(&o->fd);
	buffer_free(&o->b);
	o->at = 0;
}

bool output_line(struct output *o, const char *text, size_t size)
{
	if (o->at > o->b.used / 2) { /* what is written makes room */
		memmove(o->b.data, o->b.data + o->at, o->b.used - o->at);
		o->b.used -= o->at;
		o->at = 0;
	}
	if (!buffer_reserve(&o->b, size + 1))
		return false;
	buffer_add(&o->b, text, size);
	buffer_add(&o->b, "\n", 1);
	return true;
}

size_t output_pending(const struct output *o)
{
	return o->b.used - o->at;
}

static ssize_t write_some(const struct output *o, const char *data, size_t size)
{
	struct pollfd ready = { .fd = o->fd, .events = POLLOUT };

	switch (o->how) {
	case OUTPUT_SOCKET:
		return send(o->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	case OUTPUT_PIPE:
		if (poll(&ready, 1, 0) == 0) {
			errno = EAGAIN;
			return -1;
		}
		return write(o->fd, data, size < PIPE_BUF ? size : PIPE_BUF);
	default:
		return write(o->fd, data, size);
	}
}

int output_flush(struct output *o)
{
	while (o->at < o->b.used) {
		ssize_t n = write_some(o, o->b.data + o->at, o->b.used - o->at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EWOULDBLOCK ? -EAGAIN : -errno;
		o->at += (size_t)n;
	}
	o->b.used = o->at = 0;
	if (o->b.size > ((size_t)1 << 20))
		buffer_free(&o->b);
	return 0;
}

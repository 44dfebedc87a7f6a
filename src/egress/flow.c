/*
 * flow.c - see flow.h.
 *
 * Runs in: carrel-egress.
 */
#include "egress/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int flow_hold(struct flow *f, const uint8_t *data, size_t size)
{
	size_t kept = f->end - f->start;

	if (f->start > 0) {
		memmove(f->data, f->data + f->start, kept);
		f->cleared -= f->start;
		f->start = 0;
		f->end = kept;
	}
	if (size > f->room - f->end) {
		uint8_t *grown = realloc(f->data, f->end + size);

		if (!grown)
			return -ENOMEM;
		f->data = grown;
		f->room = f->end + size;
	}
	memcpy(f->data + f->end, data, size);
	f->end += size;
	return 0;
}

void flow_drop(struct flow *f)
{
	free(f->data);
	f->data = NULL;
	f->start = f->cleared = f->end = f->room = 0;
}

void flow_take(struct flow *f, size_t size)
{
	f->start += size;
	f->cleared = f->start;
	if (f->start == f->end)
		flow_drop(f);
}

/* How much of it @fd has taken: >= 0, or -errno. */
static ssize_t send_some(int fd, const uint8_t *data, size_t size)
{
	ssize_t n = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	return n;
}

int flow_send(struct flow *f, int fd)
{
	while (f->start < f->cleared) {
		ssize_t n = send_some(fd, f->data + f->start, f->cleared - f->start);

		if (n <= 0)
			return n < 0 ? (int)n : 1;
		f->start += (size_t)n;
	}
	if (f->start == f->end)
		flow_drop(f);
	return 0;
}

int flow_pass(struct flow *f, int fd, const uint8_t *data, size_t size)
{
	ssize_t n = send_some(fd, data, size);

	if (n < 0)
		return (int)n;
	if ((size_t)n == size)
		return 0;
	int r = flow_hold(f, data + n, size - (size_t)n);
	f->cleared = f->end;
	return r < 0 ? r : 1;
}

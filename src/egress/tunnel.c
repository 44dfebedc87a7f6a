/*
 * tunnel.c - see tunnel.h.
 *
 * Runs in: carrel-egress.
 *
 * The program reads the proxy's answer and no byte of what follows, which is the server's: it looks at the answer in the socket
 * (MSG_PEEK), and takes it when it is whole.
 */
#include "egress/tunnel.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "egress/egress.h"
#include "egress/http_message.h"

enum { REQUEST_MAX = 2048, GOOD = 200, GOOD_END = 300 };

static void end(struct tunnel *t, int errnum, const char *why)
{
	loop_close(&t->egress->loop, &t->watch);
	t->done(t, -1, errnum, why);
}

static void refused(struct tunnel *t, unsigned status)
{
	if (status == 407)
		end(t, EACCES, "the proxy asks for a login, or for another one");
	else if (status >= 400 && status < 500)
		end(t, EACCES, "the proxy refused");
	else if (status >= 500)
		end(t, EHOSTUNREACH, "the proxy could not reach it");
	else
		end(t, EPROTO, "the proxy answered something else");
}

/* Let poll(2) wake us only when there are more than @size bytes: those that were looked at stay in the socket. */
static int want_more_than(int fd, size_t size)
{
	const int low = (int)size + 1;

	return setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof(low)) < 0 ? -errno : 0;
}

static void granted(struct tunnel *t, size_t size)
{
	int fd = t->watch.fd;
	ssize_t n = recv(fd, t->egress->buffer, size, MSG_DONTWAIT);

	if (n != (ssize_t)size || want_more_than(fd, 0) < 0 ||
		loop_watch(&t->egress->loop, &t->watch, 0) < 0) {
		end(t, EIO, "the proxy's answer");
		return;
	}
	t->watch.fd = -1;
	t->done(t, fd, 0, NULL);
}

static void answered(struct watch *watch, uint32_t events)
{
	struct tunnel *t = (struct tunnel *)watch;
	uint8_t *data = t->egress->buffer;
	struct http_head head;
	ssize_t n = recv(watch->fd, data, HTTP_HEAD_MAX, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		end(t, n < 0 ? errno : ECONNRESET, "the proxy ended the connection");
		return;
	}
	int r = http_response_parse(&head, data, (size_t)n, false);
	/* After one of these two events nothing more comes. */
	if (r == -EAGAIN && !(events & (EPOLLHUP | EPOLLRDHUP)) &&
		want_more_than(watch->fd, (size_t)n) == 0)
		return;
	if (r < 0)
		end(t, EPROTO, "the proxy's answer is none");
	else if (head.status < GOOD || head.status >= GOOD_END)
		refused(t, head.status);
	else
		granted(t, head.size);
}

/* A name of the rules has no other characters; this is the last check before it is sent in a request. */
static bool is_plain(const char *host)
{
	return host[0] && host[strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789.-_")] == '\0';
}

/* Build the request. Its length; 0: no room. */
static size_t build(
	const struct tunnel *t, const char *host, unsigned port, char ret[REQUEST_MAX])
{
	const char *login = t->egress->rules.proxy_login;
	int n = snprintf(ret, REQUEST_MAX,
		"CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n%s%s%s\r\n", host, port, host, port,
		login ? "Proxy-Authorization: Basic " : "", login ? login : "",
		login ? "\r\n" : "");

	return n > 0 && n < REQUEST_MAX ? (size_t)n : 0;
}

void tunnel_start(struct tunnel *t, int fd, const char *host, uint16_t port)
{
	char request[REQUEST_MAX];
	size_t size = is_plain(host) ? build(t, host, port, request) : 0;

	t->watch = (struct watch){ .fd = fd, .ready = answered };
	if (size == 0) {
		end(t, EINVAL, "no name to ask the proxy for");
		return;
	}
	/* The socket is new, its buffer has room for so little. */
	ssize_t n = send(fd, request, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n != (ssize_t)size ||
		loop_watch(&t->egress->loop, &t->watch, EPOLLIN | EPOLLRDHUP) < 0)
		end(t, n < 0 ? errno : EIO, "the proxy takes no request");
}

void tunnel_cancel(struct tunnel *t)
{
	if (t->egress && t->watch.fd >= 0)
		loop_close(&t->egress->loop, &t->watch);
}

/*
 * publish.c - see publish.h.
 *
 * Runs in: S, before it confines itself; publish_event() at any time.
 */
#include "host/egress/publish.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

enum { BACKLOG = 128, TRIES = 32 };

/* @port 0: the kernel chooses. The descriptor, or -errno. */
static int listen_on(int family, uint16_t port)
{
	const struct sockaddr_in four = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct sockaddr_in6 six = { .sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const void *at = family == AF_INET ? (const void *)&four : (const void *)&six;
	socklen_t size = family == AF_INET ? sizeof(four) : sizeof(six);
	const int yes = 1;
	autofd int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	/* This frees the port of a session that has just ended (tcp(7), TIME_WAIT), but not one where somebody listens. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
		(family == AF_INET6 &&
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes)) < 0) ||
		bind(fd, at, size) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return take_fd(&fd);
}

static int port_of(int fd)
{
	struct sockaddr_in four;
	socklen_t size = sizeof(four);

	return getsockname(fd, (struct sockaddr *)&four, &size) < 0 ? -errno
								    : ntohs(four.sin_port);
}

static bool has_no_six(int error)
{
	return error == -EAFNOSUPPORT || error == -EADDRNOTAVAIL;
}

/* Both families at one port; @fds[1] -1: there is no IPv6. The port, or -errno. */
static int listen_both(uint16_t wanted, int fds[2])
{
	int port = -EADDRINUSE;

	for (int i = 0; i < TRIES; i++) {
		autofd int four = listen_on(AF_INET, wanted);

		if (four < 0)
			return four;
		port = port_of(four);
		if (port < 0)
			return port;
		int six = listen_on(AF_INET6, (uint16_t)port);
		if (six < 0 && !has_no_six(six)) {
			port = six;
			if (wanted || six != -EADDRINUSE)
				return six;
			continue;
		}
		fds[0] = take_fd(&four);
		fds[1] = six < 0 ? -1 : six;
		return port;
	}
	return port;
}

static int begin_one(struct egress *g, const struct publish_rule *rule, struct error *e)
{
	struct egress_record record = {
		.magic = EGRESS_MAGIC, .kind = EGRESS_PUBLISH, .port = rule->port
	};
	int fds[2] = { -1, -1 };
	char on[64];

	(void)snprintf(on, sizeof(on), "127.0.0.1:%u", rule->host_port);
	int port = listen_both(rule->host_port, fds);
	if (port < 0) {
		int r = error_set(e, ERROR_UNAVAILABLE, "launch", -port, on,
			"cannot listen on the host's loopback for `publish`");

		if (port == -EADDRINUSE)
			error_hint(e, "--publish %u:0 takes a port that is free", rule->port);
		return r;
	}
	int r = egress_send_fds(g, &record, fds, fds[1] < 0 ? 1 : 2);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
	if (r < 0)
		return error_set(e, ERROR_LIMIT, "launch", -r, on,
			"cannot give the port to carrel-egress");
	g->published[g->published_count++] = (struct egress_published){
		.port = rule->port, .host_port = (uint16_t)port, .chosen = rule->host_port == 0
	};
	return 0;
}

int publish_begin(struct egress *g, const struct policy *policy, struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < policy->publish_count && r >= 0; i++)
		r = i < PUBLISH_MAX ? begin_one(g, &policy->publishes[i], e) : -E2BIG;
	return r;
}

void publish_event(struct egress *g, const struct egress_record *record)
{
	for (size_t i = 0; i < g->published_count; i++) {
		struct egress_published *p = &g->published[i];

		if (p->port != record->port)
			continue;
		egress_add(&p->times, 1);
		egress_add(&p->bytes_in, record->bytes_in);
		egress_add(&p->bytes_out, record->bytes_out);
	}
}

void publish_tell(const struct egress *g, const struct policy *policy)
{
	char line[96];

	for (size_t i = 0; i < g->published_count && !policy->quiet.on; i++) {
		const struct egress_published *p = &g->published[i];
		int n = snprintf(line, sizeof(line),
			"carrel: port %u is published at 127.0.0.1:%u\n", p->port,
			p->host_port);

		/* If stderr cannot be written, the report still says it. */
		if (p->chosen && n > 0)
			(void)!fd_write_all(STDERR_FILENO, line, (size_t)n);
	}
}

/*
 * publish.c - see publish.h.
 *
 * Runs in: carrel-egress.
 */
#include "egress/publish.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress/connection.h"
#include "egress/egress.h"

enum {
	FOUR,
	SIX,
	ACCEPTS_MAX = 16,
	LOOKS_MAX = 1000, /* 300 ms apart: for a server that is slow to take the last bytes */
};

/* Both sides have ended, and the server has not yet taken everything. */
struct lingering {
	struct doomed doomed;
	struct published *of;
	struct timer timer;
	int fd;
	unsigned looks;
};

/* A connection of the host's that is not yet connected to a server inside. */
struct incoming {
	struct doomed doomed;
	struct published *of;
	struct watch watch; /* of the socket inside */
	struct timer timer;
	int host; /* who connected */
	unsigned family;
	bool trying; /* IPv4: counted */
};

/* --- the pool --------------------------------------------------------------------------------- */

static void watch_port(struct published *p, uint32_t events)
{
	for (size_t i = 0; i < p->listener_count; i++) {
		struct watch *watch = &p->listeners[i].watch;

		/* A listener that cannot be watched is closed: its connections are refused. */
		if (watch->fd >= 0 && loop_watch(&p->egress->loop, watch, events) < 0)
			loop_close(&p->egress->loop, watch);
	}
	p->paused = events == 0;
}

/* A connection that tries IPv4 may need a socket of IPv6 next. */
static bool has_room(const struct published *p)
{
	return p->free_count[FOUR] > 0 && (p->free_count[SIX] > p->trying || !p->has_six);
}

static void resume(struct published *p)
{
	if (p->paused && has_room(p))
		watch_port(p, EPOLLIN);
}

static unsigned family_of(int fd)
{
	struct sockaddr_storage address = { 0 };
	socklen_t size = sizeof(address);

	return getsockname(fd, (struct sockaddr *)&address, &size) == 0 &&
			address.ss_family == AF_INET6
		? SIX
		: FOUR;
}

static void put_free(struct published *p, int fd, unsigned family)
{
	if (p->free_count[family] == PUBLISH_POOL_MAX) {
		(void)close(fd);
		return;
	}
	p->free[family][p->free_count[family]++] = fd;
	p->has_six |= family == SIX;
	resume(p);
}

/* Each port has the same share. */
int publish_pool(struct egress *eg, int fd)
{
	struct publish *p = &eg->publish;
	unsigned family = family_of(fd);

	if (p->port_count == 0) {
		(void)close(fd);
		return -EPROTO;
	}
	put_free(&p->ports[p->next[family]++ % p->port_count], fd, family);
	return 0;
}

/* connect(2) with AF_UNSPEC: the socket is as it was before. If the connection had not ended, the other end sees a reset. */
static void disconnect(struct published *p, int fd)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };

	if (connect(fd, &none, sizeof(none)) < 0)
		(void)close(fd);
	else
		put_free(p, fd, family_of(fd));
}

/* tcp(7), SIOCOUTQ: bytes that the server inside has not yet taken. */
static bool is_taken(int fd)
{
	int left = 0;

	return ioctl(fd, TIOCOUTQ, &left) < 0 || left == 0;
}

static void look_again(struct timer *timer)
{
	struct lingering *l = CONTAINER(timer, struct lingering, timer);

	if (!is_taken(l->fd) && ++l->looks < LOOKS_MAX) {
		timer_set(&l->of->egress->loop, timer, TIMER_SECOND);
		return;
	}
	disconnect(l->of, l->fd);
	loop_free(&l->of->egress->loop, &l->doomed);
}

static void give_back(struct published *p, struct watch *watch, bool reset)
{
	struct loop *loop = &p->egress->loop;
	int fd = watch->fd;
	struct lingering *l = NULL;

	if (loop_watch(loop, watch, 0) < 0) {
		loop_close(loop, watch);
		return;
	}
	watch->fd = -1;
	if (!reset && !is_taken(fd))
		l = calloc(1, sizeof(*l));
	if (!l) {
		disconnect(p, fd);
		return;
	}
	*l = (struct lingering){ .of = p, .fd = fd, .timer.fire = look_again };
	timer_set(loop, &l->timer, TIMER_SECOND);
}

void publish_give_back(struct egress *eg, struct watch *watch, uint16_t port, bool reset)
{
	struct publish *p = &eg->publish;

	for (size_t i = 0; i < p->port_count && watch->fd >= 0; i++)
		if (p->ports[i].port == port)
			give_back(&p->ports[i], watch, reset);
}

/* --- connecting ------------------------------------------------------------------------------- */

static int connect_inside(int fd, unsigned family, uint16_t port)
{
	const struct sockaddr_in four = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct sockaddr_in6 six = { .sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int r = family == FOUR ? connect(fd, (const struct sockaddr *)&four, sizeof(four))
			       : connect(fd, (const struct sockaddr *)&six, sizeof(six));

	return r < 0 ? -errno : 0;
}

/* It needs no socket of IPv6 any more, or has one now. */
static void settle(struct incoming *in)
{
	in->of->trying -= in->trying;
	in->trying = false;
}

static void drop(struct incoming *in, bool reset)
{
	settle(in);
	timer_clear(&in->timer);
	if (in->watch.fd >= 0)
		give_back(in->of, &in->watch, true);
	if (reset)
		connection_reset(in->host);
	resume(in->of);
	loop_free(&in->of->egress->loop, &in->doomed);
}

static void joined(struct incoming *in)
{
	int inside = in->watch.fd;

	if (loop_watch(&in->of->egress->loop, &in->watch, 0) < 0) {
		drop(in, true);
		return;
	}
	in->watch.fd = -1;
	connection_join(in->of->egress, in->host, inside, in->of->port);
	drop(in, false);
}

static void try_family(struct incoming *in);

/* Nobody listens with this family: try the other one, and then give up. */
static void failed(struct incoming *in)
{
	if (in->watch.fd >= 0)
		give_back(in->of, &in->watch, true);
	if (in->family == FOUR) {
		in->family = SIX;
		settle(in);
		try_family(in);
	} else {
		drop(in, true);
	}
}

static void inside_ready(struct watch *watch, uint32_t events)
{
	struct incoming *in = CONTAINER(watch, struct incoming, watch);
	int error = 0;
	socklen_t size = sizeof(error);

	(void)events;
	if (getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 || error != 0)
		failed(in);
	else
		joined(in);
}

static void late(struct timer *timer)
{
	drop(CONTAINER(timer, struct incoming, timer), true);
}

static void try_family(struct incoming *in)
{
	struct published *p = in->of;
	int r = -EAFNOSUPPORT;

	if (p->free_count[in->family] > 0) {
		in->watch.fd = p->free[in->family][--p->free_count[in->family]];
		r = connect_inside(in->watch.fd, in->family, p->port);
	}
	if (r == 0)
		joined(in);
	else if (r != -EINPROGRESS ||
		loop_watch(&in->of->egress->loop, &in->watch, EPOLLOUT) < 0)
		failed(in);
}

/* --- from the host ---------------------------------------------------------------------------- */

static void take(struct published *p, int fd)
{
	struct incoming *in = calloc(1, sizeof(*in));

	if (!in) {
		connection_reset(fd);
		return;
	}
	*in = (struct incoming){ .of = p,
		.watch = { .fd = -1, .ready = inside_ready },
		.timer.fire = late,
		.host = fd,
		.trying = true };
	p->trying++;
	timer_set(&p->egress->loop, &in->timer, TIMER_CONNECT);
	try_family(in);
}

static void port_ready(struct watch *watch, uint32_t events)
{
	struct published *p = ((struct published_listener *)watch)->of;

	(void)events;
	for (int i = 0; i < ACCEPTS_MAX && has_room(p); i++) {
		int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0)
			take(p, fd);
		else if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
	if (!has_room(p))
		watch_port(p, 0);
}

static struct published *find_port(struct egress *eg, uint16_t port)
{
	struct publish *p = &eg->publish;
	size_t i = 0;

	while (i < p->port_count && p->ports[i].port != port)
		i++;
	if (i == PUBLISH_MAX)
		return NULL;
	if (i == p->port_count) {
		p->ports[i] = (struct published){ .egress = eg, .port = port, .paused = true };
		p->port_count++;
	}
	return &p->ports[i];
}

int publish_listen(struct egress *eg, int fd, uint16_t port)
{
	struct published *p = find_port(eg, port);

	if (!p || p->listener_count == sizeof(p->listeners) / sizeof(p->listeners[0])) {
		(void)close(fd);
		return -EMFILE;
	}
	struct published_listener *l = &p->listeners[p->listener_count++];
	*l = (struct published_listener){ .watch = { .fd = fd, .ready = port_ready }, .of = p };
	return 0;
}

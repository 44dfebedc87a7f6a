/*
 * relay.c - see relay.h.
 *
 * Runs in: carrel-egress.
 */
#include "egress/relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress/connection.h"
#include "egress/egress.h"
#include "egress/proxy.h"
#include "egress/server.h"

enum { ACCEPTS_MAX = 64 }; /* connections to accept before others have their turn */

/* What the program has connected to; of an IPv4 address in IPv6 the inner one. 0 or -errno. */
static int local_of(int fd, struct target *ret, uint16_t *ret_port)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct sockaddr_storage address = { 0 };
	socklen_t size = sizeof(address);
	struct sockaddr_in four;
	struct sockaddr_in6 six;

	if (getsockname(fd, (struct sockaddr *)&address, &size) < 0)
		return -errno;
	*ret = (struct target){ .family = 4 };
	if (address.ss_family == AF_INET) {
		memcpy(&four, &address, sizeof(four));
		memcpy(ret->address, &four.sin_addr, 4);
		*ret_port = ntohs(four.sin_port);
		return 0;
	}
	if (address.ss_family != AF_INET6)
		return -EAFNOSUPPORT;
	memcpy(&six, &address, sizeof(six));
	*ret_port = ntohs(six.sin6_port);
	const uint8_t *bytes = six.sin6_addr.s6_addr;
	if (memcmp(bytes, mapped, sizeof(mapped)) == 0) {
		memcpy(ret->address, bytes + 12, 4);
		return 0;
	}
	ret->family = 6;
	memcpy(ret->address, bytes, 16);
	return 0;
}

static void refuse(struct egress *eg, int fd, enum egress_decision decision, const char *name,
	uint16_t port, int rule)
{
	const struct event event = {
		.decision = decision, .name = name, .port = port, .rule = rule
	};

	tell_event(&eg->tell, &event);
	connection_reset(fd);
}

static bool is_used_up(const struct egress *eg)
{
	return eg->connection_count >= eg->connection_max ||
		(eg->rules.bytes && eg->bytes >= eg->rules.bytes);
}

/* The session's proxy, unless an address rule gives this address and port to the host's. */
static bool is_proxy(const struct target *local, uint16_t port)
{
	static const uint8_t four[4] = { 127, 0, 0, 1 }, six[16] = { [15] = 1 };

	return port == EGRESS_PROXY_PORT &&
		!memcmp(local->address, local->family == 4 ? four : six,
			local->family == 4 ? sizeof(four) : sizeof(six));
}

/* One connection: its own address says which name it is for. */
static void take(struct egress *eg, int fd)
{
	struct target local;
	char text[TARGET_TEXT_MAX];
	uint16_t port = 0;
	int rule = -1;

	if (local_of(fd, &local, &port) < 0) {
		connection_reset(fd);
		return;
	}
	target_text(&local, text);
	struct name *name = names_at(eg, local.family, local.address);
	const char *shown = name ? name->text : text;
	bool allowed = name
		? netrules_name(eg->rules.set, name->text, port, &rule)
		: netrules_address(eg->rules.set, local.family, local.address, port, &rule);
	const struct opening opening = {
		.local = local, .port = port, .name = name, .rule = rule
	};
	if (!allowed && is_proxy(&local, port) && !is_used_up(eg))
		proxy_begin(eg, fd);
	else if (!allowed && !is_proxy(&local, port))
		refuse(eg, fd, EGRESS_DENIED_PORT, shown, port, rule);
	else if (is_used_up(eg))
		refuse(eg, fd, EGRESS_DENIED_LIMIT, shown, port, rule);
	else
		connection_begin(eg, fd, &opening);
}

static void watch_listeners(struct egress *eg, uint32_t events)
{
	for (size_t i = 0; i < eg->listener_count; i++) {
		struct watch *watch = &eg->listeners[i].watch;

		/* A listener that cannot be watched is closed: its connections are refused. */
		if (watch->fd >= 0 && loop_watch(&eg->loop, watch, events) < 0)
			loop_close(&eg->loop, watch);
	}
}

static void pause_over(struct timer *timer)
{
	watch_listeners(CONTAINER(timer, struct egress, pause), EPOLLIN);
}

static void listener_ready(struct watch *watch, uint32_t events)
{
	struct listener *l = (struct listener *)watch;
	struct egress *eg = l->egress;

	(void)events;
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0 && l->dns)
			server_accept(eg, fd);
		else if (fd >= 0)
			take(eg, fd);
		else if (errno == ECONNABORTED || errno == EINTR)
			continue;
		else if (errno == EAGAIN)
			return;
		else
			break;
		if (i + 1 == ACCEPTS_MAX)
			return;
	}
	/* Out of descriptors or memory: the waiting connection stays, and epoll would report it again at once. */
	watch_listeners(eg, 0);
	eg->pause.fire = pause_over;
	timer_set(&eg->loop, &eg->pause, TIMER_PAUSE);
}

int relay_listen(struct egress *eg, int fd, bool dns)
{
	if (eg->listener_count == LISTENERS_MAX) {
		(void)close(fd);
		return -EMFILE;
	}
	struct listener *l = &eg->listeners[eg->listener_count++];
	*l = (struct listener){
		.watch = { .fd = fd, .ready = listener_ready }, .egress = eg, .dns = dns
	};
	return eg->pause.next ? 0 : loop_watch(&eg->loop, &l->watch, EPOLLIN);
}

void relay_end(struct egress *eg)
{
	for (struct connection *c = eg->connections; c; c = c->next)
		if (c->relaying)
			connection_tell(c, 0);
	proxy_end(eg);
}

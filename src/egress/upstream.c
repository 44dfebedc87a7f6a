/*
 * upstream.c - see upstream.h.
 *
 * Runs in: carrel-egress.
 */
#include "egress/upstream.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/egress.h"
#include "egress/names.h"

enum { FOUR, SIX, FAMILIES, ATTEMPTS_LEAST = 3, DATAGRAMS_MAX = 16 };

static const enum dns_type types[FAMILIES] = { [FOUR] = DNS_A, [SIX] = DNS_AAAA };

/* An answer over TCP: its length, in two bytes, before it. */
struct long_answer {
	struct doomed doomed;
	struct watch watch;
	struct upstream *upstream;
	bool sent;
	size_t have;
	uint8_t data[2 + DNS_UPSTREAM_MAX];
};

struct upstream {
	struct doomed doomed;
	struct egress *egress;
	struct name *name;
	struct watch watch; /* UDP */
	struct timer timer;
	struct long_answer *longer[FAMILIES];
	unsigned attempt;
	bool plain; /* without EDNS: the server does not know it */
	bool done[FAMILIES], exists;
	uint16_t ids[FAMILIES];
	uint32_t ttl;
	bool ttl_known;
	int error; /* why the last attempt failed */
};

static void next_attempt(struct upstream *u, int error);

static void close_sockets(struct upstream *u)
{
	struct loop *loop = &u->egress->loop;

	loop_close(loop, &u->watch);
	for (int f = 0; f < FAMILIES; f++) {
		if (!u->longer[f])
			continue;
		loop_close(loop, &u->longer[f]->watch);
		loop_free(loop, &u->longer[f]->doomed);
		u->longer[f] = NULL;
	}
}

static void finish(struct upstream *u, int error)
{
	struct egress *eg = u->egress;
	struct name *name = u->name;

	timer_clear(&u->timer);
	close_sockets(u);
	name->upstream = NULL;
	eg->names.lookups--;
	if (name->four_count + name->six_count > 0)
		error = 0;
	else if (error == 0)
		error = -ENOENT;
	name->exists = u->exists;
	loop_free(&eg->loop, &u->doomed);
	names_resolved(eg, name, error, u->ttl);
}

static void ask_again_later(struct upstream *u)
{
	bool some = u->name->four_count + u->name->six_count > 0;

	timer_set(&u->egress->loop, &u->timer, some ? TIMER_SECOND : TIMER_ASK);
}

static void keep(struct upstream *u, int family, const struct dns_reply *reply)
{
	struct name *name = u->name;

	for (size_t i = 0; i < reply->count; i++)
		if (family == FOUR)
			memcpy(name->four[i], reply->addresses[i], 4);
		else
			memcpy(name->six[i], reply->addresses[i], 16);
	*(family == FOUR ? &name->four_count : &name->six_count) = reply->count;
	/* The time of an answer with addresses counts; of two such answers the smaller time. */
	if (reply->count > 0 && (!u->ttl_known || reply->ttl < u->ttl)) {
		u->ttl = reply->ttl;
		u->ttl_known = true;
	} else if (!u->ttl_known && reply->ttl > u->ttl) {
		u->ttl = reply->ttl;
	}
	u->done[family] = true;
	u->exists |= reply->rcode == DNS_NOERROR;
}

static void ask_longer(struct upstream *u, int family);

/* Handle a server's answer about one family. True: this attempt is over, and @u perhaps gone. */
static bool take_reply(struct upstream *u, int family, const struct dns_reply *reply)
{
	if (reply->truncated && !u->longer[family]) {
		ask_longer(u, family);
		return false;
	}
	if (reply->rcode != DNS_NOERROR && reply->rcode != DNS_NXDOMAIN) {
		u->plain |= reply->rcode == DNS_FORMERR || reply->rcode == DNS_NOTIMP;
		next_attempt(u, -EREMOTEIO);
		return true;
	}
	keep(u, family, reply);
	if (u->done[FOUR] && u->done[SIX]) {
		finish(u, 0);
		return true;
	}
	ask_again_later(u);
	return false;
}

/* --- over TCP ------------------------------------------------------------------------------------ */

static int server_socket(struct upstream *u, int type)
{
	const struct rules *rules = &u->egress->rules;
	const struct resolver *server = &rules->resolvers[u->attempt % rules->resolver_count];
	int fd = socket(server->address.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&server->address, server->size) < 0 &&
		errno != EINPROGRESS) {
		int r = -errno;

		(void)close(fd);
		return r;
	}
	return fd;
}

/* False: it cannot be sent. */
static bool send_longer(struct long_answer *l, int family)
{
	struct upstream *u = l->upstream;
	uint8_t message[2 + DNS_QUERY_MAX];
	size_t size = dns_query_build(
		u->ids[family], u->name->text, types[family], !u->plain, message + 2);

	message[0] = (uint8_t)(size >> 8);
	message[1] = (uint8_t)size;
	l->sent = true;
	return send(l->watch.fd, message, size + 2, MSG_NOSIGNAL) == (ssize_t)size + 2 &&
		loop_watch(&u->egress->loop, &l->watch, EPOLLIN) == 0;
}

static void longer_ready(struct watch *watch, uint32_t events)
{
	struct long_answer *l = CONTAINER(watch, struct long_answer, watch);
	struct upstream *u = l->upstream;
	int family = u->longer[SIX] == l ? SIX : FOUR;
	struct dns_reply reply;

	(void)events;
	if (!l->sent) {
		if (!send_longer(l, family))
			next_attempt(u, -EREMOTEIO);
		return;
	}
	ssize_t n = recv(watch->fd, l->data + l->have, sizeof(l->data) - l->have, 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		next_attempt(u, n < 0 ? -errno : -EREMOTEIO);
		return;
	}
	l->have += (size_t)n;
	size_t whole = l->have < 2 ? 2 : 2 + ((size_t)l->data[0] << 8 | l->data[1]);
	/* If it is longer, the beginning is enough: it has as many addresses as are kept. */
	if (l->have < whole && l->have < sizeof(l->data))
		return;
	size_t size = (l->have < whole ? l->have : whole) - 2;
	if (size == 0 ||
		dns_reply_parse(&reply, l->data + 2, size, u->ids[family], u->name->text,
			types[family]) < 0) {
		next_attempt(u, -EREMOTEIO);
		return;
	}
	if (!take_reply(u, family, &reply))
		loop_close(&u->egress->loop, watch);
}

static void ask_longer(struct upstream *u, int family)
{
	struct long_answer *l = calloc(1, sizeof(*l));

	u->longer[family] = l;
	if (!l)
		return; /* the attempt's time ends */
	l->upstream = u;
	l->watch.ready = longer_ready;
	l->watch.fd = server_socket(u, SOCK_STREAM);
	if (l->watch.fd < 0 || loop_watch(&u->egress->loop, &l->watch, EPOLLOUT) < 0)
		loop_close(&u->egress->loop, &l->watch);
	timer_set(&u->egress->loop, &u->timer, TIMER_ASK);
}

/* --- over UDP ------------------------------------------------------------------------------------ */

static void udp_ready(struct watch *watch, uint32_t events)
{
	struct upstream *u = CONTAINER(watch, struct upstream, watch);
	uint8_t *message = u->egress->buffer;
	struct dns_reply reply;

	(void)events;
	for (int i = 0; i < DATAGRAMS_MAX; i++) {
		ssize_t n = recv(watch->fd, message, DNS_UPSTREAM_MAX, 0);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) { /* nobody listens there */
			next_attempt(u, -errno);
			return;
		}
		for (int f = 0; f < FAMILIES; f++) {
			if (u->done[f] || u->longer[f] ||
				dns_reply_parse(&reply, message, (size_t)n, u->ids[f],
					u->name->text, types[f]) < 0)
				continue;
			if (take_reply(u, f, &reply))
				return;
			break;
		}
	}
}

static int send_queries(struct upstream *u)
{
	uint8_t message[DNS_QUERY_MAX];

	for (int f = 0; f < FAMILIES; f++) {
		if (u->done[f])
			continue;
		size_t size =
			dns_query_build(u->ids[f], u->name->text, types[f], !u->plain, message);

		if (size == 0)
			return -EINVAL;
		if (send(u->watch.fd, message, size, MSG_NOSIGNAL) < 0)
			return -errno;
	}
	return 0;
}

/* Make one attempt. 0: answers may come. */
static int attempt(struct upstream *u)
{
	struct loop *loop = &u->egress->loop;
	int r = fd_random(u->ids, sizeof(u->ids));

	if (r < 0)
		return r;
	u->ids[SIX] ^= u->ids[SIX] == u->ids[FOUR];
	u->watch = (struct watch){ .fd = server_socket(u, SOCK_DGRAM), .ready = udp_ready };
	if (u->watch.fd < 0)
		return u->watch.fd;
	r = loop_watch(loop, &u->watch, EPOLLIN);
	if (r == 0)
		r = send_queries(u);
	ask_again_later(u);
	return r;
}

static void next_attempt(struct upstream *u, int error)
{
	size_t servers = u->egress->rules.resolver_count;
	unsigned most = servers * 2 > ATTEMPTS_LEAST ? (unsigned)servers * 2 : ATTEMPTS_LEAST;

	do {
		close_sockets(u);
		u->error = error;
		if (u->name->four_count + u->name->six_count > 0 || ++u->attempt >= most) {
			finish(u, u->error);
			return;
		}
		error = attempt(u);
	} while (error < 0);
}

static void time_over(struct timer *timer)
{
	next_attempt(CONTAINER(timer, struct upstream, timer), -ETIMEDOUT);
}

void upstream_ask(struct egress *eg, struct name *name)
{
	bool none = eg->rules.resolver_count == 0, many = eg->names.lookups == LOOKUPS_MAX;
	struct upstream *u = none || many ? NULL : calloc(1, sizeof(*u));

	name->four_count = name->six_count = 0;
	if (!u) {
		names_resolved(eg, name, none ? -EDESTADDRREQ : many ? -EBUSY : -ENOMEM, 0);
		return;
	}
	*u = (struct upstream){
		.egress = eg, .name = name, .watch.fd = -1, .timer.fire = time_over
	};
	name->upstream = u;
	eg->names.lookups++;
	int r = attempt(u);
	if (r < 0)
		next_attempt(u, r);
}

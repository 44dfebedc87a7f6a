/*
 * server.c - see server.h.
 *
 * Runs in: carrel-egress.
 */
#include "egress/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress/egress.h"
#include "egress/names.h"

enum {
	DATAGRAMS_MAX = 32, /* datagrams to answer before others have their turn */
	MESSAGE_MAX = 1024, /* bytes of a query */
	KEPT_MAX = 12 + NETRULE_NAME_MAX + 2 + 4, /* bytes of it that an answer repeats */
	TTL_ADDRESS = 60, /* short: the address stays, but the name may cease to exist */
	TTL_REFUSED = 1,  /* short: a rule may be added */
};

/* A connection to the resolver. It answers one query at a time. */
struct stream {
	struct doomed doomed;
	struct egress *egress;
	struct watch watch;
	struct timer timer;
	bool busy; /* it waits for an answer, and stays until then */
	bool closed;
	bool serving; /* stream_next() is at it */
	size_t have;
	uint8_t data[2 + MESSAGE_MAX];
};

/* Where an answer goes. */
struct client {
	struct stream *stream; /* NULL: over UDP */
	struct sockaddr_storage address;
	socklen_t size;
};

/* A query that waits for its name. */
struct pending {
	struct doomed doomed;
	struct egress *egress;
	struct waiter waiter;
	struct client client;
	struct dns_query query;
	uint8_t message[KEPT_MAX];
};

static void stream_next(struct stream *s);

static void stream_close(struct stream *s)
{
	if (!s->closed) {
		timer_clear(&s->timer);
		loop_close(&s->egress->loop, &s->watch);
		s->closed = true;
		s->egress->dns_connections--;
	}
	if (!s->busy)
		loop_free(&s->egress->loop, &s->doomed);
}

/* It does not wait if an answer does not fit at once: a client that does not read has to ask again. */
static void reply(struct egress *eg, const struct client *client, const struct dns_query *query,
	const uint8_t *message, enum dns_rcode rcode, const uint8_t *address)
{
	uint8_t answer[2 + DNS_ANSWER_MAX];
	size_t size = dns_answer_build(query, message, rcode, address,
		address ? TTL_ADDRESS : TTL_REFUSED, answer + 2);

	if (!client->stream) {
		(void)sendto(eg->dns.fd, answer + 2, size, MSG_DONTWAIT | MSG_NOSIGNAL,
			(const struct sockaddr *)&client->address, client->size);
		return;
	}
	answer[0] = (uint8_t)(size >> 8);
	answer[1] = (uint8_t)size;
	if (client->stream->closed)
		return;
	if (send(client->stream->watch.fd, answer, size + 2, MSG_DONTWAIT | MSG_NOSIGNAL) !=
		(ssize_t)size + 2)
		(void)shutdown(client->stream->watch.fd, SHUT_RDWR);
}

/* The family of the addresses that the session has for a query of @type; 0: none. */
static unsigned family_of(const struct egress *eg, uint16_t type)
{
	return type == DNS_A ? 4 : type == DNS_AAAA && eg->six ? 6 : 0;
}

static void resolved(struct waiter *waiter, struct name *name, int error)
{
	struct pending *p = CONTAINER(waiter, struct pending, waiter);
	struct egress *eg = p->egress;
	enum dns_rcode rcode = DNS_SERVFAIL;
	uint8_t address[16];
	unsigned family = family_of(eg, p->query.type);
	bool has_address = error == 0 && family;

	if (error == 0 || (error == -ENOENT && name->exists))
		rcode = DNS_NOERROR;
	else if (error == -ENOENT)
		rcode = DNS_NXDOMAIN;
	if (has_address)
		names_address(name, family, address);
	reply(eg, &p->client, &p->query, p->message, rcode, has_address ? address : NULL);
	eg->pending--;
	if (p->client.stream) {
		p->client.stream->busy = false;
		if (p->client.stream->closed)
			stream_close(p->client.stream);
		else if (!p->client.stream->serving)
			stream_next(p->client.stream);
	}
	loop_free(&eg->loop, &p->doomed);
}

static void tell_refusal(
	struct egress *eg, const char *name, enum egress_decision decision, int rule)
{
	const struct event event = { .decision = decision, .name = name, .rule = rule };

	tell_event(&eg->tell, &event);
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n >= m && !strcmp(name + n - m, end) && (n == m || name[n - m - 1] == '.');
}

/* Wait for the address of an allowed name. */
static void wait_for(struct egress *eg, const struct client *client,
	const struct dns_query *query, const uint8_t *message)
{
	struct name *name = eg->pending < PENDING_MAX ? names_get(eg, query->name) : NULL;
	struct pending *p = name ? calloc(1, sizeof(*p)) : NULL;

	if (!p) {
		tell_refusal(eg, query->name, EGRESS_DENIED_LIMIT, -1);
		reply(eg, client, query, message, DNS_SERVFAIL, NULL);
		return;
	}
	p->egress = eg;
	p->waiter.done = resolved;
	p->client = *client;
	p->query = *query;
	memcpy(p->message, message, 12 + query->question_size);
	eg->pending++;
	if (client->stream)
		client->stream->busy = true;
	names_resolve(eg, name, &p->waiter);
}

static void answer(
	struct egress *eg, const struct client *client, const uint8_t *message, size_t size)
{
	static const uint8_t four[4] = { 127, 0, 0, 1 }, six[16] = { [15] = 1 };
	struct dns_query query;
	enum dns_rcode rcode = DNS_NOERROR;
	int rule = -1, r = dns_query_parse(&query, message, size, &rcode);

	if (r == -EBADMSG)
		return;
	if (r < 0) {
		reply(eg, client, NULL, message, rcode, NULL);
	} else if (query.class != DNS_IN) {
		reply(eg, client, &query, message, DNS_REFUSED, NULL);
	} else if (ends_with(query.name, "localhost")) {
		unsigned family = family_of(eg, query.type);

		reply(eg, client, &query, message, DNS_NOERROR,
			family == 4           ? four
				: family == 6 ? six
					      : NULL);
	} else if (query.odd || !query.name[0] ||
		!netrules_name(eg->rules.set, query.name, 0, &rule)) {
		/* Programs ask for the name of an address (PTR) of their own accord: that is no attempt to reach it. */
		if (query.name[0] && !ends_with(query.name, "arpa"))
			tell_refusal(eg, query.name, EGRESS_DENIED_NAME, rule);
		reply(eg, client, &query, message, DNS_NXDOMAIN, NULL);
	} else if (query.type == DNS_A || query.type == DNS_AAAA) {
		wait_for(eg, client, &query, message);
	} else {
		reply(eg, client, &query, message, DNS_NOERROR, NULL);
	}
}

/* --- UDP ------------------------------------------------------------------------------------------ */

static void udp_ready(struct watch *watch, uint32_t events)
{
	struct egress *eg = CONTAINER(watch, struct egress, dns);
	uint8_t message[MESSAGE_MAX];

	(void)events;
	for (int i = 0; i < DATAGRAMS_MAX; i++) {
		struct client client = { .size = sizeof(client.address) };
		ssize_t n = recvfrom(watch->fd, message, sizeof(message), 0,
			(struct sockaddr *)&client.address, &client.size);

		if (n < 0)
			return; /* EAGAIN, or an error of one client's port */
		answer(eg, &client, message, (size_t)n);
	}
}

int server_start(struct egress *eg, int fd)
{
	eg->dns = (struct watch){ .fd = fd, .ready = udp_ready };
	return loop_watch(&eg->loop, &eg->dns, EPOLLIN);
}

/* --- TCP ------------------------------------------------------------------------------------------ */

/* Handle the messages that are there, one after the other; while one waits for its answer nothing is read. */
static void stream_next(struct stream *s)
{
	const struct client client = { .stream = s };

	while (!s->busy && s->have >= 2) {
		size_t size = (size_t)s->data[0] << 8 | s->data[1];
		uint8_t message[MESSAGE_MAX];

		if (size > MESSAGE_MAX) {
			stream_close(s);
			return;
		}
		if (s->have < size + 2)
			break;
		memcpy(message, s->data + 2, size);
		s->have -= size + 2;
		memmove(s->data, s->data + 2 + size, s->have);
		s->serving = true;
		answer(s->egress, &client, message, size);
		s->serving = false;
		if (s->closed)
			return;
	}
	if (loop_watch(&s->egress->loop, &s->watch, s->busy ? 0 : EPOLLIN) < 0)
		stream_close(s);
}

static void stream_ready(struct watch *watch, uint32_t events)
{
	struct stream *s = CONTAINER(watch, struct stream, watch);
	ssize_t n = recv(watch->fd, s->data + s->have, sizeof(s->data) - s->have, 0);

	(void)events;
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		stream_close(s);
		return;
	}
	s->have += (size_t)n;
	timer_set(&s->egress->loop, &s->timer, TIMER_DNS);
	stream_next(s);
}

static void stream_late(struct timer *timer)
{
	stream_close(CONTAINER(timer, struct stream, timer));
}

void server_accept(struct egress *eg, int fd)
{
	struct stream *s =
		eg->dns_connections < DNS_CONNECTIONS_MAX ? calloc(1, sizeof(*s)) : NULL;

	if (!s) {
		(void)close(fd);
		return;
	}
	s->egress = eg;
	s->watch = (struct watch){ .fd = fd, .ready = stream_ready };
	s->timer.fire = stream_late;
	eg->dns_connections++;
	timer_set(&eg->loop, &s->timer, TIMER_DNS);
	if (loop_watch(&eg->loop, &s->watch, EPOLLIN) < 0)
		stream_close(s);
}

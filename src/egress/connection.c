/*
 * connection.c - see connection.h.
 *
 * Runs in: carrel-egress.
 */
#include "egress/connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "egress/egress.h"
#include "egress/publish.h"
#include "egress/proxy.h"

enum {
	BOTH_FLOWS = 1 << INNER | 1 << OUTER,
	ROUNDS_MAX = 4, /* reads of one side before others have their turn */
};

void connection_reset(int fd)
{
	const struct linger linger = { .l_onoff = 1 };

	/* If that fails, close(2) ends the connection in the ordinary way. */
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	(void)close(fd);
}

/* --- the end -------------------------------------------------------------------------------------- */

static void fill_event(struct connection *c, struct event *event, char local[TARGET_TEXT_MAX],
	char server[TARGET_TEXT_MAX])
{
	target_text(&c->local, local);
	*event = (struct event){
		.name = c->name ? c->name->text : local, .port = c->port, .rule = c->rule
	};
	if (c->server.family != 0) {
		target_text(&c->server, server);
		event->address = server;
	}
}

void connection_tell(struct connection *c, int errnum)
{
	char local[TARGET_TEXT_MAX], server[TARGET_TEXT_MAX];
	struct event event;

	fill_event(c, &event, local, server);
	event.decision = c->published ? EGRESS_PUBLISHED : EGRESS_ALLOWED;
	event.errnum = errnum;
	event.bytes_in = c->flows[c->published ? INNER : OUTER].bytes;
	event.bytes_out = c->flows[c->published ? OUTER : INNER].bytes;
	event.duration_us = (uint64_t)(clock_now_ns() - c->began_ns) / 1000;
	tell_event(&c->egress->tell, &event);
}

static void drop(struct connection *c, bool reset)
{
	struct egress *eg = c->egress;

	timer_clear(&c->timer);
	reach_cancel(&c->reach);
	for (int s = 0; s < SIDES; s++) {
		const struct linger linger = { .l_onoff = 1 };
		struct watch *watch = &c->sides[s].watch;

		if (c->published && s == OUTER) {
			publish_give_back(eg, watch, c->port, reset);
			flow_drop(&c->flows[s]);
			continue;
		}
		if (reset && watch->fd >= 0)
			(void)setsockopt(
				watch->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		loop_close(&eg->loop, watch);
		flow_drop(&c->flows[s]);
	}
	free(c->hello);
	c->hello = NULL;
	*(c->prev ? &c->prev->next : &eg->connections) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	eg->connection_count -= !c->published;
	loop_free(&eg->loop, &c->doomed);
}

/* A client that asked the proxy, and has no answer yet, gets one. */
static void answer_refusal(struct connection *c, const struct event *event)
{
	struct watch *watch = &c->sides[INNER].watch;
	const struct proxy_refusal refusal = { .kind = c->asked,
		.decision = event->decision,
		.name = event->name,
		.port = event->port,
		.rule = event->rule,
		.errnum = event->errnum };
	int fd = watch->fd;

	if (fd < 0 || loop_watch(&c->egress->loop, watch, 0) < 0)
		return;
	watch->fd = -1;
	proxy_refuse(c->egress, fd, &refusal);
}

/* The connection was not allowed, or failed. */
static void refuse(struct connection *c, enum egress_decision decision, int errnum,
	const char *why, const char *server_name)
{
	char local[TARGET_TEXT_MAX], server[TARGET_TEXT_MAX];
	struct event event;

	fill_event(c, &event, local, server);
	event.decision = decision;
	event.errnum = errnum;
	event.why = why;
	event.server_name = server_name;
	tell_event(&c->egress->tell, &event);
	if (c->asked != PROXY_NONE)
		answer_refusal(c, &event);
	drop(c, true);
}

/* Report the relayed bytes in any case. */
static void end_relaying(struct connection *c, int error)
{
	connection_tell(c, -error);
	drop(c, error < 0);
}

/* --- relaying ------------------------------------------------------------------------------------- */

/* Choose what to wait for on both sockets now. 0 or -errno. */
static int look_again(struct connection *c)
{
	for (int s = 0; s < SIDES; s++) {
		const struct flow *from = &c->flows[s], *to = &c->flows[!s];
		uint32_t events = 0;

		if (!from->ended && from->start == from->cleared)
			events |= EPOLLIN;
		if (to->start < to->cleared)
			events |= EPOLLOUT;
		int r = loop_watch(&c->egress->loop, &c->sides[s].watch, events);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Check the program's first bytes. 0; -EPERM: @c is gone; 1: wait. */
static int check_hello(struct connection *c)
{
	struct flow *f = &c->flows[INNER];
	size_t cleared;
	enum hello_verdict verdict = hello_check(c->hello, c->name->text, f->data + f->cleared,
		f->end - f->cleared, c->egress->buffer, &cleared);

	switch (verdict) {
	case HELLO_MORE:
		return 1;
	case HELLO_ENCRYPTED:
		free(c->hello);
		c->hello = NULL;
		f->cleared = f->end;
		return 0;
	case HELLO_GOOD:
		f->cleared += cleared;
		return 0;
	case HELLO_NO_TLS:
	case HELLO_NO_NAME:
	case HELLO_OTHER_NAME:
	case HELLO_HIDDEN:
		break;
	}
	char asked[HELLO_NAME_MAX + 1];
	memcpy(asked, c->hello->name, sizeof(asked));
	refuse(c, EGRESS_DENIED_TLS, 0, hello_word(verdict), asked);
	return -EPERM;
}

/* Handle @n bytes in the buffer, from side @s. 0: all were sent; 1: wait; -EPERM: @c is gone; or -errno. */
static int take(struct connection *c, int s, size_t n)
{
	struct egress *eg = c->egress;
	struct flow *f = &c->flows[s];

	if (s == OUTER && c->hello)
		c->hello->answered = true;
	f->bytes += n;
	eg->bytes += n;
	if (eg->rules.bytes && eg->bytes > eg->rules.bytes) {
		f->bytes -= n; /* they go no further */
		connection_tell(c, EDQUOT);
		refuse(c, EGRESS_DENIED_LIMIT, EDQUOT, "all bytes are used up", NULL);
		return -EPERM;
	}
	if (s == OUTER || !c->hello)
		return flow_pass(f, c->sides[!s].watch.fd, eg->buffer, n);
	int r = flow_hold(f, eg->buffer, n);
	if (r == 0)
		r = check_hello(c);
	return r == 0 ? flow_send(f, c->sides[OUTER].watch.fd) : r;
}

/* Move bytes from side @s to the other, as far as both are ready. Returns what take() does, and 0 if nothing is there. */
static int pump(struct connection *c, int s)
{
	struct flow *f = &c->flows[s];
	size_t most = s == INNER && c->hello ? HELLO_SIZE_MAX / 4 : BUFFER_SIZE;
	int r = flow_send(f, c->sides[!s].watch.fd);

	for (int i = 0; r == 0 && !f->ended && i < ROUNDS_MAX; i++) {
		ssize_t n = recv(c->sides[s].watch.fd, c->egress->buffer, most, MSG_DONTWAIT);

		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		f->ended = n == 0;
		if (n > 0)
			r = take(c, s, (size_t)n);
		if (n < (ssize_t)most)
			break;
	}
	if (r == 0 && f->ended && !f->shut) {
		f->shut = true;
		if (shutdown(c->sides[!s].watch.fd, SHUT_WR) < 0)
			return -errno;
	}
	return r;
}

/* @flows: a bit for each flow that can go on. */
static void relay_ready(struct connection *c, unsigned flows)
{
	for (int s = 0; s < SIDES; s++) {
		int r = flows >> s & 1 ? pump(c, s) : 0;

		if (r == -EPERM)
			return;
		if (r < 0) {
			end_relaying(c, r);
			return;
		}
	}
	if (c->flows[INNER].shut && c->flows[OUTER].shut) {
		end_relaying(c, 0);
		return;
	}
	bool half = c->flows[INNER].ended || c->flows[OUTER].ended;
	timer_set(&c->egress->loop, &c->timer, half ? TIMER_HALF : TIMER_IDLE);
	int r = look_again(c);
	if (r < 0)
		end_relaying(c, r);
}

/* --- connecting ----------------------------------------------------------------------------------- */

/* Tell a client of the proxy that it may begin. False: @c is freed. */
static bool greet(struct connection *c)
{
	int r = c->asked == PROXY_NONE ? 0 : proxy_grant(c->sides[INNER].watch.fd, c->asked);

	c->asked = PROXY_NONE;
	if (r < 0)
		refuse(c, EGRESS_FAILED, -r, "answer", NULL);
	return r == 0;
}

static void reached(struct reach *r, const struct reached *what)
{
	struct connection *c = CONTAINER(r, struct connection, reach);

	c->server = r->server;
	if (what->fd < 0) {
		refuse(c, what->decision, what->errnum, what->why, NULL);
		return;
	}
	c->sides[OUTER].watch.fd = what->fd;
	c->relaying = true;
	if (greet(c))
		relay_ready(c, BOTH_FLOWS);
}

/* The ClientHello was checked as far as needed: connect. */
static void connect_out(struct connection *c)
{
	if (loop_watch(&c->egress->loop, &c->sides[INNER].watch, 0) < 0) {
		refuse(c, EGRESS_FAILED, EIO, "connect", NULL);
		return;
	}
	timer_set(&c->egress->loop, &c->timer, TIMER_CONNECT);
	c->reach = (struct reach){ .egress = c->egress,
		.name = c->name,
		.server = c->local,
		.port = c->port,
		.done = reached };
	reach_start(&c->reach);
}

/* Check the ClientHello, before anything is connected. */
static void hello_ready(struct connection *c)
{
	struct flow *f = &c->flows[INNER];
	ssize_t n = recv(
		c->sides[INNER].watch.fd, c->egress->buffer, HELLO_SIZE_MAX / 4, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		refuse(c, EGRESS_DENIED_TLS, 0, "it ended before a ClientHello", NULL);
		return;
	}
	f->bytes += (size_t)n;
	c->egress->bytes += (size_t)n;
	int r = flow_hold(f, c->egress->buffer, (size_t)n);
	if (r < 0)
		refuse(c, EGRESS_FAILED, -r, "hello", NULL);
	else if (check_hello(c) == 0)
		connect_out(c);
}

static void side_ready(struct watch *watch, uint32_t events)
{
	struct connection *c = ((struct side *)watch)->connection;
	unsigned own = watch == &c->sides[INNER].watch ? INNER : OUTER, flows = 0;

	if (events & EPOLLIN)
		flows |= 1u << own;
	if (events & EPOLLOUT)
		flows |= 1u << !own;
	if (events & (EPOLLHUP | EPOLLERR)) /* reading or writing tells which */
		flows = BOTH_FLOWS;
	if (c->relaying)
		relay_ready(c, flows);
	else
		hello_ready(c);
}

static void late(struct timer *timer)
{
	struct connection *c = CONTAINER(timer, struct connection, timer);

	if (c->relaying)
		end_relaying(c, -ETIMEDOUT);
	else if (c->hello && !c->hello->seen)
		refuse(c, EGRESS_DENIED_TLS, ETIMEDOUT, hello_word(HELLO_MORE), NULL);
	else
		refuse(c, EGRESS_FAILED, ETIMEDOUT, "connect", NULL);
}

void connection_cut(struct egress *eg, int rule)
{
	for (struct connection *next, *c = eg->connections; c; c = next) {
		next = c->next;
		if (c->rule != rule)
			continue;
		if (c->name ? netrules_name(eg->rules.set, c->name->text, c->port, &c->rule)
			    : netrules_address(eg->rules.set, c->local.family, c->local.address,
				      c->port, &c->rule))
			continue;
		c->rule = rule;
		if (c->relaying)
			end_relaying(c, -ECONNABORTED);
		else
			refuse(c, EGRESS_DENIED_PORT, 0, "the rule was taken back", NULL);
	}
}

/* Fill in what every connection has, and put it into the list. */
static void fill(struct connection *c, struct egress *eg, int inner, int outer, uint16_t port)
{
	*c = (struct connection){ .next = eg->connections,
		.egress = eg,
		.sides = { { .watch = { .fd = inner, .ready = side_ready }, .connection = c },
			{ .watch = { .fd = outer, .ready = side_ready }, .connection = c } },
		.timer.fire = late,
		.port = port,
		.rule = -1,
		.began_ns = clock_now_ns() };
	if (eg->connections)
		eg->connections->prev = c;
	eg->connections = c;
}

void connection_join(struct egress *eg, int host, int inside, uint16_t port)
{
	struct connection *c = calloc(1, sizeof(*c));
	const int yes = 1;

	if (!c) {
		struct watch watch = { .fd = inside };

		connection_reset(host);
		publish_give_back(eg, &watch, port, true);
		return;
	}
	fill(c, eg, host, inside, port);
	c->local = (struct target){ .family = 4, .address = { 127, 0, 0, 1 } };
	c->published = c->relaying = true;
	/* This is only about delay. */
	(void)setsockopt(host, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	(void)setsockopt(inside, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	relay_ready(c, BOTH_FLOWS);
}

/* Before anything is connected: check what the program has sent so far. */
static void expect_hello(struct connection *c)
{
	struct egress *eg = c->egress;
	int fd = c->sides[INNER].watch.fd;
	const int yes = 1;

	/* Urgent bytes come out of order: one reader would see them, another would not. */
	c->hello = calloc(1, sizeof(*c->hello));
	timer_set(&eg->loop, &c->timer, TIMER_HELLO);
	if (!c->hello || setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &yes, sizeof(yes)) < 0 ||
		loop_watch(&eg->loop, &c->sides[INNER].watch, EPOLLIN) < 0) {
		refuse(c, EGRESS_FAILED, ENOMEM, "hello", NULL);
		return;
	}
	if (greet(c) && c->flows[INNER].end > 0 && check_hello(c) == 0)
		connect_out(c);
}

void connection_begin(struct egress *eg, int fd, const struct opening *o)
{
	struct connection *c = calloc(1, sizeof(*c));
	const int yes = 1;

	if (!c) {
		connection_reset(fd);
		return;
	}
	fill(c, eg, fd, -1, o->port);
	c->name = o->name;
	c->local = o->local;
	c->rule = o->rule;
	c->asked = o->asked;
	eg->connection_count++;
	(void)setsockopt(
		fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)); /* only about delay */
	bool checked = o->name && o->port == EGRESS_TLS_PORT && !eg->rules.any_name;
	struct flow *f = &c->flows[INNER];
	if (o->early_size > 0 && flow_hold(f, o->early, o->early_size) < 0) {
		refuse(c, EGRESS_FAILED, ENOMEM, "connect", NULL);
		return;
	}
	f->bytes += o->early_size;
	eg->bytes += o->early_size;
	if (checked) {
		expect_hello(c);
		return;
	}
	f->cleared = f->end;
	connect_out(c);
}

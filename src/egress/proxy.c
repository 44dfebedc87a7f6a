/*
 * proxy.c - see proxy.h.
 *
 * Runs in: carrel-egress.
 */
#include "egress/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "egress/connection.h"
#include "egress/egress.h"
#include "egress/forward.h"
#include "egress/proxy_answer.h"

enum {
	READ_MAX = 4096,      /* bytes at once, before anything is granted */
	LINGER_MAX = 1 << 20, /* bytes that are read and thrown away */
	SOCKS_VERSION_FOUR = 4,
};

/* --- the end ------------------------------------------------------------------------------------ */

/* Free everything but the client's socket. */
static void forget(struct proxy *p)
{
	struct egress *eg = p->egress;

	timer_clear(&p->timer);
	names_cancel(&p->waiter);
	reach_cancel(&p->reach);
	forward_close(p, 0);
	for (int s = 0; s < SIDES; s++) {
		flow_drop(&p->in[s]);
		flow_drop(&p->out[s]);
	}
	*(p->prev ? &p->prev->next : &eg->proxies) = p->next;
	if (p->next)
		p->next->prev = p->prev;
	eg->connection_count--;
	loop_free(&eg->loop, &p->doomed);
}

void proxy_drop(struct proxy *p, bool reset)
{
	const struct linger linger = { .l_onoff = 1 };
	struct watch *watch = &p->sides[INNER].watch;

	if (reset) /* if that fails, close(2) ends it in the ordinary way */
		(void)setsockopt(watch->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	loop_close(&p->egress->loop, watch);
	forget(p);
}

/* To close a socket that has unread bytes would reset it, and the client would lose the answer. */
void proxy_linger(struct proxy *p)
{
	struct watch *watch = &p->sides[INNER].watch;

	p->stage = PROXY_LINGER;
	timer_set(&p->egress->loop, &p->timer, TIMER_ASK);
	if (shutdown(watch->fd, SHUT_WR) < 0 ||
		loop_watch(&p->egress->loop, watch, EPOLLIN) < 0)
		proxy_drop(p, true);
}

static void read_away(struct proxy *p)
{
	ssize_t n =
		recv(p->sides[INNER].watch.fd, p->egress->buffer, BUFFER_SIZE, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	p->lingered += n > 0 ? (size_t)n : 0;
	if (n <= 0 || p->lingered > LINGER_MAX)
		proxy_drop(p, n != 0);
}

/* --- answers ------------------------------------------------------------------------------------ */

/* The socket's buffer is empty, or has room for so little: a client that takes less is ended. */
static int say(int fd, const void *data, size_t size)
{
	ssize_t n = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);

	return n == (ssize_t)size ? 0 : n < 0 ? -errno : -EIO;
}

static void answer(struct proxy *p, const struct proxy_refusal *refusal)
{
	uint8_t text[PROXY_ANSWER_MAX];
	size_t size = proxy_answer_build(refusal, text);

	if (size == 0 || say(p->sides[INNER].watch.fd, text, size) < 0)
		proxy_drop(p, true);
	else
		proxy_linger(p);
}

int proxy_grant(int fd, enum proxy_kind kind)
{
	static const char http[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	static const uint8_t socks[SOCKS_REPLY_SIZE] = { SOCKS_VERSION, SOCKS_GRANTED, 0, 1 };

	return kind == PROXY_SOCKS ? say(fd, socks, sizeof(socks))
				   : say(fd, http, sizeof(http) - 1);
}

static const char *shown_name(const struct proxy *p)
{
	return p->name ? p->name->text : p->wanted.host;
}

void proxy_deny(struct proxy *p, enum egress_decision decision, int errnum, const char *why)
{
	char server[TARGET_TEXT_MAX];
	const struct event event = { .decision = decision,
		.name = shown_name(p),
		.address = p->reach.server.family ? server : NULL,
		.why = why,
		.port = p->wanted.port,
		.rule = p->rule,
		.errnum = errnum };
	const struct proxy_refusal refusal = { .kind = p->kind,
		.decision = decision,
		.name = shown_name(p),
		.port = p->wanted.port,
		.rule = p->rule,
		.errnum = errnum };

	target_text(&p->reach.server, server);
	tell_event(&p->egress->tell, &event);
	answer(p, &refusal);
}

static void answer_bad(struct proxy *p, const char *why)
{
	const struct proxy_refusal refusal = { .kind = p->kind, .bad = why };

	answer(p, &refusal);
}

/* --- one request -------------------------------------------------------------------------------- */

/* The client's socket becomes an ordinary connection's. */
static void begin_tunnel(struct proxy *p)
{
	struct egress *eg = p->egress;
	struct watch *watch = &p->sides[INNER].watch;
	struct flow early = p->in[INNER];
	int fd = watch->fd;
	const struct opening opening = { .local = p->reach.server,
		.port = p->wanted.port,
		.name = p->name,
		.rule = p->rule,
		.asked = p->kind,
		.early = early.data + early.start,
		.early_size = early.end - early.start };

	if (loop_watch(&eg->loop, watch, 0) < 0) {
		proxy_drop(p, true);
		return;
	}
	watch->fd = -1;
	p->in[INNER] = (struct flow){ 0 };
	forget(p);
	connection_begin(eg, fd, &opening);
	flow_drop(&early);
}

static void go(struct proxy *p)
{
	p->reach.server = (struct target){ .family = p->wanted.family };
	memcpy(p->reach.server.address, p->wanted.address, sizeof(p->wanted.address));
	if (p->kind == PROXY_SOCKS || p->request.connect)
		begin_tunnel(p);
	else
		forward_request(p);
}

static void resolved(struct waiter *waiter, struct name *name, int error)
{
	struct proxy *p = CONTAINER(waiter, struct proxy, waiter);
	struct target first;

	p->name = name;
	if (error < 0) {
		proxy_deny(p, EGRESS_FAILED, -error, "resolve");
	} else if (!reach_may(p->egress, name, p->wanted.port, &first)) {
		p->reach.server = first;
		proxy_deny(p, EGRESS_DENIED_ADDRESS, 0, "no address that is everybody's");
	} else {
		go(p);
	}
}

static void resolve(struct proxy *p, const char *text)
{
	struct name *name = names_get(p->egress, text);

	if (!name) {
		proxy_deny(p, EGRESS_DENIED_LIMIT, 0, "too many names");
		return;
	}
	p->stage = PROXY_RESOLVE;
	p->waiter.done = resolved;
	timer_set(&p->egress->loop, &p->timer, TIMER_CONNECT);
	names_resolve(p->egress, name, &p->waiter);
}

/* Whether a rule allows p->wanted; p->rule is that rule then. */
static bool is_allowed(struct proxy *p)
{
	const struct netrules *set = p->egress->rules.set;
	const struct proxy_target *t = &p->wanted;

	return t->family == 0 || p->name
		? netrules_name(set, shown_name(p), t->port, &p->rule)
		: netrules_address(set, t->family, t->address, t->port, &p->rule);
}

/* Ask the rules about p->wanted, as about a connection without a proxy. */
static void decide(struct proxy *p)
{
	struct egress *eg = p->egress;
	const struct netrules *set = eg->rules.set;
	const struct proxy_target *t = &p->wanted;
	bool plain = p->kind == PROXY_HTTP && !p->request.connect;

	p->reach.server = (struct target){ 0 };
	/* If it is one of the session's own addresses, the name that has it. */
	p->name = t->family ? names_at(eg, t->family, t->address) : NULL;
	bool by_name = t->family == 0 || p->name, allowed = is_allowed(p);
	int any;
	if (loop_watch(&eg->loop, &p->sides[INNER].watch, 0) < 0)
		proxy_drop(p, true);
	else if (!allowed && by_name && !netrules_name(set, shown_name(p), 0, &any))
		proxy_deny(p, EGRESS_DENIED_NAME, 0, NULL);
	else if (!allowed)
		proxy_deny(p, EGRESS_DENIED_PORT, 0, NULL);
	else if (by_name && plain && t->port == EGRESS_TLS_PORT && !eg->rules.any_name)
		proxy_deny(p, EGRESS_DENIED_TLS, 0, "a request without TLS");
	else if (eg->rules.bytes && eg->bytes >= eg->rules.bytes)
		proxy_deny(p, EGRESS_DENIED_LIMIT, EDQUOT, "all bytes are used up");
	else if (by_name)
		resolve(p, shown_name(p));
	else
		go(p);
}

/* --- what the client says ----------------------------------------------------------------------- */

/* Each returns 1: go on reading; 0: more bytes are needed, or it is somebody else's turn, or @p is gone. */

static int read_first(struct proxy *p, const uint8_t *data)
{
	p->kind = PROXY_HTTP;
	p->stage = PROXY_HEAD;
	if (data[0] == SOCKS_VERSION) {
		p->kind = PROXY_SOCKS;
		p->stage = PROXY_METHODS;
	} else if (data[0] == SOCKS_VERSION_FOUR) {
		static const uint8_t rejected[8] = { 0, 91 };

		if (say(p->sides[INNER].watch.fd, rejected, sizeof(rejected)) < 0)
			proxy_drop(p, true);
		else
			proxy_linger(p);
		return 0;
	}
	return 1;
}

static int read_methods(struct proxy *p, const uint8_t *data, size_t size)
{
	uint8_t reply[2] = { SOCKS_VERSION };
	ssize_t n = socks_methods_parse(data, size, &reply[1]);

	if (n < 0)
		proxy_drop(p, true);
	if (n <= 0)
		return 0;
	if (say(p->sides[INNER].watch.fd, reply, sizeof(reply)) < 0) {
		proxy_drop(p, true);
		return 0;
	}
	flow_take(&p->in[INNER], (size_t)n);
	if (reply[1] == SOCKS_NO_METHOD) {
		proxy_linger(p);
		return 0;
	}
	p->stage = reply[1] == SOCKS_PASSWORD ? PROXY_PASSWORD : PROXY_REQUEST;
	return 1;
}

static int read_password(struct proxy *p, const uint8_t *data, size_t size)
{
	static const uint8_t good[2] = { 1, 0 };
	ssize_t n = socks_password_parse(data, size);

	if (n < 0 || (n > 0 && say(p->sides[INNER].watch.fd, good, sizeof(good)) < 0))
		proxy_drop(p, true);
	else if (n > 0)
		flow_take(&p->in[INNER], (size_t)n);
	p->stage = n > 0 ? PROXY_REQUEST : p->stage;
	return n > 0;
}

static int read_request(struct proxy *p, const uint8_t *data, size_t size)
{
	uint8_t reply[SOCKS_REPLY_SIZE] = { SOCKS_VERSION, SOCKS_GRANTED, 0, 1 };
	ssize_t n = socks_request_parse(&p->wanted, data, size, &reply[1]);

	if (n < 0)
		proxy_drop(p, true);
	if (n <= 0)
		return 0;
	flow_take(&p->in[INNER], (size_t)n);
	if (reply[1] == SOCKS_GRANTED)
		decide(p);
	else if (say(p->sides[INNER].watch.fd, reply, sizeof(reply)) < 0)
		proxy_drop(p, true);
	else
		proxy_linger(p);
	return 0;
}

static int read_head(struct proxy *p, const uint8_t *data, size_t size)
{
	int r = http_request_parse(&p->request, data, size);

	if (r == -EAGAIN)
		return 0;
	if (r == -EPROTONOSUPPORT) {
		answer_bad(p,
			"this is a proxy: it takes CONNECT, and requests for http://HOST/PATH");
	} else if (r < 0) {
		answer_bad(p, "this is no request that can be read in one way only");
	} else {
		p->wanted = p->request.target;
		if (p->request.connect)
			flow_take(&p->in[INNER], p->request.size);
		decide(p);
	}
	return 0;
}

static void look_at(struct proxy *p)
{
	int more = 1;

	while (more && p->in[INNER].start < p->in[INNER].end) {
		const uint8_t *data = p->in[INNER].data + p->in[INNER].start;
		size_t size = p->in[INNER].end - p->in[INNER].start;

		more = 0;
		if (p->stage == PROXY_FIRST)
			more = read_first(p, data);
		else if (p->stage == PROXY_METHODS)
			more = read_methods(p, data, size);
		else if (p->stage == PROXY_PASSWORD)
			more = read_password(p, data, size);
		else if (p->stage == PROXY_REQUEST)
			more = read_request(p, data, size);
		else if (p->stage == PROXY_HEAD)
			more = read_head(p, data, size);
	}
}

void proxy_next(struct proxy *p)
{
	bool begun = p->in[INNER].start < p->in[INNER].end;

	p->stage = PROXY_HEAD;
	timer_set(&p->egress->loop, &p->timer, begun ? TIMER_HELLO : TIMER_HALF);
	if (loop_watch(&p->egress->loop, &p->sides[INNER].watch, EPOLLIN) < 0)
		proxy_drop(p, true);
	else if (begun)
		look_at(p);
}

static void read_more(struct proxy *p)
{
	bool first = p->in[INNER].start == p->in[INNER].end && p->stage == PROXY_HEAD;
	ssize_t n = recv(p->sides[INNER].watch.fd, p->egress->buffer, READ_MAX, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0 || flow_hold(&p->in[INNER], p->egress->buffer, (size_t)n) < 0) {
		proxy_drop(p, n != 0);
		return;
	}
	if (first) /* a later request has begun: from now on it has as much time as the first had */
		timer_set(&p->egress->loop, &p->timer, TIMER_HELLO);
	look_at(p);
}

static void side_ready(struct watch *watch, uint32_t events)
{
	struct proxy *p = ((struct proxy_side *)watch)->proxy;

	(void)events; /* reading or writing tells which */
	if (p->stage == PROXY_EXCHANGE)
		forward_ready(p);
	else if (watch == &p->sides[OUTER].watch)
		forward_close(p, 0); /* the server has ended while there was no request */
	else if (p->stage == PROXY_LINGER)
		read_away(p);
	else
		read_more(p);
}

static void late(struct timer *timer)
{
	struct proxy *p = CONTAINER(timer, struct proxy, timer);

	if (p->stage == PROXY_RESOLVE || p->stage == PROXY_REACH) {
		names_cancel(&p->waiter);
		reach_cancel(&p->reach);
		proxy_deny(p, EGRESS_FAILED, ETIMEDOUT, "connect");
		return;
	}
	if (p->stage == PROXY_EXCHANGE)
		forward_close(p, ETIMEDOUT);
	proxy_drop(p, p->stage == PROXY_EXCHANGE);
}

/* NULL: no memory, and @fd is closed. */
static struct proxy *make(struct egress *eg, int fd)
{
	struct proxy *p = calloc(1, sizeof(*p));
	const int yes = 1;

	if (!p) {
		connection_reset(fd);
		return NULL;
	}
	*p = (struct proxy){ .next = eg->proxies,
		.egress = eg,
		.sides = { { .watch = { .fd = fd, .ready = side_ready }, .proxy = p },
			{ .watch = { .fd = -1, .ready = side_ready }, .proxy = p } },
		.timer.fire = late,
		.rule = -1 };
	if (eg->proxies)
		eg->proxies->prev = p;
	eg->proxies = p;
	eg->connection_count++;
	/* The first is only about delay. If the second fails, urgent bytes are missing both in what is checked and in what is sent on. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	(void)setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &yes, sizeof(yes));
	return p;
}

void proxy_begin(struct egress *eg, int fd)
{
	struct proxy *p = make(eg, fd);

	if (!p)
		return;
	timer_set(&eg->loop, &p->timer, TIMER_HELLO);
	if (loop_watch(&eg->loop, &p->sides[INNER].watch, EPOLLIN) < 0)
		proxy_drop(p, true);
}

void proxy_refuse(struct egress *eg, int fd, const struct proxy_refusal *refusal)
{
	struct proxy *p = make(eg, fd);

	if (p)
		answer(p, refusal);
}

void proxy_cut(struct egress *eg, int rule)
{
	for (struct proxy *next, *p = eg->proxies; p; p = next) {
		bool asks = p->stage >= PROXY_RESOLVE && p->stage <= PROXY_EXCHANGE;

		next = p->next;
		if (asks && p->rule == rule && !is_allowed(p))
			proxy_drop(p, true);
		/* A client between two requests is judged at its next one; only its connection to a server ends now. */
		else if (!asks && p->server_rule == rule)
			forward_close(p, ECONNABORTED);
	}
}

void proxy_end(struct egress *eg)
{
	for (struct proxy *p = eg->proxies; p; p = p->next)
		forward_close(p, 0);
}

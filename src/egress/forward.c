/*
 * forward.c - see forward.h.
 *
 * Runs in: carrel-egress.
 */
#include "egress/forward.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "egress/egress.h"

enum {
	ROUNDS_MAX = 4,   /* reads of one side before others have their turn */
	READ_MAX = 65536, /* bytes at once */
	INTERIM_MAX = 8,  /* responses that say: wait */
};

void forward_close(struct proxy *p, int errnum)
{
	char address[TARGET_TEXT_MAX];
	struct watch *watch = &p->sides[OUTER].watch;

	if (watch->fd < 0)
		return;
	target_text(&p->server_address, address);
	const struct event event = { .decision = EGRESS_ALLOWED,
		.name = p->server.host,
		.address = address,
		.port = p->server.port,
		.rule = p->server_rule,
		.errnum = errnum,
		.bytes_in = p->bytes[OUTER],
		.bytes_out = p->bytes[INNER],
		.duration_us = (uint64_t)(clock_now_ns() - p->began_ns) / 1000 };
	tell_event(&p->egress->tell, &event);
	void (*ready)(struct watch *, uint32_t) = watch->ready;
	loop_close(&p->egress->loop, watch);
	watch->ready = ready; /* another server may follow */
	flow_drop(&p->in[OUTER]);
	flow_drop(&p->out[OUTER]);
	p->used_before = false;
}

/* --- the exchange ------------------------------------------------------------------------------- */

static int pass_on(struct flow *f, const uint8_t *data, size_t size)
{
	int r = flow_hold(f, data, size);

	f->cleared = f->end;
	return r;
}

/* Read the head of the response, or of one that says: wait. 1: more is needed; 0; -errno. */
static int take_head(struct proxy *p)
{
	struct flow *f = &p->in[OUTER];
	struct http_head head;
	int r = http_response_parse(
		&head, f->data + f->start, f->end - f->start, p->request.asks_head);

	if (r < 0)
		return r == -EAGAIN ? 1 : -EPROTO;
	bool final = head.status >= 200;
	if (!final && ++p->interim > INTERIM_MAX)
		return -EPROTO;
	if (final) {
		http_body_begin(&p->bodies[OUTER], &head, false);
		p->answered = true;
		p->server_keeps = head.keep;
		p->client_keeps = p->request.keep && head.framing != HTTP_TO_END &&
			p->bodies[INNER].ended;
	}
	size_t size = http_response_build(
		&head, f->data + f->start, p->client_keeps, p->egress->buffer);
	if (size == 0)
		return -EPROTO;
	r = pass_on(&p->out[INNER], p->egress->buffer, size);
	flow_take(f, head.size);
	return r;
}

/* Find what was read from side @s and belongs to the message. 1: more is needed; 0; -errno. */
static int look_at(struct proxy *p, int s)
{
	struct flow *f = &p->in[s];

	while (f->start < f->end && s == OUTER && !p->answered) {
		int r = take_head(p);
		if (r != 0)
			return r;
	}
	if (f->start == f->end || p->bodies[s].ended)
		return 0;
	ssize_t n = http_body_pass(&p->bodies[s], f->data + f->start, f->end - f->start);
	if (n < 0)
		return -EPROTO;
	int r = pass_on(&p->out[!s], f->data + f->start, (size_t)n);
	flow_take(f, (size_t)n);
	return r;
}

/* Side @s sends nothing more. */
static int side_ended(struct proxy *p, int s)
{
	if (s == OUTER) {
		p->server_keeps = false;
		if (!p->answered || p->bodies[OUTER].framing != HTTP_TO_END)
			return -ECONNRESET;
		p->bodies[OUTER].ended = true;
		return 0;
	}
	p->client_ended = true;
	p->request.keep = false;
	p->client_keeps = false;
	return p->bodies[INNER].ended ? 0 : -ECONNRESET;
}

static int count_bytes(struct proxy *p, int s, size_t n)
{
	struct egress *eg = p->egress;

	eg->bytes += n;
	if (eg->rules.bytes && eg->bytes > eg->rules.bytes)
		return -EDQUOT; /* they go no further */
	p->bytes[s] += n;
	return 0;
}

/* Whether to read more from side @s: from the client at most one head that comes too early. */
static bool wants_more(const struct proxy *p, int s)
{
	const struct flow *f = &p->in[s];

	if (p->out[!s].start < p->out[!s].cleared)
		return false;
	if (s == OUTER)
		return !p->bodies[OUTER].ended;
	return !p->client_ended &&
		(!p->bodies[INNER].ended || f->end - f->start < HTTP_HEAD_MAX);
}

/* Move bytes from side @s to the other, as far as both are ready. 0 or -errno. */
static int pump(struct proxy *p, int s)
{
	int r = look_at(p, s);

	for (int i = 0; r >= 0 && i < ROUNDS_MAX; i++) {
		r = flow_send(&p->out[!s], p->sides[!s].watch.fd);
		if (r != 0 || !wants_more(p, s))
			break;
		size_t most = s == INNER ? HTTP_HEAD_MAX : READ_MAX;
		ssize_t n = recv(p->sides[s].watch.fd, p->egress->buffer, most, MSG_DONTWAIT);
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (n == 0)
			return side_ended(p, s);
		r = count_bytes(p, s, (size_t)n);
		if (r == 0)
			r = flow_hold(&p->in[s], p->egress->buffer, (size_t)n);
		if (r == 0)
			r = look_at(p, s);
	}
	return r < 0 ? r : 0;
}

static int watch_sides(struct proxy *p)
{
	for (int s = 0; s < SIDES; s++) {
		uint32_t events = wants_more(p, s) ? EPOLLIN : 0;

		if (p->out[s].start < p->out[s].cleared)
			events |= EPOLLOUT;
		int r = loop_watch(&p->egress->loop, &p->sides[s].watch, events);
		if (r < 0)
			return r;
	}
	timer_set(&p->egress->loop, &p->timer, p->client_ended ? TIMER_HALF : TIMER_IDLE);
	return 0;
}

/* If the client has no byte of a response yet, answer with the reason; otherwise reset the connection. */
static void fail(struct proxy *p, int error)
{
	bool told = p->answered || p->out[INNER].end > 0 || p->interim > 0;
	bool again = error == -ECONNRESET && p->used_before && p->bytes[OUTER] > 0;

	forward_close(p, -error);
	if (error == -EDQUOT && !told)
		proxy_deny(p, EGRESS_DENIED_LIMIT, EDQUOT, "all bytes are used up");
	else if (told || again || p->client_ended)
		proxy_drop(p, !again);
	else
		proxy_deny(p, EGRESS_FAILED, -error, "no response that can be passed on");
}

/* The client has the whole response. */
static void finish(struct proxy *p)
{
	struct loop *loop = &p->egress->loop;

	if (p->in[OUTER].end > 0 || !p->bodies[INNER].ended)
		p->server_keeps =
			false; /* the server has sent more than was asked, or has not read all */
	if (!p->server_keeps || !p->client_keeps)
		forward_close(p, 0);
	else if (loop_watch(loop, &p->sides[OUTER].watch, EPOLLIN) < 0)
		forward_close(p, EIO);
	if (p->client_keeps)
		proxy_next(p);
	else
		proxy_linger(p);
}

void forward_ready(struct proxy *p)
{
	int r = pump(p, INNER);

	if (r == 0)
		r = pump(p, OUTER);
	if (r == 0 && p->answered && p->bodies[OUTER].ended &&
		p->out[INNER].start == p->out[INNER].end) {
		finish(p);
		return;
	}
	if (r == 0)
		r = watch_sides(p);
	if (r < 0)
		fail(p, r);
}

/* --- its beginning ------------------------------------------------------------------------------ */

static void send_request(struct proxy *p)
{
	struct flow *f = &p->in[INNER];
	size_t size = http_request_build(&p->request, f->data + f->start, p->egress->buffer);

	p->stage = PROXY_EXCHANGE;
	p->answered = p->client_keeps = false;
	p->interim = 0;
	http_body_begin(&p->bodies[INNER], &p->request, true);
	p->bodies[OUTER] = (struct http_body){ 0 };
	flow_take(f, p->request.size);
	p->bytes[INNER] += p->request.size;
	p->egress->bytes += p->request.size;
	if (size == 0 || pass_on(&p->out[OUTER], p->egress->buffer, size) < 0)
		fail(p, -ENOMEM);
	else
		forward_ready(p);
}

static void reached(struct reach *r, const struct reached *what)
{
	struct proxy *p = CONTAINER(r, struct proxy, reach);

	if (what->fd < 0) {
		proxy_deny(p, what->decision, what->errnum, what->why);
		return;
	}
	p->sides[OUTER].watch.fd = what->fd;
	p->server = p->wanted;
	if (p->name) /* an address of the session's own stands for a name */
		(void)memcpy(p->server.host, p->name->text, strlen(p->name->text) + 1);
	p->server_rule = p->rule;
	p->server_address = r->server;
	p->bytes[INNER] = p->bytes[OUTER] = 0;
	p->began_ns = clock_now_ns();
	send_request(p);
}

static bool is_connected(const struct proxy *p)
{
	const char *host = p->name ? p->name->text : p->wanted.host;

	return p->sides[OUTER].watch.fd >= 0 && p->server.port == p->wanted.port &&
		p->server.family == p->wanted.family && !strcmp(p->server.host, host);
}

void forward_request(struct proxy *p)
{
	if (is_connected(p)) {
		p->used_before = true;
		send_request(p);
		return;
	}
	forward_close(p, 0);
	p->stage = PROXY_REACH;
	p->reach = (struct reach){
		.egress = p->egress, .name = p->name, .port = p->wanted.port, .done = reached
	};
	p->reach.server.family = p->wanted.family;
	memcpy(p->reach.server.address, p->wanted.address, sizeof(p->wanted.address));
	timer_set(&p->egress->loop, &p->timer, TIMER_CONNECT);
	reach_start(&p->reach);
}

/*
 * proxy.h - the session's proxy, for programs that insist on one: HTTP (CONNECT, and requests with the whole address) and
 * SOCKS 5, at 127.0.0.1:3128 inside. The rules and the reports are the same as without a proxy.
 *
 * Runs in: carrel-egress.
 */
#pragma once

#include "egress/flow.h"
#include "egress/http_message.h"
#include "egress/reach.h"

enum proxy_kind { PROXY_NONE, PROXY_HTTP, PROXY_SOCKS };

enum proxy_stage {
	PROXY_FIRST, /* the first byte shows which protocol the client speaks */
	PROXY_METHODS,
	PROXY_PASSWORD,
	PROXY_REQUEST, /* of SOCKS */
	PROXY_HEAD,    /* of HTTP: a tunnel, or one of several requests */
	PROXY_RESOLVE,
	PROXY_REACH,
	PROXY_EXCHANGE, /* a request and its response: forward.h */
	PROXY_LINGER, /* it has its last answer; what it still sends is read, so that it can read the answer */
};

/* A client of the proxy, as long as it has no tunnel. */
struct proxy {
	struct doomed doomed;
	struct proxy *prev, *next;
	struct egress *egress;
	struct proxy_side {
		struct watch watch; /* the first member */
		struct proxy *proxy;
	} sides[SIDES];
	struct flow in[SIDES];  /* read from that side, and not yet checked */
	struct flow out[SIDES]; /* for that side */
	struct timer timer;
	struct waiter waiter;
	struct reach reach;
	enum proxy_kind kind;
	enum proxy_stage stage;
	struct proxy_target wanted; /* of the request that is being checked or answered */
	struct name *name;          /* NULL: it is an address */
	int rule;
	size_t lingered;
	/* HTTP without a tunnel: */
	struct http_head request;
	struct http_body bodies[SIDES]; /* of the request, of the response */
	struct proxy_target server;     /* what sides[OUTER] is connected to */
	int server_rule;
	struct target server_address;
	bool answered;     /* the response's head has come */
	bool server_keeps; /* its connection can have another request */
	bool used_before;  /* it had one already */
	bool client_keeps, client_ended;
	unsigned interim; /* responses that only say: wait */
	uint64_t bytes[SIDES];
	int64_t began_ns;
};

/* proxy_begin - @fd: accepted, taken. */
void proxy_begin(struct egress *eg, int fd);

/* proxy_cut - rule number @rule was taken back: reset the clients whose request it allowed, unless another rule does. */
void proxy_cut(struct egress *eg, int rule);

/* proxy_end - report every request that is still open. */
void proxy_end(struct egress *eg);

/* proxy_grant - tell a client that its tunnel begins. 0 or -errno. */
MUST_CHECK int proxy_grant(int fd, enum proxy_kind kind);

/* Why a request is not granted. */
struct proxy_refusal {
	enum proxy_kind kind;
	enum egress_decision decision;
	const char *name;
	uint16_t port;
	int rule, errnum;
	const char *bad; /* why it is no request; NULL: the rest says why it is refused */
};

/* proxy_refuse - answer with that and end the client; does not report to the supervisor. @fd: taken. */
void proxy_refuse(struct egress *eg, int fd, const struct proxy_refusal *refusal);

/* --- for proxy.c and forward.c --- */

/* proxy_deny - report the refusal to the supervisor, answer the client, and end it. */
void proxy_deny(struct proxy *p, enum egress_decision decision, int errnum, const char *why);

/* proxy_next - the request is over, and the client's next one may come, or is there. */
void proxy_next(struct proxy *p);

/* proxy_linger - the answer is written: end when the client has read it. proxy_drop - end at once, @reset: by a reset. */
void proxy_linger(struct proxy *p);
void proxy_drop(struct proxy *p, bool reset);

/*
 * http_message.h - HTTP/1 as a proxy reads it: heads of requests and responses, and where a body ends.
 *
 * Runs in: carrel-egress. PURE. May not: allocate.
 *
 * It refuses, and does not mend, what two readers could read in two ways: a line that does not end with CR LF, a blank before a
 * colon, a line that goes on in the next, a length beside an encoding, two lengths, an encoding that is not exactly
 * "chunked", a `Connection` that names a field which says where the message ends.
 *
 * See: RFC 9112 (2.2, 3.2, 6, 7.1, 11.2), RFC 9110 7.6.1 (fields of one connection).
 */
#pragma once

#include "egress/proxy_message.h"

enum {
	HTTP_HEAD_MAX = 16384, /* bytes of a head */
	HTTP_FIELDS_MAX = 128,
	HTTP_BUILT_MAX = HTTP_HEAD_MAX + 512, /* bytes of one that is built */
	HTTP_TRAILER_MAX = 4096, /* and of what stands beside the data of a chunked body */
};

enum http_framing { HTTP_NO_BODY, HTTP_LENGTH, HTTP_CHUNKED, HTTP_TO_END };

struct http_head {
	size_t size;      /* bytes, with the empty line */
	size_t fields_at; /* where the first field begins */
	bool old;         /* HTTP/1.0 */
	bool keep;        /* the connection may stay */
	enum http_framing framing;
	uint64_t length;
	/* of a request: */
	bool connect;                           /* CONNECT; otherwise absolute-form */
	bool asks_head;                         /* HEAD: its answer has no body */
	size_t method_size, path_at, path_size; /* size 0: "/" */
	struct proxy_target target;
	/* of a response: */
	unsigned status;
};

/*
 * http_request_parse, http_response_parse - the head at the front of @data. @asked_head: the request was HEAD.
 * 0; -EAGAIN: it is not whole; -EBADMSG; -E2BIG: it is too long; -EPROTONOSUPPORT: another scheme than http, or no address at
 * all (the target of a request to a server), or a change of the protocol (101).
 */
MUST_CHECK int http_request_parse(struct http_head *ret, const uint8_t *data, size_t size);
MUST_CHECK int http_response_parse(
	struct http_head *ret, const uint8_t *data, size_t size, bool asked_head);

/*
 * http_request_build, http_response_build - the head @h of @data as it is passed on: without the fields that are about one
 * connection, with the request's path, and the host of its target. @keep: whether the client's connection stays.
 * @ret: HTTP_BUILT_MAX bytes. Returns the size; 0: no room.
 */
MUST_CHECK size_t http_request_build(
	const struct http_head *h, const uint8_t *data, uint8_t *ret);
MUST_CHECK size_t http_response_build(
	const struct http_head *h, const uint8_t *data, bool keep, uint8_t *ret);

/* A body that is being passed on. */
struct http_body {
	enum http_framing framing;
	bool strict; /* a request's: no chunk extension, no trailer */
	bool ended;
	uint8_t state;
	unsigned digits; /* of a chunk's size */
	size_t beside;   /* bytes that are no data */
	uint64_t left;
};

/* http_body_begin - begin the body that follows the head @h. @strict: it is a request's. */
void http_body_begin(struct http_body *b, const struct http_head *h, bool strict);

/* http_body_pass - how many bytes at the front of @data belong to it; b->ended says whether it is over. -EBADMSG. */
MUST_CHECK ssize_t http_body_pass(struct http_body *b, const uint8_t *data, size_t size);

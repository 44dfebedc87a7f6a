/*
 * dns_message.h - DNS messages: queries of the session's programs, answers to them; queries upstream, their answers.
 *
 * Runs in: carrel-egress. PURE. May not: allocate, or follow aliases and pointers without a bound.
 *
 * Names are text in lower case, labels with dots between, no dot at the end: letters, digits, '-' and '_'. No host has a name
 * with any other byte ("odd"): it never goes upstream.
 *
 * See: RFC 1035 4 (messages), RFC 2308 (negative answers), RFC 6891 (EDNS), RFC 6761 (localhost).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "plan/netrule.h"

enum {
	DNS_QUERY_MAX = 512 + 11, /* bytes of a message that dns_query_build() makes, at most */
	DNS_ANSWER_MAX = 512,     /* bytes of one that dns_answer_build() makes */
	DNS_UPSTREAM_MAX = 4096,  /* bytes of an answer from upstream that are read */
	DNS_ADDRESSES_MAX = 8,    /* addresses of one family that are kept */
};

enum dns_type {
	DNS_A = 1,
	DNS_CNAME = 5,
	DNS_SOA = 6,
	DNS_AAAA = 28,
	DNS_OPT = 41,
	DNS_IN = 1
};

enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
};

/* What a program asked. */
struct dns_query {
	uint16_t id, type, class;
	bool wants_recursion;
	bool odd; /* the name has bytes that no host's name has: `name` has '?' for them */
	size_t question_size; /* bytes of the question in the message, from byte 12 on */
	char name[NETRULE_NAME_MAX + 1];
};

/*
 * dns_query_parse - @message: @size bytes. 0: *ret has all that matters of it; -EBADMSG: it needs no answer (it is no
 * query, or too short); -EINVAL: answer FORMERR or NOTIMP (@ret_rcode); only ret->id is known then.
 */
MUST_CHECK int dns_query_parse(
	struct dns_query *ret, const uint8_t *message, size_t size, enum dns_rcode *ret_rcode);

/*
 * dns_answer_build - the answer to @query, whose message is @message, into @ret (DNS_ANSWER_MAX bytes).
 * @query: its question is repeated; NULL: it could not be read, and @message has at least 12 bytes.
 * @address: network order, of IPv6 if the query is for AAAA, else of IPv4; or NULL: no answer, with a SOA that says for how long (@ttl, seconds).
 * Returns its size.
 */
size_t dns_answer_build(const struct dns_query *query, const uint8_t *message,
	enum dns_rcode rcode, const uint8_t *address, uint32_t ttl, uint8_t *ret);

/*
 * dns_query_build - a query for @name, @type, into @ret (DNS_QUERY_MAX bytes). @edns: it allows an answer of 1,232 bytes
 * (else 512). Returns its size; 0: @name is no name.
 */
size_t dns_query_build(
	uint16_t id, const char *name, enum dns_type type, bool edns, uint8_t *ret);

/* What upstream answered. */
struct dns_reply {
	enum dns_rcode rcode;
	bool truncated; /* ask for it again over TCP */
	size_t count;
	uint8_t addresses[DNS_ADDRESSES_MAX][16]; /* network order; of A the first 4 bytes */
	uint32_t
		ttl; /* seconds: the smallest on the way; of a negative answer its SOA's; 0: not known */
};

/*
 * dns_reply_parse - read @message as the answer to what dns_query_build() made of the same @id, @name and @type. It follows
 * aliases (CNAME) inside of the message, 16 at most; other records do not count.
 * Returns 0, or -EBADMSG: it is not the answer to this query; ignore it.
 */
MUST_CHECK int dns_reply_parse(struct dns_reply *ret, const uint8_t *message, size_t size,
	uint16_t id, const char *name, enum dns_type type);

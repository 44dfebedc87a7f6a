/*
 * egress_fuzz.c - any bytes as what carrel-egress reads of tools and of the network: a query, an answer, the first bytes
 * of a TLS connection. No crash, an end, and no other answer where the same bytes come in pieces.
 *
 * Runs in: the tests. As a fuzzer (no main of its own with CARREL_LIBFUZZER): tests/fuzz/fuzz.bats.
 * Without the define it is a plain program that runs over the files it is given, once each.
 *
 * The first byte chooses: bits 0-1 which reader, the others where the bytes are cut, or which of the proxy's readers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "egress/dns_message.h"
#include "egress/hello.h"
#include "egress/http_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *why)
{
	(void)fprintf(stderr, "egress_fuzz: %s\n", why);
	abort();
}

static void check_name(const char *name)
{
	size_t length = strnlen(name, NETRULE_NAME_MAX + 1);

	if (length > NETRULE_NAME_MAX)
		fail("a name without an end");
	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.?") != length)
		fail("a byte that no name has");
}

static void try_query(const uint8_t *data, size_t size)
{
	static const uint8_t address[16];
	uint8_t answer[DNS_ANSWER_MAX];
	struct dns_query q;
	struct dns_reply reply;
	enum dns_rcode rcode;
	int r = dns_query_parse(&q, data, size, &rcode);

	if (r == -EBADMSG)
		return;
	if (r < 0) {
		(void)dns_answer_build(NULL, data, rcode, NULL, 1, answer);
		return;
	}
	check_name(q.name);
	if (q.question_size > size - 12)
		fail("a question that is longer than its message");
	size_t built = dns_answer_build(&q, data, DNS_NOERROR, address, 1, answer);
	if (built > sizeof(answer))
		fail("an answer that is too long");
	/* What was answered is an answer to what was asked. */
	if (!q.odd && q.name[0] && q.type == DNS_A && q.class == DNS_IN &&
		(dns_reply_parse(&reply, answer, built, q.id, q.name, DNS_A) < 0 ||
			reply.count != 1))
		fail("an answer that is none");
}

static void try_reply(const uint8_t *data, size_t size)
{
	struct dns_reply reply;
	enum dns_type type = size > 0 && data[size - 1] & 1 ? DNS_A : DNS_AAAA;

	if (size < 2 ||
		dns_reply_parse(&reply, data, size, (uint16_t)(data[0] << 8 | data[1]),
			"example.org", type) < 0)
		return;
	if (reply.count > DNS_ADDRESSES_MAX)
		fail("more addresses than are kept");
}

/* Which bytes pass: how many, and the verdict at the end. */
static enum hello_verdict feed(
	const uint8_t *data, size_t size, size_t step, uint8_t *work, size_t *ret_passed)
{
	struct hello h = { .answered = true };
	enum hello_verdict verdict = HELLO_MORE;
	size_t passed = 0;

	for (size_t end = step < size ? step : size;;
		end = size - end > step ? end + step : size) {
		size_t cleared = 0;

		verdict = hello_check(
			&h, "example.org", data + passed, end - passed, work, &cleared);
		if (cleared > end - passed)
			fail("more is cleared than there is");
		passed += cleared;
		if ((verdict != HELLO_MORE && verdict != HELLO_GOOD) || end == size)
			break;
	}
	*ret_passed = verdict == HELLO_ENCRYPTED ? size : passed;
	return verdict;
}

static void try_hello(const uint8_t *data, size_t size, size_t step)
{
	uint8_t *work = malloc(HELLO_SIZE_MAX);
	size_t whole = 0, pieces = 0;

	if (!work)
		fail("no memory");
	if (size > 0) {
		enum hello_verdict a = feed(data, size, size, work, &whole);
		enum hello_verdict b = feed(data, size, step, work, &pieces);
		bool refused_a = a > HELLO_ENCRYPTED, refused_b = b > HELLO_ENCRYPTED;

		if (refused_a != refused_b || (a == HELLO_ENCRYPTED) != (b == HELLO_ENCRYPTED))
			fail("pieces are judged otherwise");
		if (!refused_a && whole != pieces)
			fail("of pieces others pass");
	}
	free(work);
}

static void check_target(const struct proxy_target *t)
{
	char text[300];
	struct proxy_target again;
	size_t size = proxy_authority_format(t, 0, text);

	if (proxy_authority_parse(&again, (const uint8_t *)text, size, 0) < 0 ||
		strcmp(again.host, t->host) != 0 || again.port != t->port)
		fail("a target that is read otherwise");
}

static void try_request(const uint8_t *data, size_t size)
{
	static uint8_t built[HTTP_BUILT_MAX];
	struct http_head h;

	if (http_request_parse(&h, data, size) < 0)
		return;
	if (h.size > size)
		fail("a head that is longer than what there is");
	check_target(&h.target);
	size_t n = h.connect ? 0 : http_request_build(&h, data, built);
	if (n > sizeof(built) || (n > 0 && memcmp(built + n - 4, "\r\n\r\n", 4) != 0))
		fail("a request without an end");
}

/* What is passed on ends where it ended before. */
static void try_response(const uint8_t *data, size_t size)
{
	static uint8_t built[HTTP_BUILT_MAX];
	struct http_head h, again;

	if (http_response_parse(&h, data, size, false) < 0)
		return;
	size_t n = http_response_build(&h, data, true, built);
	if (n == 0)
		return;
	if (http_response_parse(&again, built, n, false) < 0 || again.size != n ||
		again.status != h.status || again.framing != h.framing ||
		again.length != h.length)
		fail("a response that is read otherwise");
}

static size_t pass_body(
	const uint8_t *data, size_t size, size_t step, bool strict, bool *ret_bad)
{
	const struct http_head h = { .framing = HTTP_CHUNKED };
	struct http_body b;
	size_t passed = 0;

	*ret_bad = false;
	http_body_begin(&b, &h, strict);
	while (passed < size && !b.ended) {
		size_t most = size - passed < step ? size - passed : step;
		ssize_t n = http_body_pass(&b, data + passed, most);

		if (n < 0) {
			*ret_bad = true;
			return 0;
		}
		if ((size_t)n > most || ((size_t)n < most && !b.ended))
			fail("a part of a body");
		passed += (size_t)n;
	}
	return passed;
}

static void try_socks(const uint8_t *data, size_t size)
{
	struct proxy_target t = { 0 };
	uint8_t reply = 0;
	ssize_t n = socks_methods_parse(data, size, &reply);

	if (n > (ssize_t)size || socks_password_parse(data, size) > (ssize_t)size)
		fail("a message that is longer than what there is");
	n = socks_request_parse(&t, data, size, &reply);
	if (n > (ssize_t)size)
		fail("a request that is longer than what there is");
	if (n > 0 && reply == SOCKS_GRANTED)
		check_target(&t);
}

static void try_proxy(const uint8_t *data, size_t size, unsigned which)
{
	bool strict = which & 4, bad_whole, bad_pieces;

	switch (which & 3) {
	case 0:
		try_request(data, size);
		break;
	case 1:
		try_response(data, size);
		break;
	case 2:
		if (pass_body(data, size, size + 1, strict, &bad_whole) !=
				pass_body(data, size, 1 + (which >> 3), strict, &bad_pieces) ||
			bad_whole != bad_pieces)
			fail("a body in pieces is judged otherwise");
		break;
	default:
		try_socks(data, size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	/* A copy of its own: a byte read behind it is found. */
	uint8_t *copy = malloc(size > 1 ? size - 1 : 1);

	if (!copy)
		fail("no memory");
	memcpy(copy, data + 1, size - 1);
	switch (data[0] & 3) {
	case 0:
		try_query(copy, size - 1);
		break;
	case 1:
		try_reply(copy, size - 1);
		break;
	case 3:
		try_proxy(copy, size - 1, data[0] >> 2);
		break;
	default:
		try_hello(copy, size - 1, 1u + (data[0] >> 2));
	}
	free(copy);
	return 0;
}

#ifndef CARREL_LIBFUZZER
int main(int argc, char **argv)
{
	static uint8_t text[1 << 16];

	for (int i = 1; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

		if (n < 0) {
			(void)fprintf(
				stderr, "egress_fuzz: %s: %s\n", argv[i], strerror(errno));
			return 1;
		}
		(void)close(fd);
		(void)LLVMFuzzerTestOneInput(text, (size_t)n);
	}
	return 0;
}
#endif

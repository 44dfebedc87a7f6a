/*
 * egress_dns_test.c - egress/dns_message: what a query is, what is answered, what is taken for an answer.
 *
 * Runs in: the tests; no privileges.
 */
/* ctest: as=any */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "egress/dns_message.h"

enum { HEAD = 12 };

/* A message as it is put together by a test; a copy of its exact size is read, so that a byte behind it is found. */
struct message {
	uint8_t data[4096];
	size_t size;
};

static void add(struct message *m, const void *data, size_t size)
{
	memcpy(m->data + m->size, data, size);
	m->size += size;
}

static void add16(struct message *m, unsigned value)
{
	const uint8_t bytes[] = { (uint8_t)(value >> 8), (uint8_t)value };

	add(m, bytes, 2);
}

static void add_name(struct message *m, const char *name)
{
	for (;;) {
		uint8_t length = (uint8_t)strcspn(name, ".");

		add(m, &length, 1);
		add(m, name, length);
		if (!name[length])
			break;
		name += length + 1;
	}
	add(m, "", 1);
}

static struct message head(
	unsigned flags, unsigned questions, unsigned answers, unsigned authorities)
{
	struct message m = { .size = 0 };

	add16(&m, 0x1234);
	add16(&m, flags);
	add16(&m, questions);
	add16(&m, answers);
	add16(&m, authorities);
	add16(&m, 0);
	return m;
}

static struct message question(unsigned flags, const char *name, unsigned type)
{
	struct message m = head(flags, 1, 0, 0);

	add_name(&m, name);
	add16(&m, type);
	add16(&m, DNS_IN);
	return m;
}

static int parse(const struct message *m, struct dns_query *query, enum dns_rcode *rcode)
{
	uint8_t *copy = malloc(m->size ? m->size : 1);

	assert_non_null(copy);
	memcpy(copy, m->data, m->size);
	int r = dns_query_parse(query, copy, m->size, rcode);
	free(copy);
	return r;
}

static void test_query(void **state)
{
	struct message m = question(0x0100, "Www.Example.ORG", DNS_A);
	struct dns_query q;
	enum dns_rcode rcode;

	(void)state;
	assert_int_equal(parse(&m, &q, &rcode), 0);
	assert_string_equal(q.name, "www.example.org");
	assert_int_equal(q.id, 0x1234);
	assert_int_equal(q.type, DNS_A);
	assert_int_equal(q.class, DNS_IN);
	assert_false(q.odd);
	assert_true(q.wants_recursion);
	assert_int_equal(q.question_size, m.size - HEAD);
	/* What follows the question does not matter. */
	add(&m, "\0\0\x29\x04\xd0\0\0\0\0\0\0", 11);
	assert_int_equal(parse(&m, &q, &rcode), 0);
	for (size_t size = 0; size < m.size - 11; size++) {
		struct message cut = m;

		cut.size = size;
		assert_int_equal(parse(&cut, &q, &rcode), size < HEAD ? -EBADMSG : -EINVAL);
	}
}

static void test_odd(void **state)
{
	static const char *const bytes[] = { "a.b", "a\0b", "a b", "\xc3\xa9", "*" };
	static const size_t sizes[] = { 3, 3, 3, 2, 1 };

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct message m = head(0x0100, 1, 0, 0);
		struct dns_query q;
		enum dns_rcode rcode;
		uint8_t length = (uint8_t)sizes[i];

		add(&m, &length, 1);
		add(&m, bytes[i], length);
		add_name(&m, "example");
		add16(&m, DNS_A);
		add16(&m, DNS_IN);
		assert_int_equal(parse(&m, &q, &rcode), 0);
		assert_true(q.odd);
		assert_non_null(strchr(q.name, '?'));
	}
}

static void test_no_query(void **state)
{
	struct message answer = question(0x8180, "example.org", DNS_A);
	struct message update = question(0x2800, "example.org", DNS_A);
	struct message none = head(0x0100, 0, 0, 0), two = head(0x0100, 2, 0, 0);
	struct message loop = head(0x0100, 1, 0, 0), forward = head(0x0100, 1, 0, 0);
	struct message labels = head(0x0100, 1, 0, 0);
	struct dns_query q = { 0 };
	enum dns_rcode rcode;

	(void)state;
	assert_int_equal(parse(&answer, &q, &rcode), -EBADMSG);
	assert_int_equal(parse(&update, &q, &rcode), -EINVAL);
	assert_int_equal(rcode, DNS_NOTIMP);
	assert_int_equal(parse(&none, &q, &rcode), -EINVAL);
	assert_int_equal(rcode, DNS_FORMERR);
	assert_int_equal(parse(&two, &q, &rcode), -EINVAL);
	add(&loop, "\xc0\x0c\0\1\0\1", 6);
	assert_int_equal(parse(&loop, &q, &rcode), -EINVAL);
	add(&forward, "\xc0\x10\0\1\0\1\0\0\0\0", 10);
	assert_int_equal(parse(&forward, &q, &rcode), -EINVAL);
	for (int i = 0; i < 128; i++)
		add(&labels, "\1a", 2);
	add(&labels, "\0\0\1\0\1", 5);
	assert_int_equal(parse(&labels, &q, &rcode), -EINVAL); /* 255 bytes as text */
	labels.size = HEAD + 127 * 2;
	add(&labels, "\0\0\1\0\1", 5);
	assert_int_equal(parse(&labels, &q, &rcode), 0);
	assert_int_equal(strlen(q.name), NETRULE_NAME_MAX);
}

static void test_answer(void **state)
{
	static const uint8_t address[4] = { 198, 18, 0, 1 }, six[16] = { 0xfd, [15] = 7 };
	struct message m = question(0x0100, "example.org", DNS_A);
	struct dns_query q;
	struct dns_reply reply;
	enum dns_rcode rcode;
	uint8_t out[DNS_ANSWER_MAX];

	(void)state;
	assert_int_equal(parse(&m, &q, &rcode), 0);
	size_t size = dns_answer_build(&q, m.data, DNS_NOERROR, address, 60, out);
	assert_int_equal(dns_reply_parse(&reply, out, size, 0x1234, "example.org", DNS_A), 0);
	assert_int_equal(reply.count, 1);
	assert_memory_equal(reply.addresses[0], address, 4);
	assert_int_equal(reply.ttl, 60);
	m = question(0x0100, "example.org", DNS_AAAA);
	assert_int_equal(parse(&m, &q, &rcode), 0);
	size = dns_answer_build(&q, m.data, DNS_NOERROR, six, 60, out);
	assert_int_equal(
		dns_reply_parse(&reply, out, size, 0x1234, "example.org", DNS_AAAA), 0);
	assert_int_equal(reply.count, 1);
	assert_memory_equal(reply.addresses[0], six, sizeof(six));
	m = question(0x0100, "example.org", DNS_A);
	assert_int_equal(parse(&m, &q, &rcode), 0);
	size = dns_answer_build(&q, m.data, DNS_NXDOMAIN, NULL, 7, out);
	assert_int_equal(dns_reply_parse(&reply, out, size, 0x1234, "example.org", DNS_A), 0);
	assert_int_equal(reply.rcode, DNS_NXDOMAIN);
	assert_int_equal(reply.count, 0);
	assert_int_equal(reply.ttl, 7);
	assert_int_equal(dns_answer_build(NULL, m.data, DNS_FORMERR, NULL, 0, out), HEAD);
	assert_int_equal(out[3] & 0xf, DNS_FORMERR);
}

static void test_build(void **state)
{
	uint8_t out[DNS_QUERY_MAX];
	struct dns_query q;
	enum dns_rcode rcode;
	char name[300];

	(void)state;
	size_t size = dns_query_build(7, "a.example.org", DNS_AAAA, true, out);
	assert_int_equal(dns_query_parse(&q, out, size, &rcode), 0);
	assert_string_equal(q.name, "a.example.org");
	assert_int_equal(q.type, DNS_AAAA);
	assert_int_equal(dns_query_build(7, "a.example.org", DNS_AAAA, false, out), size - 11);
	assert_int_equal(dns_query_build(7, "", DNS_A, true, out), 0);
	assert_int_equal(dns_query_build(7, "a..b", DNS_A, true, out), 0);
	assert_int_equal(dns_query_build(7, "a.", DNS_A, true, out), 0);
	memset(name, 'a', 64);
	name[64] = '\0';
	assert_int_equal(dns_query_build(7, name, DNS_A, true, out), 0);
	for (int i = 0; i < 254; i++)
		name[i] = i % 2 ? '.' : 'a';
	name[253] = '\0';
	assert_true(dns_query_build(7, name, DNS_A, true, out) > 0);
	name[253] = '.';
	name[254] = 'a';
	name[255] = '\0';
	assert_int_equal(dns_query_build(7, name, DNS_A, true, out), 0);
}

static void add_record(struct message *m, const char *owner, unsigned type, unsigned ttl,
	const void *data, size_t size)
{
	if (owner)
		add_name(m, owner);
	else
		add(m, "\xc0\x0c", 2);
	add16(m, type);
	add16(m, DNS_IN);
	add16(m, ttl >> 16);
	add16(m, ttl & 0xffff);
	add16(m, (unsigned)size);
	add(m, data, size);
}

static void set_counts(struct message *m, unsigned answers, unsigned authorities)
{
	m->data[7] = (uint8_t)answers;
	m->data[9] = (uint8_t)authorities;
}

static int reply_of(const struct message *m, struct dns_reply *reply)
{
	uint8_t *copy = malloc(m->size ? m->size : 1);

	assert_non_null(copy);
	memcpy(copy, m->data, m->size);
	int r = dns_reply_parse(reply, copy, m->size, 0x1234, "example.org", DNS_A);
	free(copy);
	return r;
}

static void test_reply(void **state)
{
	struct message m = question(0x8180, "example.org", DNS_A), alias = { .size = 0 };
	struct dns_reply reply;

	(void)state;
	add_name(&alias, "b.example");
	/* The alias behind what it leads to, a stranger between them, and one of another type. */
	add_record(&m, "b.example", DNS_A, 30, "\1\1\1\1", 4);
	add_record(&m, "stranger.example", DNS_A, 1, "\x7f\0\0\1", 4);
	add_record(&m, NULL, DNS_CNAME, 20, alias.data, alias.size);
	add_record(&m, "b.example", DNS_AAAA, 1, "\1\1\1\1", 4);
	add_record(&m, "b.example", DNS_A, 1, "\1\1\1\1\1", 5);
	set_counts(&m, 5, 0);
	assert_int_equal(reply_of(&m, &reply), 0);
	assert_int_equal(reply.count, 1);
	assert_memory_equal(reply.addresses[0], "\1\1\1\1", 4);
	assert_int_equal(reply.ttl, 20);
	/* More than are kept. */
	for (int i = 0; i < 20; i++)
		add_record(&m, "b.example", DNS_A, 30, "\2\2\2\2", 4);
	set_counts(&m, 25, 0);
	assert_int_equal(reply_of(&m, &reply), 0);
	assert_int_equal(reply.count, DNS_ADDRESSES_MAX);
	/* Cut anywhere: what is there counts, nothing behind it is read. */
	for (size_t size = 0; size < m.size; size++) {
		struct message cut = m;

		cut.size = size;
		if (reply_of(&cut, &reply) == 0)
			assert_true(reply.count <= DNS_ADDRESSES_MAX);
	}
}

static void test_alias_loop(void **state)
{
	struct message m = question(0x8180, "example.org", DNS_A), a = { .size = 0 },
		       b = { .size = 0 };
	struct dns_reply reply;

	(void)state;
	add_name(&a, "example.org");
	add_name(&b, "b.example");
	add_record(&m, NULL, DNS_CNAME, 20, b.data, b.size);
	add_record(&m, "b.example", DNS_CNAME, 20, a.data, a.size);
	set_counts(&m, 2, 0);
	assert_int_equal(reply_of(&m, &reply), 0);
	assert_int_equal(reply.count, 0);
}

static void test_negative(void **state)
{
	struct message m = question(0x8183, "example.org", DNS_A), soa = { .size = 0 };
	struct dns_reply reply;

	(void)state;
	add(&soa, "\0\0", 2);
	for (int i = 0; i < 5; i++)
		add(&soa, "\0\0\0\x2a", 4);
	add_record(&m, "org", DNS_SOA, 900, soa.data, soa.size);
	set_counts(&m, 0, 1);
	assert_int_equal(reply_of(&m, &reply), 0);
	assert_int_equal(reply.rcode, DNS_NXDOMAIN);
	assert_int_equal(reply.ttl, 42);
}

static void test_not_the_answer(void **state)
{
	struct message other_name = question(0x8180, "example.com", DNS_A);
	struct message other_type = question(0x8180, "example.org", DNS_AAAA);
	struct message query = question(0x0180, "example.org", DNS_A);
	struct message good = question(0x8180, "eXample.oRg", DNS_A);
	struct message other_id = good, none = head(0x8180, 0, 0, 0),
		       formerr = head(0x8181, 0, 0, 0);
	struct dns_reply reply;

	(void)state;
	other_id.data[0] ^= 1;
	assert_int_equal(reply_of(&good, &reply), 0);
	assert_int_equal(reply_of(&other_name, &reply), -EBADMSG);
	assert_int_equal(reply_of(&other_type, &reply), -EBADMSG);
	assert_int_equal(reply_of(&query, &reply), -EBADMSG);
	assert_int_equal(reply_of(&other_id, &reply), -EBADMSG);
	assert_int_equal(reply_of(&none, &reply), -EBADMSG);
	assert_int_equal(reply_of(&formerr, &reply), 0);
	assert_int_equal(reply.rcode, DNS_FORMERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_query),
		cmocka_unit_test(test_odd),
		cmocka_unit_test(test_no_query),
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_build),
		cmocka_unit_test(test_reply),
		cmocka_unit_test(test_alias_loop),
		cmocka_unit_test(test_negative),
		cmocka_unit_test(test_not_the_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

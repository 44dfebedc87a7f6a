/*
 * dns_message.c - see dns_message.h.
 *
 * Runs in: carrel-egress. PURE.
 */
#include "egress/dns_message.h"

#include <errno.h>
#include <string.h>

enum {
	HEAD = 12,         /* bytes of a message's header */
	JUMPS_MAX = 32,    /* compression pointers in one name */
	ALIASES_MAX = 16,  /* aliases, one after the other */
	RECORDS_MAX = 256, /* records of one section that are read */
	FLAG_ANSWER = 0x8000,
	FLAG_TRUNCATED = 0x0200,
	FLAG_WANTED = 0x0100,
	FLAG_OFFERED = 0x0080,
	OPCODE = 0x7800,
	POINTER = 0xc0,
};

/* A message, and how far it was read. */
struct reader {
	const uint8_t *data;
	size_t size, at;
	bool bad; /* something would have been outside of it */
};

static unsigned get8(struct reader *r)
{
	if (r->bad || r->at >= r->size) {
		r->bad = true;
		return 0;
	}
	return r->data[r->at++];
}

static uint16_t get16(struct reader *r)
{
	unsigned high = get8(r);

	return (uint16_t)(high << 8 | get8(r));
}

static uint32_t get32(struct reader *r)
{
	uint32_t high = get16(r);

	return high << 16 | get16(r);
}

static void skip(struct reader *r, size_t count)
{
	if (r->bad || count > r->size - r->at)
		r->bad = true;
	else
		r->at += count;
}

/* One byte of a label in lower case; '?' for a byte that no name has. */
static char plain(unsigned c, bool *odd)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')
		return (char)c;
	*odd = true;
	return '?';
}

/*
 * Read a name from r->at on, and move r->at behind it. Each pointer must lead further back than the one before, so that
 * the reading ends.
 */
static void get_name(struct reader *r, char ret[NETRULE_NAME_MAX + 1], bool *odd)
{
	struct reader in = *r;
	size_t used = 0, lowest = r->at;
	bool jumped = false;

	for (unsigned jumps = 0;;) {
		size_t start = in.at;
		unsigned length = get8(&in);

		if (!in.bad && (length & POINTER) == POINTER) {
			size_t target = (length & 0x3f) << 8 | get8(&in);

			if (!jumped)
				r->at = in.at;
			jumped = true;
			in.bad |= target >= lowest || target < HEAD || ++jumps > JUMPS_MAX;
			in.at = lowest = target;
		} else if (!in.bad && length == 0) {
			break;
		} else if (in.bad || length > 63 ||
			used + (used > 0) + length > NETRULE_NAME_MAX) {
			in.bad = true;
		} else {
			if (used > 0)
				ret[used++] = '.';
			for (; length > 0; length--)
				ret[used++] = plain(get8(&in), odd);
			lowest = start < lowest ? start : lowest;
		}
		if (in.bad) {
			r->bad = true;
			break;
		}
	}
	ret[used] = '\0';
	if (!jumped)
		r->at = in.at;
}

/* --- what the session asks --------------------------------------------------------------------- */

int dns_query_parse(
	struct dns_query *ret, const uint8_t *message, size_t size, enum dns_rcode *ret_rcode)
{
	struct reader r = { .data = message, .size = size };
	struct dns_query q = { .id = get16(&r) };
	uint16_t flags = get16(&r), questions = get16(&r);

	skip(&r, 6); /* what follows the question does not change our answers */
	if (r.bad || flags & FLAG_ANSWER)
		return -EBADMSG;
	ret->id = q.id;
	*ret_rcode = flags & OPCODE ? DNS_NOTIMP : DNS_FORMERR;
	if (flags & OPCODE || questions != 1)
		return -EINVAL;
	get_name(&r, q.name, &q.odd);
	q.type = get16(&r);
	q.class = get16(&r);
	/* A pointer in a question has nothing to point back to. */
	if (r.bad || r.at - HEAD > NETRULE_NAME_MAX + 2 + 4)
		return -EINVAL;
	q.wants_recursion = flags & FLAG_WANTED;
	q.question_size = r.at - HEAD;
	*ret = q;
	return 0;
}

/* Where a message is written: the caller has made it large enough. */
struct put {
	uint8_t *data;
	size_t size;
};

static void put16(struct put *p, unsigned value)
{
	p->data[p->size++] = (uint8_t)(value >> 8);
	p->data[p->size++] = (uint8_t)value;
}

static void put32(struct put *p, uint32_t value)
{
	put16(p, value >> 16);
	put16(p, value & 0xffff);
}

static void put_bytes(struct put *p, const void *data, size_t size)
{
	memcpy(p->data + p->size, data, size);
	p->size += size;
}

/* A record for the name of the question, which stands at byte 12. */
static void put_record(struct put *p, unsigned type, uint32_t ttl, size_t size)
{
	put16(p, POINTER << 8 | HEAD);
	put16(p, type);
	put16(p, DNS_IN);
	put32(p, ttl);
	put16(p, (unsigned)size);
}

/* A SOA that belongs to no zone: it says how long "there is none" holds (RFC 2308 5). Two names, both the root, and five numbers. */
static void put_soa(struct put *p, uint32_t ttl)
{
	put_record(p, DNS_SOA, ttl, 2 + 5 * 4);
	put16(p, 0);
	for (int i = 0; i < 5; i++)
		put32(p, i == 0 ? 1 : ttl);
}

size_t dns_answer_build(const struct dns_query *query, const uint8_t *message,
	enum dns_rcode rcode, const uint8_t *address, uint32_t ttl, uint8_t *ret)
{
	struct put p = { .data = ret };
	bool negative = query && !address && (rcode == DNS_NOERROR || rcode == DNS_NXDOMAIN);
	unsigned flags = FLAG_ANSWER | FLAG_OFFERED | (unsigned)rcode;

	put_bytes(&p, message, 2);
	if (query && query->wants_recursion)
		flags |= FLAG_WANTED;
	else if (!query)
		flags |= (unsigned)(message[2] << 8) & (OPCODE | FLAG_WANTED);
	put16(&p, flags);
	put16(&p, query != NULL);
	put16(&p, query && address);
	put16(&p, negative);
	put16(&p, 0);
	if (query)
		put_bytes(&p, message + HEAD, query->question_size);
	if (query && address) {
		size_t size = query->type == DNS_AAAA ? 16 : 4;

		put_record(&p, query->type == DNS_AAAA ? DNS_AAAA : DNS_A, ttl, size);
		put_bytes(&p, address, size);
	} else if (negative) {
		put_soa(&p, ttl);
	}
	return p.size;
}

/* --- what is asked upstream --------------------------------------------------------------------- */

/* Its size; 0: it is no name. */
static size_t put_name(struct put *p, const char *name)
{
	size_t start = p->size;

	if (!*name || strlen(name) > NETRULE_NAME_MAX)
		return 0;
	for (;;) {
		size_t length = strcspn(name, ".");

		if (length == 0 || length > 63)
			return 0;
		p->data[p->size++] = (uint8_t)length;
		put_bytes(p, name, length);
		if (!name[length])
			break;
		name += length + 1;
	}
	p->data[p->size++] = 0;
	return p->size - start;
}

size_t dns_query_build(
	uint16_t id, const char *name, enum dns_type type, bool edns, uint8_t *ret)
{
	struct put p = { .data = ret };

	put16(&p, id);
	put16(&p, FLAG_WANTED);
	put16(&p, 1);
	put32(&p, 0);
	put16(&p, edns);
	if (put_name(&p, name) == 0)
		return 0;
	put16(&p, type);
	put16(&p, DNS_IN);
	if (edns) { /* the root's, RFC 6891 6.1.2: 1,232 bytes go through every network in one piece */
		p.data[p.size++] = 0;
		put16(&p, DNS_OPT);
		put16(&p, 1232);
		put32(&p, 0);
		put16(&p, 0);
	}
	return p.size;
}

/* --- what upstream says ------------------------------------------------------------------------- */

struct record {
	char owner[NETRULE_NAME_MAX + 1];
	uint16_t type, class;
	uint32_t ttl;
	size_t at, size; /* its data in the message */
};

static bool get_record(struct reader *r, struct record *ret)
{
	bool odd = false;

	get_name(r, ret->owner, &odd);
	ret->type = get16(r);
	ret->class = get16(r);
	ret->ttl = get32(r);
	if (ret->ttl > INT32_MAX) /* RFC 2181 8 */
		ret->ttl = 0;
	ret->size = get16(r);
	ret->at = r->at;
	skip(r, ret->size);
	return !r->bad && !odd;
}

static void least(uint32_t *ttl, uint32_t other, bool *known)
{
	if (!*known || other < *ttl)
		*ttl = other;
	*known = true;
}

/* How long a negative answer holds: the smaller of its SOA's time to live and the last of its numbers. */
static uint32_t negative_ttl(struct reader r, unsigned count)
{
	struct record record;

	for (unsigned i = 0; i < count && i < RECORDS_MAX && !r.bad; i++) {
		if (!get_record(&r, &record) || record.type != DNS_SOA || record.size < 22)
			continue;
		struct reader last = {
			.data = r.data, .size = r.size, .at = record.at + record.size - 4
		};
		uint32_t minimum = get32(&last);

		return minimum < record.ttl ? minimum : record.ttl;
	}
	return 0;
}

/* Read the records of @owner: keep the addresses; if there are none, put the alias into @owner. */
static bool follow(struct reader r, unsigned count, char owner[NETRULE_NAME_MAX + 1],
	enum dns_type type, struct dns_reply *reply, bool *known)
{
	char alias[NETRULE_NAME_MAX + 1] = "";
	size_t size = type == DNS_A ? 4 : 16;
	struct record record;

	for (unsigned i = 0; i < count && i < RECORDS_MAX && !r.bad; i++) {
		if (!get_record(&r, &record) || record.class != DNS_IN ||
			strcmp(record.owner, owner) != 0)
			continue;
		if (record.type == type && record.size == size &&
			reply->count < DNS_ADDRESSES_MAX) {
			memcpy(reply->addresses[reply->count++], r.data + record.at, size);
			least(&reply->ttl, record.ttl, known);
		} else if (record.type == DNS_CNAME && !alias[0]) {
			struct reader data = r;
			bool odd = false;

			data.at = record.at;
			get_name(&data, alias, &odd);
			if (data.bad || odd)
				return false;
			least(&reply->ttl, record.ttl, known);
		}
	}
	if (reply->count > 0 || !alias[0])
		return false;
	memcpy(owner, alias, sizeof(alias));
	return true;
}

/* Skip the records of one section. */
static void skip_records(struct reader *r, unsigned count)
{
	struct record record;

	for (unsigned i = 0; i < count && !r->bad; i++)
		(void)get_record(r, &record);
}

int dns_reply_parse(struct dns_reply *ret, const uint8_t *message, size_t size, uint16_t id,
	const char *name, enum dns_type type)
{
	struct reader r = { .data = message, .size = size };
	struct dns_reply reply = { 0 };
	char owner[NETRULE_NAME_MAX + 1];
	bool odd = false, known = false;
	uint16_t asked = get16(&r), flags = get16(&r), questions = get16(&r);
	uint16_t answers = get16(&r), authorities = get16(&r);

	skip(&r, 2);
	if (r.bad || asked != id || !(flags & FLAG_ANSWER) || flags & OPCODE)
		return -EBADMSG;
	reply.rcode = flags & 0xf;
	reply.truncated = flags & FLAG_TRUNCATED;
	/* A server that could not read the question does not repeat it. */
	if (questions == 0 && (reply.rcode == DNS_FORMERR || reply.rcode == DNS_NOTIMP)) {
		*ret = reply;
		return 0;
	}
	get_name(&r, owner, &odd);
	uint16_t asked_type = get16(&r), asked_class = get16(&r);
	if (questions != 1 || r.bad || odd || strcmp(owner, name) != 0 || asked_type != type ||
		asked_class != DNS_IN)
		return -EBADMSG;
	if (reply.rcode == DNS_NOERROR && !reply.truncated)
		for (int i = 0; i < ALIASES_MAX; i++)
			if (!follow(r, answers, owner, type, &reply, &known))
				break;
	if (reply.count == 0) {
		skip_records(&r, answers);
		reply.ttl = negative_ttl(r, authorities);
	}
	*ret = reply;
	return 0;
}

/*
 * hello.c - see hello.h.
 *
 * Runs in: carrel-egress. PURE.
 */
#include "egress/hello.h"

#include <stdbool.h>
#include <string.h>

enum {
	RECORD_HEAD = 5,
	RECORD_MAX = 16384,
	RECORDS_MAX = 64, /* records that one message may lie in */
	MESSAGE_HEAD = 4,
	BEGINNING = 6, /* bytes by which a ClientHello is known, begins_hello() */
	CHANGE_CIPHER_SPEC = 20,
	ALERT = 21,
	HANDSHAKE = 22,
	APPLICATION_DATA = 23,
	CLIENT_HELLO = 1,
	SERVER_NAME = 0,
	ENCRYPTED_HELLO = 0xfe0d,
	ENCRYPTED_NAME = 0xffce, /* the draft before it */
};

/* Bytes of one structure; a read beyond its end makes it bad. */
struct part {
	const uint8_t *at;
	size_t left;
	bool bad;
};

static size_t get(struct part *p, unsigned bytes)
{
	size_t value = 0;

	if (p->bad || p->left < bytes) {
		p->bad = true;
		return 0;
	}
	for (; bytes > 0; bytes--, p->left--)
		value = value << 8 | *p->at++;
	return value;
}

static struct part cut(struct part *p, size_t size)
{
	struct part inner = { .at = p->at, .left = size, .bad = p->bad || size > p->left };

	if (inner.bad) {
		p->bad = true;
		return (struct part){ .bad = true };
	}
	p->at += size;
	p->left -= size;
	return inner;
}

/* A vector whose length stands before it in @bytes bytes. */
static struct part cut_vector(struct part *p, unsigned bytes)
{
	return cut(p, get(p, bytes));
}

/* server_name: one list, and in it one host_name. */
static bool read_server_name(struct part extension, char ret[HELLO_NAME_MAX + 1])
{
	struct part list = cut_vector(&extension, 2);
	size_t type = get(&list, 1);
	struct part name = cut_vector(&list, 2);

	if (list.bad || list.left > 0 || extension.left > 0 || type != 0 || name.left == 0 ||
		name.left > HELLO_NAME_MAX || memchr(name.at, 0, name.left))
		return false;
	memcpy(ret, name.at, name.left);
	ret[name.left] = '\0';
	for (char *c = ret; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	return true;
}

static enum hello_verdict read_extensions(
	struct hello *h, const char *expected, struct part extensions)
{
	bool named = false;

	while (extensions.left > 0 && !extensions.bad) {
		size_t type = get(&extensions, 2);
		struct part extension = cut_vector(&extensions, 2);

		if (extensions.bad)
			break;
		if (type == ENCRYPTED_HELLO || type == ENCRYPTED_NAME)
			return HELLO_HIDDEN;
		if (type != SERVER_NAME)
			continue;
		if (named || !read_server_name(extension, h->name)) {
			h->name[0] = '\0';
			return HELLO_NO_NAME;
		}
		named = true;
	}
	if (extensions.bad)
		return HELLO_NO_TLS;
	if (!named)
		return HELLO_NO_NAME;
	size_t length = strlen(h->name); /* some write the dot of the root */
	if (length > 1 && h->name[length - 1] == '.')
		h->name[length - 1] = '\0';
	if (strcmp(h->name, expected) != 0)
		return HELLO_OTHER_NAME;
	h->name[0] = '\0';
	return HELLO_GOOD;
}

/* The body of a ClientHello. */
static enum hello_verdict read_hello(struct hello *h, const char *expected, struct part body)
{
	size_t version = get(&body, 2);

	(void)cut(&body, 32);
	struct part session = cut_vector(&body, 1);
	struct part ciphers = cut_vector(&body, 2);
	struct part compressions = cut_vector(&body, 1);

	if (body.bad || version >> 8 != 3 || session.left > 32 || ciphers.left < 2 ||
		compressions.left < 1)
		return HELLO_NO_TLS;
	if (body.left == 0) /* as before RFC 3546 */
		return HELLO_NO_NAME;
	struct part extensions = cut_vector(&body, 2);
	if (body.bad || body.left > 0)
		return HELLO_NO_TLS;
	return read_extensions(h, expected, extensions);
}

/* Read a record's header. False: it is none. */
static bool read_record(struct part *p, size_t *ret_type, size_t *ret_size)
{
	size_t type = get(p, 1), version = get(p, 2), size = get(p, 2);

	*ret_type = type;
	*ret_size = size;
	return type >= CHANGE_CIPHER_SPEC && type <= APPLICATION_DATA && version >> 8 == 3 &&
		size > 0 && size <= RECORD_MAX + 2048;
}

/*
 * Gather one handshake message from the records in @p into @ret (@room bytes). @ret_size: of the message; 0: not known
 * yet. Returns how many of its bytes are there. *@ret_used: how many bytes of @p these took, in whole records; 0 if the
 * last record is not whole: its missing bytes would belong to this message or to a second one.
 */
static size_t gather(struct part p, uint8_t *ret, size_t room, size_t *ret_size,
	size_t *ret_used, enum hello_verdict *ret_verdict)
{
	const uint8_t *start = p.at;
	size_t have = 0, wanted = 0;
	bool complete = true;

	*ret_verdict = HELLO_MORE;
	for (int records = 0; p.left >= RECORD_HEAD; records++) {
		size_t type, size;

		if (records == RECORDS_MAX || !read_record(&p, &type, &size) ||
			type != HANDSHAKE) {
			*ret_verdict = HELLO_NO_TLS;
			break;
		}
		bool whole = size <= p.left;
		struct part bytes = cut(&p, whole ? size : p.left);
		size_t kept = bytes.left < room - have ? bytes.left : room - have;

		memcpy(ret + have, bytes.at, kept);
		have += kept;
		if (have >= MESSAGE_HEAD)
			wanted = MESSAGE_HEAD +
				((size_t)ret[1] << 16 | (size_t)ret[2] << 8 | ret[3]);
		if (kept < bytes.left || (have >= BEGINNING && wanted > room)) {
			*ret_verdict = HELLO_NO_TLS;
			break;
		}
		if (!whole)
			complete = false;
		if (!whole || (wanted > 0 && have >= wanted))
			break;
	}
	*ret_used = complete ? (size_t)(p.at - start) : 0;
	*ret_size = wanted;
	return have;
}

/* Whether a message begins as a ClientHello does. Random bytes do so once in thousands of millions. */
static bool begins_hello(const uint8_t *message)
{
	return message[0] == CLIENT_HELLO && message[1] == 0 &&
		((size_t)message[2] << 8) < HELLO_SIZE_MAX && message[4] == 3 &&
		message[5] <= 4;
}

/* Check the handshake records at the front of @p. @message: HELLO_SIZE_MAX bytes to work in. */
static enum hello_verdict check_handshake(struct hello *h, const char *expected, struct part p,
	uint8_t *message, size_t *ret_used)
{
	enum hello_verdict broken;
	size_t size, used;
	size_t have = gather(p, message, HELLO_SIZE_MAX, &size, &used, &broken);

	/* After ChangeCipherSpec a record of TLS 1.2 is encrypted. */
	if (h->seen && have >= BEGINNING && !begins_hello(message)) {
		if (h->changed)
			return HELLO_ENCRYPTED;
		*ret_used = 0; /* a certificate, a key: record by record */
		return HELLO_GOOD;
	}
	if (have > 0 && message[0] != CLIENT_HELLO && !h->seen)
		return HELLO_NO_TLS;
	if (h->seen && have < BEGINNING && broken == HELLO_MORE)
		return HELLO_MORE;
	if (broken != HELLO_MORE)
		return broken;
	/* Bytes after it in the same record would be a second message, which was not checked. */
	if (size > 0 && have > size)
		return HELLO_NO_TLS;
	if (size == 0 || have < size || used == 0)
		return HELLO_MORE;
	if (h->seen && !h->answered)
		return HELLO_NO_TLS;
	struct part body = { .at = message + MESSAGE_HEAD, .left = size - MESSAGE_HEAD };
	*ret_used = used;
	return read_hello(h, expected, body);
}

/* Check what is at the front of @p. *@ret_used: if it is good, how many bytes of it are cleared. */
static enum hello_verdict check_front(
	struct hello *h, const char *expected, struct part p, uint8_t *work, size_t *ret_used)
{
	struct part head = p;
	size_t type, size;

	if (p.left > 0 && !h->seen && p.at[0] != HANDSHAKE)
		return HELLO_NO_TLS;
	if (p.left < RECORD_HEAD)
		return HELLO_MORE;
	if (!read_record(&head, &type, &size))
		return HELLO_NO_TLS;
	if (type == APPLICATION_DATA)
		return HELLO_ENCRYPTED;
	*ret_used = 0;
	if (type == HANDSHAKE) {
		enum hello_verdict verdict = check_handshake(h, expected, p, work, ret_used);

		if (verdict != HELLO_GOOD || *ret_used > 0) {
			h->seen |= verdict == HELLO_GOOD;
			return verdict;
		}
	}
	if (size > head.left)
		return HELLO_MORE;
	h->changed |= type == CHANGE_CIPHER_SPEC;
	*ret_used = RECORD_HEAD + size;
	return HELLO_GOOD;
}

enum hello_verdict hello_check(struct hello *h, const char *expected, const uint8_t *data,
	size_t size, void *work, size_t *ret_cleared)
{
	struct part p = { .at = data, .left = size };
	enum hello_verdict verdict = HELLO_MORE;

	*ret_cleared = 0;
	while (p.left > 0) {
		size_t used = 0;

		verdict = check_front(h, expected, p, work, &used);
		if (verdict == HELLO_GOOD && h->cleared_all + used > HELLO_WATCH_MAX)
			verdict = HELLO_ENCRYPTED;
		if (verdict != HELLO_GOOD)
			break;
		h->cleared_all += used;
		(void)cut(&p, used);
		*ret_cleared += used;
	}
	if (verdict == HELLO_MORE && *ret_cleared > 0)
		return HELLO_GOOD;
	if (verdict == HELLO_MORE && size >= HELLO_SIZE_MAX)
		verdict = HELLO_NO_TLS;
	if (verdict == HELLO_ENCRYPTED)
		*ret_cleared = size;
	else if (verdict != HELLO_GOOD)
		*ret_cleared = 0;
	return verdict;
}

const char *hello_word(enum hello_verdict verdict)
{
	switch (verdict) {
	case HELLO_MORE:
		return "no whole ClientHello";
	case HELLO_GOOD:
	case HELLO_ENCRYPTED:
		return "as it should be";
	case HELLO_NO_TLS:
		return "no TLS";
	case HELLO_NO_NAME:
		return "a ClientHello without a server name";
	case HELLO_OTHER_NAME:
		return "a ClientHello for another name";
	case HELLO_HIDDEN:
		return "an encrypted ClientHello";
	}
	return "unknown";
}

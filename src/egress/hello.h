/*
 * hello.h - the first bytes of a TLS connection: whether they are for the name that the connection was made for.
 *
 * Runs in: carrel-egress. PURE. May not: allocate, decrypt.
 *
 * Handshake messages may lie in several records, and records arrive in pieces: an incomplete one is checked again
 * when there is more. Until the client's bytes are encrypted its later ClientHellos are checked in the same way (one
 * is legitimate: the answer to a HelloRetryRequest).
 *
 * See: RFC 8446 4.1.2, 5.1 and appendix D.4; RFC 6066 3 (server_name); RFC 9849 (encrypted ClientHello).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HELLO_SIZE_MAX =
		20000, /* bytes of a ClientHello with its records that are waited for */
	HELLO_NAME_MAX = 255,
	HELLO_WATCH_MAX =
		65536, /* bytes of a client that are looked at before the first that is encrypted */
};

enum hello_verdict {
	HELLO_MORE,      /* there is no whole message yet */
	HELLO_GOOD,      /* what is cleared may be sent on; there may be more to look at */
	HELLO_ENCRYPTED, /* all may be sent on: what follows is encrypted */
	HELLO_NO_TLS,
	HELLO_NO_NAME,
	HELLO_OTHER_NAME,
	HELLO_HIDDEN, /* it has an encrypted ClientHello */
};

/* What was seen of one client; zeroed at first. */
struct hello {
	bool seen;    /* a ClientHello for the name */
	bool changed; /* ChangeCipherSpec: the next handshake record may be encrypted */
	bool answered; /* set by the caller: the server has said something, so that a second one may be right */
	size_t cleared_all; /* bytes that were cleared so far */
	char name[HELLO_NAME_MAX +
		1]; /* what the client asked for, where it was another name */
};

/*
 * hello_check - check @data, which the client has sent and was not cleared before. @expected: the name, in lower case.
 * @work: HELLO_SIZE_MAX bytes, the caller's.
 * *@ret_cleared: so many bytes of it may be sent on; 0 with a refusal.
 */
enum hello_verdict hello_check(struct hello *h, const char *expected, const uint8_t *data,
	size_t size, void *work, size_t *ret_cleared);

/* hello_word - the verdict in words, for the log. */
const char *hello_word(enum hello_verdict verdict);

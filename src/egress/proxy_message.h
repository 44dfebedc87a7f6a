/*
 * proxy_message.h - what a client of the session's proxy sends before bytes are relayed: where it wants to go, and the
 * messages of SOCKS.
 *
 * Runs in: carrel-egress. PURE. May not: allocate, resolve.
 *
 * See: RFC 1928 (SOCKS 5), RFC 1929 (its user names), RFC 3986 3.2 (authority).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "plan/netrule.h"

enum {
	SOCKS_REPLY_SIZE = 10,
	SOCKS_MESSAGE_MAX = 600, /* bytes of one message of a client */
	SOCKS_GRANTED = 0,
	SOCKS_FAILURE = 1,
	SOCKS_NOT_ALLOWED = 2,
	SOCKS_UNREACHABLE = 4,
	SOCKS_REFUSED = 5,
	SOCKS_NO_COMMAND = 7,
	SOCKS_NO_ADDRESS = 8,
	SOCKS_VERSION = 5,
	SOCKS_OPEN = 0,     /* the method without a password */
	SOCKS_PASSWORD = 2, /* a user name and a password, which mean nothing here */
	SOCKS_NO_METHOD = 255,
};

/* Where a client wants to go. */
struct proxy_target {
	uint8_t family;      /* 4 or 6: an address; 0: a name */
	uint8_t address[16]; /* network order */
	uint16_t port;
	char host[NETRULE_NAME_MAX +
		1]; /* the name, in lower case without a dot at its end; or the address as text */
};

/*
 * proxy_host_parse - @text: a name, an IPv4 address, or an IPv6 address, in brackets if @bracketed. `localhost` and
 * names below it are 127.0.0.1. A text that a resolver would take for a number (127.1, 0x7f000001) is no name.
 * Fills in all of *ret but the port. 0 or -EBADMSG.
 */
MUST_CHECK int proxy_host_parse(
	struct proxy_target *ret, const uint8_t *text, size_t size, bool bracketed);

/*
 * proxy_authority_parse - HOST:PORT. @port: the port if the text has none; 0: it must have one. 0 or -EBADMSG.
 */
MUST_CHECK int proxy_authority_parse(
	struct proxy_target *ret, const uint8_t *text, size_t size, uint16_t port);

/* proxy_authority_format - as proxy_authority_parse() reads it, without the port @usual. Its length, below 300. */
size_t proxy_authority_format(const struct proxy_target *target, uint16_t usual, char ret[300]);

/*
 * socks_methods_parse - the first message. Returns its size; 0: it is not whole; or -EBADMSG. *@ret_method: SOCKS_OPEN,
 * SOCKS_PASSWORD, or SOCKS_NO_METHOD.
 * socks_password_parse - the message that follows SOCKS_PASSWORD, in the same way.
 * socks_request_parse - where the client wants to go, in the same way. *@ret_reply: SOCKS_GRANTED, or why it cannot go there.
 */
MUST_CHECK ssize_t socks_methods_parse(const uint8_t *data, size_t size, uint8_t *ret_method);
MUST_CHECK ssize_t socks_password_parse(const uint8_t *data, size_t size);
MUST_CHECK ssize_t socks_request_parse(
	struct proxy_target *ret, const uint8_t *data, size_t size, uint8_t *ret_reply);

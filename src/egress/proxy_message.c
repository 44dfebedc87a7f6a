/*
 * proxy_message.c - see proxy_message.h.
 *
 * Runs in: carrel-egress. PURE.
 */
#include "egress/proxy_message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	SOCKS_CONNECT = 1,
	SOCKS_FOUR = 1,
	SOCKS_NAME = 3,
	SOCKS_SIX = 4,
	LABEL_MAX = 63,
	PASSWORD_VERSION = 1,
};

static const uint8_t loopback[4] = { 127, 0, 0, 1 };

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* Labels of letters, digits, '-' and '_' with dots between, which nobody would read as a number. */
static bool is_name(const char *text)
{
	const char *label = text, *at = text;

	for (;; at++) {
		if (is_name_byte(*at))
			continue;
		if (at == label || at - label > LABEL_MAX || (*at && *at != '.'))
			return false;
		if (!*at)
			break;
		label = at + 1;
	}
	bool hexadecimal = label[0] == '0' && label[1] == 'x';
	return !hexadecimal && strspn(label, "0123456789") != strlen(label);
}

static bool is_localhost(const char *name)
{
	const size_t size = sizeof("localhost") - 1, length = strlen(name);

	return length >= size && !strcmp(name + length - size, "localhost") &&
		(length == size || name[length - size - 1] == '.');
}

static void set_address(struct proxy_target *t, uint8_t family, const uint8_t *address)
{
	t->family = family;
	memset(t->address, 0, sizeof(t->address));
	memcpy(t->address, address, family == 4 ? 4 : 16);
	if (!inet_ntop(family == 4 ? AF_INET : AF_INET6, address, t->host, sizeof(t->host)))
		t->host[0] = '\0'; /* there is room */
}

int proxy_host_parse(struct proxy_target *ret, const uint8_t *text, size_t size, bool bracketed)
{
	struct proxy_target t = { .port = ret->port };
	uint8_t address[16];

	if (bracketed && size > 2 && text[0] == '[' && text[size - 1] == ']') {
		text++;
		size -= 2;
	} else if (bracketed && memchr(text, ':', size)) {
		return -EBADMSG;
	}
	if (size > 1 && text[size - 1] == '.')
		size--;
	if (size == 0 || size >= sizeof(t.host))
		return -EBADMSG;
	for (size_t i = 0; i < size; i++) {
		char c = (char)text[i];

		if (!c)
			return -EBADMSG;
		t.host[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	if (inet_pton(AF_INET, t.host, address) == 1)
		set_address(&t, 4, address);
	else if (inet_pton(AF_INET6, t.host, address) == 1)
		set_address(&t, 6, address);
	else if (!is_name(t.host))
		return -EBADMSG;
	else if (is_localhost(t.host))
		set_address(&t, 4, loopback);
	*ret = t;
	return 0;
}

/* Only decimal digits, 1 to 65535. 0: it is no port. */
static uint16_t parse_port(const uint8_t *text, size_t size)
{
	unsigned value = 0;

	for (size_t i = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9' || value > UINT16_MAX)
			return 0;
		value = value * 10 + (text[i] - '0');
	}
	return value <= UINT16_MAX ? (uint16_t)value : 0;
}

int proxy_authority_parse(
	struct proxy_target *ret, const uint8_t *text, size_t size, uint16_t port)
{
	size_t host = size;

	while (host > 0 && text[host - 1] != ':' && text[host - 1] != ']')
		host--;
	if (host > 0 && text[host - 1] == ':') {
		port = parse_port(text + host, size - host);
		host--;
	} else {
		host = size;
	}
	if (port == 0)
		return -EBADMSG;
	struct proxy_target t = { .port = port };
	if (proxy_host_parse(&t, text, host, true) < 0)
		return -EBADMSG;
	*ret = t;
	return 0;
}

size_t proxy_authority_format(const struct proxy_target *target, uint16_t usual, char ret[300])
{
	const char *open = target->family == 6 ? "[" : "", *close = *open ? "]" : "";
	char port[8] = "";

	if (target->port != usual)
		(void)snprintf(port, sizeof(port), ":%u", target->port);
	int n = snprintf(ret, 300, "%s%s%s%s", open, target->host, close, port);
	return n < 0 ? 0 : (size_t)n;
}

/* --- SOCKS -------------------------------------------------------------------------------------- */

ssize_t socks_methods_parse(const uint8_t *data, size_t size, uint8_t *ret_method)
{
	if (size > 0 && data[0] != SOCKS_VERSION)
		return -EBADMSG;
	if (size < 2 || size < (size_t)2 + data[1])
		return 0;
	if (memchr(data + 2, SOCKS_OPEN, data[1]))
		*ret_method = SOCKS_OPEN;
	else if (memchr(data + 2, SOCKS_PASSWORD, data[1]))
		*ret_method = SOCKS_PASSWORD;
	else
		*ret_method = SOCKS_NO_METHOD;
	return 2 + data[1];
}

ssize_t socks_password_parse(const uint8_t *data, size_t size)
{
	if (size > 0 && data[0] != PASSWORD_VERSION)
		return -EBADMSG;
	if (size < 2 || size < (size_t)3 + data[1])
		return 0;
	size_t whole = (size_t)3 + data[1] + data[2 + data[1]];
	return size < whole ? 0 : (ssize_t)whole;
}

ssize_t socks_request_parse(
	struct proxy_target *ret, const uint8_t *data, size_t size, uint8_t *ret_reply)
{
	struct proxy_target t = { 0 };
	size_t host;

	if ((size > 0 && data[0] != SOCKS_VERSION) || (size > 2 && data[2] != 0))
		return -EBADMSG;
	if (size < 5)
		return 0;
	if (data[1] != SOCKS_CONNECT) {
		*ret_reply = SOCKS_NO_COMMAND;
		return (ssize_t)size;
	}
	if (data[3] != SOCKS_FOUR && data[3] != SOCKS_SIX && data[3] != SOCKS_NAME) {
		*ret_reply = SOCKS_NO_ADDRESS;
		return (ssize_t)size;
	}
	host = data[3] == SOCKS_FOUR ? 4 : data[3] == SOCKS_SIX ? 16 : (size_t)1 + data[4];
	if (size < 4 + host + 2)
		return 0;
	*ret_reply = SOCKS_GRANTED;
	if (data[3] != SOCKS_NAME)
		set_address(&t, data[3] == SOCKS_FOUR ? 4 : 6, data + 4);
	else if (proxy_host_parse(&t, data + 5, host - 1, false) < 0)
		*ret_reply = SOCKS_NO_ADDRESS;
	t.port = (uint16_t)(data[4 + host] << 8 | data[5 + host]);
	if (t.port == 0)
		*ret_reply = SOCKS_NO_ADDRESS;
	*ret = t;
	return (ssize_t)(4 + host + 2);
}

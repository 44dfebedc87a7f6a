/*
 * proxy_answer.c - see proxy_answer.h.
 *
 * Runs in: carrel-egress. PURE.
 */
#include "egress/proxy_answer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/name.h"

enum { LINE_MAX_BYTES = 700, PORT_HTTP = 80, PORT_HTTPS = 443 };

/* No line opens these: the unspecified addresses, and IPv4 in IPv6, which a line says as IPv4. */
static bool is_no_rule(const char *name)
{
	return !strcmp(name, "0.0.0.0") || !strcmp(name, "::") || !strncmp(name, "::ffff:", 7);
}

static void denied_line(const struct proxy_refusal *r, char line[LINE_MAX_BYTES])
{
	bool usual = r->port == PORT_HTTP || r->port == PORT_HTTPS;
	bool six = strchr(r->name, ':') != NULL;
	char port[8] = "";

	if (!usual)
		(void)snprintf(port, sizeof(port), ":%u", r->port);
	if (r->rule >= 0)
		(void)snprintf(line, LINE_MAX_BYTES,
			"a deny line of the policy refuses %s port %u", r->name, r->port);
	else if (is_no_rule(r->name))
		(void)snprintf(line, LINE_MAX_BYTES, "the policy does not allow %s port %u",
			r->name, r->port);
	else
		(void)snprintf(line, LINE_MAX_BYTES,
			"the policy does not allow %s port %u; this option would: --allow %s%s%s%s",
			r->name, r->port, six ? "[" : "", r->name, six ? "]" : "", port);
}

/* Write a line for a person. */
static void put_line(const struct proxy_refusal *r, char line[LINE_MAX_BYTES])
{
	switch (r->bad ? 0 : r->decision) {
	case EGRESS_DENIED_NAME:
	case EGRESS_DENIED_PORT:
		denied_line(r, line);
		break;
	case EGRESS_DENIED_ADDRESS:
		(void)snprintf(line, LINE_MAX_BYTES,
			"%s leads to a private address, which only an allow line with that address opens",
			r->name);
		break;
	case EGRESS_DENIED_TLS:
		(void)snprintf(
			line, LINE_MAX_BYTES, "port 443 is for TLS to %s alone", r->name);
		break;
	case EGRESS_DENIED_LIMIT:
		(void)snprintf(line, LINE_MAX_BYTES,
			"the session may have no more connections, or no more bytes");
		break;
	case EGRESS_FAILED:
		(void)snprintf(line, LINE_MAX_BYTES, "%s port %u cannot be reached: %s",
			r->name, r->port, name_errno(r->errnum));
		break;
	default:
		(void)snprintf(line, LINE_MAX_BYTES, "%s",
			r->bad ? r->bad : "the request cannot be answered");
	}
}

static const char *http_status(const struct proxy_refusal *r)
{
	if (r->bad)
		return "400 Bad Request";
	switch (r->decision) {
	case EGRESS_DENIED_LIMIT:
		return "503 Service Unavailable";
	case EGRESS_FAILED:
		return r->errnum == ETIMEDOUT ? "504 Gateway Timeout" : "502 Bad Gateway";
	case EGRESS_ALLOWED:
	case EGRESS_DENIED_NAME:
	case EGRESS_DENIED_PORT:
	case EGRESS_DENIED_ADDRESS:
	case EGRESS_DENIED_TLS:
	case EGRESS_PUBLISHED:
		break;
	}
	return "403 Forbidden";
}

static uint8_t socks_reply(const struct proxy_refusal *r)
{
	if (r->decision != EGRESS_FAILED)
		return r->bad || r->decision == EGRESS_DENIED_LIMIT ? SOCKS_FAILURE
								    : SOCKS_NOT_ALLOWED;
	return r->errnum == ECONNREFUSED ? SOCKS_REFUSED : SOCKS_UNREACHABLE;
}

size_t proxy_answer_build(const struct proxy_refusal *refusal, uint8_t ret[PROXY_ANSWER_MAX])
{
	char line[LINE_MAX_BYTES];

	if (refusal->kind == PROXY_SOCKS) {
		memset(ret, 0, SOCKS_REPLY_SIZE);
		ret[0] = SOCKS_VERSION;
		ret[1] = socks_reply(refusal);
		ret[3] = 1; /* an address of IPv4, 0.0.0.0 */
		return SOCKS_REPLY_SIZE;
	}
	put_line(refusal, line);
	int n = snprintf((char *)ret, PROXY_ANSWER_MAX,
		"HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n"
		"Connection: close\r\n\r\ncarrel: %s\n",
		http_status(refusal), strlen(line) + sizeof("carrel: \n") - 1, line);
	return n < 0 || n >= PROXY_ANSWER_MAX ? 0 : (size_t)n;
}

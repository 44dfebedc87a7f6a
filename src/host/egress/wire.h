/*
 * wire.h - the records between the supervisor and carrel-egress.
 *
 * Runs in: both ends of a SOCK_SEQPACKET pair. Every record has the same size. Another size, another magic or an unknown kind is a
 * failure: E then ends itself, and S takes E for dead. Descriptors travel beside a record (unix(7), SCM_RIGHTS).
 */
#pragma once

#include <stdint.h>

#define EGRESS_MAGIC 0x63656731u /* "ceg1": changes with the layout */

/* Descriptors that carrel-egress is executed with. All others are closed. */
enum {
	EGRESS_FD_CHANNEL = 3,
	EGRESS_FD_RULES = 4, /* a sealed memfd: see below */
	EGRESS_FD_LOG = 5,   /* open only where argv has "--log": where JSON lines go */
};

/*
 * The rules: lines of text, a NUL, and then the `allow` and `deny` lines of the policy in their order. The text is any of
 *   connections N   at one time, at most        bytes N      of all connections together, both ways, at most
 *   tls-name no     no look at the ClientHello   resolver ADDRESS[:PORT]   instead of those of /etc/resolv.conf
 *   proxy HOST:PORT   what names are reached by    proxy-login BASE64        USER:PASSWORD for it, as RFC 7617 encodes it
 * A rule is this head and, behind it, its ports, then the 16 bytes of its address (BLOCK), or its name with a NUL. They were
 * read once, with the policy, and are not made text and read again while a command waits: there may be ten thousand.
 */
struct egress_rule_head {
	uint32_t line;      /* of its source; 0: it has none */
	uint8_t kind;       /* enum netrule_kind, or EGRESS_RULE_ORIGIN */
	uint8_t deny;       /* 0 or 1 */
	uint8_t family;     /* as in struct netrule */
	uint8_t bits;       /* the same */
	uint8_t port_count; /* of 16 bits each, in the byte order of the machine */
	uint8_t zero;
	uint16_t name_size; /* with its NUL; 0: it has no name */
};

/* This is no rule: its name is the text that the sources of the rules after it begin with, before the number of a line. */
enum { EGRESS_RULE_ORIGIN = 255 };

/* SOCKETS: bits of `number`. */
enum {
	EGRESS_SOCKETS_DNS = 1, /* the first two are the resolver's, UDP and TCP */
	EGRESS_SOCKETS_SIX =
		2, /* the session's block of IPv6 stands: names have addresses of it as well */
	EGRESS_SOCKETS_REFUSED =
		4, /* all of them are raw ones, which hear what the kernel refuses */
};

/* The session's own blocks of addresses, RFC 2544 and RFC 4193; no name has the first address of either. */
#define EGRESS_BLOCK "198.18.0.0"
#define EGRESS_BLOCK_SIX \
	"fd63:6172:7265:6c00::" /* "carrel"; a /64, of which the last 32 bits are used */
enum { EGRESS_BLOCK_BITS = 15, EGRESS_DNS_PORT = 53 };

enum egress_kind {
	/* S -> E */
	EGRESS_SOCKETS =
		1, /* descriptors: listening TCP sockets; number: bits of EGRESS_SOCKETS_* */
	EGRESS_RULE, /* `text`: one more rule: `allow RULE<TAB>SOURCE` or `deny RULE<TAB>SOURCE` */
	EGRESS_END, /* send what was not sent yet, then end */
	/* E -> S */
	EGRESS_READY, /* E is confined, and has its rules. number = 1: no resolver is known */
	EGRESS_EVENT, /* something was decided, or ended */
	EGRESS_REFUSED, /* the answer to RULE and UNRULE: `text` says why, number is an errno; number 0: it was done */
	EGRESS_DONE, /* the answer to END: the last record. number: lines that the log did not take */
	/* S -> E; after the others, so that their numbers stay */
	EGRESS_UNRULE, /* `rule`: take back the one of this number, which came by RULE; reset what only it allowed */
	EGRESS_POOL, /* descriptors: sockets of the session's network that are not connected */
	EGRESS_PUBLISH, /* descriptors: listening sockets of the host's loopback, for `port` of the session */
	EGRESS_SYNC, /* say what has been decided so far, then `number` */
	/* E -> S */
	EGRESS_SYNCED, /* the answer, with its number */
};

enum egress_decision {
	EGRESS_ALLOWED = 1,    /* a connection that ended: bytes and duration are known */
	EGRESS_DENIED_NAME,    /* a query: no rule allows this name at any port */
	EGRESS_DENIED_PORT,    /* a connection: not at this port, or not this address */
	EGRESS_DENIED_ADDRESS, /* the name leads to an address that only an address rule opens */
	EGRESS_DENIED_TLS,     /* no ClientHello, or for another name */
	EGRESS_DENIED_LIMIT,   /* too many connections, or bytes */
	EGRESS_FAILED,         /* allowed, but not resolved or not connected; number = errno */
	EGRESS_PUBLISHED,      /* a connection from the host to a server inside that ended */
};

/* egress_decision_name - "allowed", "denied-name" and the like; "unknown" for what is none of them. */
static inline const char *egress_decision_name(uint32_t decision)
{
	static const char *const names[] = {
		[EGRESS_ALLOWED] = "allowed",
		[EGRESS_DENIED_NAME] = "denied-name",
		[EGRESS_DENIED_PORT] = "denied-port",
		[EGRESS_DENIED_ADDRESS] = "denied-address",
		[EGRESS_DENIED_TLS] = "denied-tls",
		[EGRESS_DENIED_LIMIT] = "denied-limit",
		[EGRESS_FAILED] = "failed",
		[EGRESS_PUBLISHED] = "published",
	};

	return decision >= EGRESS_ALLOWED && decision <= EGRESS_PUBLISHED ? names[decision]
									  : "unknown";
}

struct egress_record {
	uint32_t magic;
	uint32_t kind;     /* enum egress_kind */
	uint32_t decision; /* EVENT: enum egress_decision */
	int32_t number;
	int32_t rule;  /* EVENT: the number of the rule that decided; -1: none */
	uint32_t port; /* EVENT: 0 for a query */
	uint32_t lost; /* EVENT, DONE: so many events before it could not be sent */
	uint32_t
		count; /* EVENT: so many of the same within a second are put together; at least 1 */
	uint64_t bytes_in, bytes_out; /* EVENT: to the session, from the session */
	uint64_t
		duration_us; /* EVENT: of a connection; of what was refused or failed: when, the last time (CLOCK_MONOTONIC) */
	char text
		[512]; /* EVENT: the name or address, always with its zero byte; behind it the server's address, or nothing */
};

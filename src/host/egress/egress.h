/*
 * egress.h - carrel-egress, as the supervisor sees it: starting it, handing it the session's sockets, adding up what it
 * says.
 *
 * Runs in: S, which takes what carrel-egress says only as text and numbers for the report and for people: it reads bytes
 * from the network, and an attacker may have taken it over. docs/network.md has the whole.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "host/egress/wire.h"
#include "plan/policy.h"

enum {
	EGRESS_NAMES_MAX = 256,  /* different names, ports and decisions that are told apart */
	EGRESS_START_MS = 10000, /* once init is ready: for carrel-egress to be ready, too */
	EGRESS_END_MS = 1000,    /* when all is over: for it to send what it has not sent yet */
	EGRESS_AT_ONCE = 64,     /* S reads so many records in one turn of the loop */
	EGRESS_SETTLE_MS = 100,  /* when a command has failed: for it to send what it knows */
	EGRESS_TEXT_MAX = 280,   /* bytes of a name or an address, with the zero byte */
	EGRESS_ADDRESS_MAX = 48,
};

/* What was decided about one name or address at one port, added up. */
struct egress_name {
	char text[EGRESS_TEXT_MAX];
	uint32_t port;     /* 0: a query */
	uint32_t decision; /* enum egress_decision */
	int32_t rule;      /* the last time: the number of the line that decided; -1: none */
	int32_t errnum;    /* FAILED: the last time */
	uint64_t times, bytes_in, bytes_out, duration_us;
	uint64_t last_us; /* a trouble: when, the last time (CLOCK_MONOTONIC) */
	char address
		[EGRESS_ADDRESS_MAX]; /* DENIED_ADDRESS: where the name led the last time; may be empty */
};

struct egress_live; /* live.h */

/* A port of a server inside, and where the host reaches it. */
struct egress_published {
	uint16_t port, host_port;
	bool chosen;                         /* by the kernel */
	uint64_t times, bytes_in, bytes_out; /* of connections that ended */
};

struct egress {
	int channel;     /* -1: there is none, or none any more */
	int pidfd;       /* -1: none */
	bool begun;      /* egress_begin() was called */
	bool ready;      /* it is confined, and has read its rules */
	bool ending;     /* it was told to end */
	bool lost;       /* it ended before that */
	bool unresolved; /* the machine has no resolver that it knows of */
	uint64_t untold; /* events that it could not send, or that found no room in `names` */
	uint64_t
		log_lost; /* lines that the log of the network did not take; known at the end */
	uint64_t
		trouble_us; /* when something was refused, or failed by itself, last; 0: never */
	struct egress_name *names; /* EGRESS_NAMES_MAX of them, mapped; NULL: none */
	size_t name_count;
	struct egress_published published[PUBLISH_MAX];
	size_t published_count;
	/* live.h: rules that were added since; what S asked carrel-egress last, and the answer. */
	struct egress_live *live; /* EGRESS_LIVE_MAX of them, mapped; NULL: none */
	size_t live_count;
	bool asked, answered;
	int asked_number, answer;
	int32_t sync_asked, synced; /* the last EGRESS_SYNC, and the last that was answered */
};

#define EGRESS_NONE ((struct egress){ .channel = -1, .pidfd = -1 })

/*
 * egress_begin - start carrel-egress with the rules of @policy, whose `net` is NET_ALLOW, or which publishes ports. @log: where its lines of JSON
 * go (netlog_open()), borrowed; -1: nowhere. @login: for the policy's proxy (login_read()), NULL: none. It ends when the calling process does.
 * The call does not wait until it is ready. 0 or -errno with @e (ERROR_UNAVAILABLE, ERROR_LIMIT); call egress_end() with @ret in any case.
 */
MUST_CHECK int egress_begin(struct egress *ret, const struct policy *policy, int log,
	const char *login, struct error *e);

/*
 * egress_sockets - give it sockets of init's. @what: the `number` of CHANNEL_SOCKETS (box/channel.h). They are borrowed.
 * 0, also if it has just ended (S reads that from the channel); or -errno.
 */
MUST_CHECK int egress_sockets(struct egress *g, const int *fds, unsigned count, int what);

/* egress_send - one record without descriptors. 0, -EPIPE where it has ended, -EAGAIN where it does not read, or another -errno. */
MUST_CHECK int egress_send(struct egress *g, const struct egress_record *record);

/* egress_send_fds - the same with descriptors, which are borrowed. */
MUST_CHECK int egress_send_fds(
	struct egress *g, const struct egress_record *record, const int *fds, unsigned count);

/* egress_add - a sum that does not wrap. */
void egress_add(uint64_t *sum, uint64_t more);

/* egress_read - read what it has said, EGRESS_AT_ONCE records at most; sets g->lost if it is dead. */
void egress_read(struct egress *g);

/*
 * egress_settle - wait, for EGRESS_SETTLE_MS at most, until carrel-egress has sent what it knows by now, and read that. It
 * may not have sent yet what the kernel refused a command that has just ended. It can find what egress_read() can.
 */
void egress_settle(struct egress *g);

/*
 * egress_explain - the error for a session that cannot start because carrel-egress ended or is not ready in time.
 * Returns a negative errno.
 */
int egress_explain(const struct egress *g, struct error *e);

/*
 * egress_ask_end - ask it to say the rest and to end, and do not wait. It has no network from then on.
 * egress_end - the same, wait for that, EGRESS_END_MS at most, and reap it. Idempotent, both; `names` stay.
 */
void egress_ask_end(struct egress *g);
void egress_end(struct egress *g);

/* egress_is_trouble - whether the policy refused it, or it failed by itself. */
bool egress_is_trouble(uint32_t decision);

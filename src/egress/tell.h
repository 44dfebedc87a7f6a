/*
 * tell.h - sends each decision to the supervisor and writes it to the log.
 *
 * Runs in: carrel-egress. Tools decide how often that happens: so refusals of one kind within a second are one event with a
 * number, and what the supervisor or the log does not take at once is only counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "egress/loop.h"
#include "host/egress/wire.h"
#include "plan/netrule.h"

enum { TOLD_MAX = 64, TOLD_TEXT_MAX = 256 };

struct event {
	enum egress_decision decision;
	const char *name;        /* or the address that the program has connected to */
	const char *address;     /* of the server; NULL: none */
	const char *server_name; /* that a ClientHello asked for; NULL: none */
	const char *why;         /* for the log; NULL: nothing to add */
	uint16_t port;
	int rule;
	int errnum;
	uint64_t bytes_in, bytes_out;
	uint64_t
		duration_us; /* of a connection; tell_event() notes when it was called for anything else */
};

/* A refusal that was sent, and how often it came again since. */
struct told {
	enum egress_decision decision;
	char name[TOLD_TEXT_MAX];
	uint16_t port;
	int rule, errnum;
	unsigned again;
	uint64_t last_us;
};

struct tell {
	struct loop *loop;
	int channel, log; /* log -1: none */
	const struct rules *rules;
	struct told told[TOLD_MAX];
	size_t told_count;
	struct timer timer;
	uint32_t lost, lost_log; /* since the last that was taken */
	uint32_t lost_log_all;
	bool torn; /* the last line of the log broke off */
};

/* tell_init - @channel, @log: descriptors, the caller's. */
void tell_init(struct tell *t, struct loop *loop, int channel, int log);

/* tell_event - report one decision. Its texts are copied. */
void tell_event(struct tell *t, const struct event *event);

/*
 * tell_rule - write to the log that rule number @number was added, or taken back; @line: as it came ("allow RULE<TAB>SOURCE"). The
 * supervisor knows it already.
 */
void tell_rule(struct tell *t, size_t number, bool added, const char *line);

/* tell_rest - send the counts of repeated refusals that were not sent yet. */
void tell_rest(struct tell *t);

/* tell_record - send any other record to the supervisor, and wait at most @wait_ms if its queue is full. 0 or -errno. */
MUST_CHECK int tell_record(
	struct tell *t, enum egress_kind kind, int32_t number, const char *text, int wait_ms);

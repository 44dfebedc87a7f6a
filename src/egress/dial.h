/*
 * dial.h - connects to one of several addresses: it tries each a quarter of a second after the one before, or at once
 * if that failed, and takes the first that answers.
 *
 * Runs in: carrel-egress.
 *
 * See: RFC 8305 5 (happy eyeballs).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "egress/dns_message.h"
#include "egress/loop.h"

enum { TARGETS_MAX = 2 * DNS_ADDRESSES_MAX, TARGET_TEXT_MAX = 48 };

struct target {
	uint8_t family; /* 4 or 6 */
	uint8_t address[16];
};

struct dial {
	struct doomed doomed;
	struct loop *loop;
	struct timer timer;
	uint16_t port;
	size_t count, begun, ended;
	int error; /* of the first that failed */
	struct target targets[TARGETS_MAX];
	struct attempt {
		struct watch watch; /* the first member */
		struct dial *dial;
	} attempts[TARGETS_MAX];
	/* @fd: connected to @target, the callee's; or -1, and @error is -errno. The dial is gone then. */
	void (*done)(void *context, int fd, const struct target *target, int error);
	void *context;
};

/*
 * dial_start - begin, and call done() once, perhaps before this returns. @dial: from calloc(3), with targets (at
 * least one), count, port, done and context filled in; taken.
 */
void dial_start(struct loop *loop, struct dial *dial);

/* dial_cancel - stop, and do not call done(); the dial is gone. */
void dial_cancel(struct dial *dial);

/* target_text - its address as text. */
void target_text(const struct target *target, char ret[TARGET_TEXT_MAX]);

/*
 * execution.h - the client's part of one execution: it asks for it, relays its streams and signals, and learns how it ended.
 *
 * Runs in: the client. One thread, epoll; signals are read from a descriptor.
 */
#pragma once

#include <stdbool.h>

#include "box/request.h"
#include "client/find.h"
#include "host/launch/limits.h"
#include "host/launch/notes.h"
#include "host/process/signals.h"
#include "host/stdio/passed.h"
#include "host/stdio/stdio.h"
#include "host/stdio/tty.h"

/* What is wanted. Texts are borrowed. */
struct execution_request {
	struct request head;     /* argc and envc are filled in */
	const char *const *argv; /* NULL-terminated */
	const char *const *envp; /* NAME=VALUE; NULL-terminated, or NULL */
	const char *cwd, *name;  /* NULL: none */
	enum tty_mode tty;
	struct stdio_output output;
	struct passed passed; /* descriptors beside the streams */
};

/* What became of it. */
struct execution_end {
	uint32_t number;           /* 0: it was not accepted */
	bool runs;                 /* a service, and it has begun */
	bool ended;                /* `how` is filled in */
	struct control_record how; /* ENDED */
	char network
		[NOTES_TEXT_MAX]; /* CONTROL_NETWORK_NAMES, CONTROL_NETWORK_TEXT: what is in the body */
	bool limited;             /* `usage` is filled in */
	struct limits_usage usage;
	int refused; /* what it was refused (host/explain/board.h), the caller's; -1: not known, or not looked for */
};

struct execution {
	const struct client_session *session;
	const struct execution_request *request;
	struct stdio stdio;
	struct signals signals;
	struct tty tty;
	bool has_stdio, has_tty, end_requested, killed;
	bool relaying; /* stdio_start() was called */
	uint64_t
		early; /* a bit for each signal that came before it was accepted, to be passed on then */
	int epoll, timer;
	int results; /* tool-results/, where outputs are saved; -1: none */
	char results_path[STATE_PATH_MAX + 16];
	struct execution_end end;
	struct control_message message;
	struct error *e;
};

/*
 * execution_run - run it until it has ended, or if it is detached until it has begun.
 * @x: zeroed; holds everything, since messages are large. @ret: what is known, also after a failure.
 * Returns 0 or -errno with @e.
 */
MUST_CHECK int execution_run(struct execution *x, const struct client_session *session,
	const struct execution_request *request, struct execution_end *ret, struct error *e);

/*
 * execution_status - the exit status for it; with @e if the command could not be started.
 * @session, @request: which session was asked, and for what.
 */
int execution_status(const struct execution_end *end, const struct client_session *session,
	const struct execution_request *request, struct error *e);

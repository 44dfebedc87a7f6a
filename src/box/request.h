/*
 * request.h - what an execution of a live session is to run, as bytes.
 *
 * Runs in: the client, which makes one; the supervisor, which judges it and hands it on as it is; the
 * monitor, which reads it. No heap, no stdio.
 *
 * A request is the struct below and then argc + envc + 2 texts, each with its NUL: the arguments, the
 * variables (NAME=VALUE), the working directory, the name of a service. The last two may be empty.
 * With REQUEST_PASS a third follows these: the numbers that further descriptors have inside, as "3,9,10".
 * Nothing is in front of, between or behind them. Zero in a limit means: as the session has it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "plan/pass.h"
#include "plan/settings.h"

#define REQUEST_SIZE_MAX (4u << 20) /* bytes, texts included */
#define REQUEST_WORDS_MAX 65536u    /* arguments and variables */

enum request_flag {
	REQUEST_TTY = 1 << 0,    /* a terminal; streams that are not sent are it */
	REQUEST_DETACH = 1 << 1, /* a service: it outlives the client, until stopped */
	REQUEST_WORKSPACE_RO = 1 << 2,
	REQUEST_NET_NONE = 1 << 3,
	REQUEST_LOG =
		1 << 4, /* of a service: what it writes goes to a log of the supervisor's */
	REQUEST_PASS = 1 << 5, /* descriptors beside the streams, behind them in the message */
	REQUEST_FLAGS_ALL = (1 << 6) - 1,
};

struct request {
	uint32_t flags; /* enum request_flag */
	uint32_t argc;  /* 1 and more */
	uint32_t envc;
	uint32_t umask;                         /* 0 to 0777 */
	uint64_t limits[EXECUTION_LIMIT_COUNT]; /* in the units of their settings */
};

/* A request that was found whole. Everything points into it. */
struct request_view {
	struct request head;
	const char *argv; /* head.argc texts */
	const char *envp; /* head.envc texts */
	const char *cwd;  /* empty: as the session has it */
	const char *name; /* of a service; empty: none */
	struct pass_numbers pass;
};

/*
 * request_read - judge @size bytes at @data, which nobody else may change meanwhile.
 * Returns 0, or -EPROTO: too short or long, unknown flags, no argument, a text missing or left over,
 * a variable without a name, a working directory that is not absolute, numbers out of order or range.
 */
__attribute__((warn_unused_result)) int request_read(
	const void *data, size_t size, struct request_view *ret);

/* request_next - the text behind @text. */
const char *request_next(const char *text);

/*
 * denial.h - what a session was refused, as `carrel why` explains it. For verb_explain.c and denial*.c alone.
 *
 * Runs in: carrel-policy, outside, as the caller, when the session is over. It reads what the observer noted
 * (host/explain/board.h), which tools have chosen. May not: list an entry that neither the session's plan nor its filter accounts
 * for: that is no refusal, or not carrel's.
 */
#pragma once

#include "base/json.h"
#include "host/explain/board.h"
#include "policy/why.h"

struct denial {
	const struct explain_entry *entry; /* the first one */
	uint64_t times;
	const char *what; /* the path, the address, the call: as it was asked for */
	const char *call; /* the name of the system call */
	const char *verb; /* "read", "write", "make", "remove", "connect", "call" */
	struct why_answer answer;
	const struct why_change
		*change; /* in the answer: what would have allowed it; NULL: nothing */
};

struct denials {
	struct why *w;
	struct filter filter; /* of the session */
	uint32_t arch;
	struct denial *all; /* in the arena of `w` */
	size_t count;
	uint64_t unexplained; /* there was no time for so many entries */
};

/* denials_find - find the entries of @board that a wall has refused. 0, or -errno with @e. */
MUST_CHECK int denials_find(
	struct denials *ret, struct why *w, const struct explain_board *board, struct error *e);

/* denials_shown - how many of them are listed one by one for people. */
size_t denials_shown(const struct denials *d);

/* denials_text - write them to @out for people; nothing if there are none. denials_json - as one array. 0 or -errno. */
MUST_CHECK int denials_text(const struct denials *d, struct writer *out);
MUST_CHECK int denials_json(const struct denials *d, struct json *out);

/* denials_learn - write a policy to @out that would have allowed it, with remarks. 0 or -errno. */
MUST_CHECK int denials_learn(const struct denials *d, struct writer *out);

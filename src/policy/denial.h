/*
 * denial.h - what a session was refused, as `carrel why` explains it. For verb_explain.c and denial*.c alone.
 *
 * Runs in: carrel-policy, outside, as the caller, when the session is over; with what the observer noted
 * (host/explain/board.h), which tools have chosen. May not: say more than that: an entry that the plan of the session and its
 * filter do not account for is nobody's refusal, or not carrel's, and is left out.
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
		*change; /* what would have allowed it, of the answer; NULL: nothing */
};

struct denials {
	struct why *w;
	struct filter filter; /* of the session */
	uint32_t arch;
	struct denial *all; /* in the arena of `w` */
	size_t count;
	uint64_t unexplained; /* entries that there was no time for */
};

/* denials_find - what of @board was a wall's. 0, or -errno with @e. */
MUST_CHECK int denials_find(
	struct denials *ret, struct why *w, const struct explain_board *board, struct error *e);

/* denials_shown - how many of them people are told one by one. */
size_t denials_shown(const struct denials *d);

/* denials_text - for people, nothing where there is none, on @out. denials_json - one array. 0 or -errno. */
MUST_CHECK int denials_text(const struct denials *d, struct writer *out);
MUST_CHECK int denials_json(const struct denials *d, struct json *out);

/* denials_learn - a policy that would have allowed it, with remarks, on @out. 0 or -errno. */
MUST_CHECK int denials_learn(const struct denials *d, struct writer *out);

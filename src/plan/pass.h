/*
 * pass.h - descriptors of the caller's that a command is given beside its three streams (`pass-fd`).
 *
 * Runs in: the launcher, clients, carrel-policy; the box reads the numbers. PURE: no descriptor is looked at here; what
 * kinds are given to a command is host/stdio/passed.h.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

enum {
	PASS_MAX = 8,           /* of one command */
	PASS_LEAST = 3,         /* the streams are below */
	PASS_NUMBER_MAX = 1023, /* inside: what most machines let a process have */
};

/* What they are called inside: PASS_LEAST to PASS_NUMBER_MAX, ascending. */
struct pass_numbers {
	int number[PASS_MAX];
	unsigned count;
};

/* The caller's number, and that inside. */
struct pass_pair {
	int from, to;
};

struct policy;
struct policy_line;
struct policy_place;

/* pass_read - N or N:M in @word. 0 or -errno with the error of @at. */
MUST_CHECK int pass_read(
	const struct policy_place *at, const char *word, struct pass_pair *ret);

/* pass_read_option - the same where it is an option of a verb that reads no policy: @option, for messages. */
MUST_CHECK int pass_read_option(
	const char *option, const char *word, struct pass_pair *ret, struct error *e);

/* pass_read_line - the same, as a line of a policy: `number` is N, `text` is M, `dest` is N:M. */
MUST_CHECK int pass_read_line(
	const struct policy_place *at, const char *word, struct policy_line *l);

/* pass_apply - put the line @l into @p, in order. 0 or -ENOMEM. */
MUST_CHECK int pass_apply(struct policy *p, const struct policy_line *l);

/* pass_put - put @pair where it belongs among @count, or in the place of the one with its number inside; there is room for
 * one more. Returns how many there are now. */
size_t pass_put(struct pass_pair *pairs, size_t count, const struct pass_pair *pair);

/* pass_check_count - that there are no more than PASS_MAX. 0 or -errno with @e. */
MUST_CHECK int pass_check_count(size_t count, const char *on, struct error *e);

/*
 * pass.h - descriptors of the caller that a command gets beside its three streams (`pass-fd`).
 *
 * Runs in: the launcher, clients, carrel-policy; the box reads the numbers. PURE: no descriptor is
 * looked at here; host/stdio/passed.h says which kinds a command can get.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

enum {
	PASS_MAX = 8,           /* of one command */
	PASS_LEAST = 3,         /* the streams are below */
	PASS_NUMBER_MAX = 1023, /* inside: what most machines let a process have */
};

/* Their numbers inside: PASS_LEAST to PASS_NUMBER_MAX, ascending. */
struct pass_numbers {
	int number[PASS_MAX];
	unsigned count;
};

/* The caller's number, and the one inside. */
struct pass_pair {
	int from, to;
};

struct policy;
struct policy_line;
struct policy_place;

/* pass_read - N or N:M in @word. 0 or -errno with the error of @at. */
MUST_CHECK int pass_read(
	const struct policy_place *at, const char *word, struct pass_pair *ret);

/*
 * pass_read_option - the same for an option of a verb that reads no policy. @option: its name, for
 * messages.
 */
MUST_CHECK int pass_read_option(
	const char *option, const char *word, struct pass_pair *ret, struct error *e);

/* pass_read_line - the same, as a line of a policy: `number` is N, `text` is M, `dest` is N:M. */
MUST_CHECK int pass_read_line(
	const struct policy_place *at, const char *word, struct policy_line *l);

/* pass_apply - put the line @l into @p, in order. 0 or -ENOMEM. */
MUST_CHECK int pass_apply(struct policy *p, const struct policy_line *l);

/*
 * pass_put - insert @pair where it belongs among @count, or replace the one with the same number
 * inside. There must be room for one more. Returns how many there are now.
 */
size_t pass_put(struct pass_pair *pairs, size_t count, const struct pass_pair *pair);

/* pass_check_count - check that there are at most PASS_MAX. 0 or -errno with @e. */
MUST_CHECK int pass_check_count(size_t count, const char *on, struct error *e);

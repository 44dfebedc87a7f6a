/*
 * live.h - the rules that the owner adds to a live session, and takes back: `carrel session allow`.
 *
 * Runs in: S, which judges a rule by the policy that the session was started with; carrel-egress only obeys.
 */
#pragma once

#include "host/egress/egress.h"
#include "plan/plan.h"

enum {
	EGRESS_LIVE_MAX = 256, /* rules of one session, counting those that were taken back */
	EGRESS_LIVE_SOURCE_MAX = 64,
	EGRESS_LIVE_TIME_MAX = 32,
};

/* A rule that carrel-egress has taken. Its number is the number of the policy's lines plus its place in the list. */
struct egress_live {
	char text[NETRULE_TEXT_MAX]; /* as netrule_format() has it */
	char source
		[EGRESS_LIVE_SOURCE_MAX]; /* who asked: "session allow, process 123", as seen from outside */
	uid_t uid;
	pid_t pid;
	char added[EGRESS_LIVE_TIME_MAX];   /* "2026-05-04T12:00:00Z" */
	char removed[EGRESS_LIVE_TIME_MAX]; /* empty: it still holds */
};

/*
 * egress_live_judge - whether the policy of @plan lets @text be added: `net-live yes` and `net allow`, no lock of `allow`, no
 * `deny` line about it, a listener for each of its ports, and no address, since routes are made at the start.
 * @ret: NETRULE_TEXT_MAX bytes, the rule as netrule_format() has it. 0, or -errno with @e: ERROR_LOOSENS, ERROR_LOCKED, ERROR_POLICY.
 */
MUST_CHECK int egress_live_judge(
	const struct plan *plan, const char *text, char *ret, struct error *e);

/* egress_live_find - the number of the rule @text in the list that still holds, or -ENOENT. */
int egress_live_find(const struct egress *g, const char *text);

/*
 * egress_live_ask - ask carrel-egress to take the rule that @rule describes (`text`, `uid`, `pid` are filled in), or, if @number is not negative,
 * to give up the rule of that number in the list. One question at a time: g->answered says when the answer has come, and g->answer
 * what it is: 0 or an errno. 0; -EPIPE: it has ended; -ENOSPC: the list is full; or another -errno: nothing was asked.
 */
MUST_CHECK int egress_live_ask(struct egress *g, const struct policy *policy,
	const struct egress_live *rule, int number);

/* egress_live_answered - egress_read() calls it when the answer has come. @errnum: 0, or why carrel-egress refused. */
void egress_live_answered(struct egress *g, int errnum);

/*
 * verdict.h - whether a run with an injected failure was safe, true and clean.
 *
 * Runs in: the torture driver.
 */
#pragma once

#include "trace.h"
#include "world.h"

enum outcome {
	OUTCOME_SAME,      /* as without the injection: it was retried, or did not matter */
	OUTCOME_REFUSED,   /* the command did not run, and the launcher said so */
	OUTCOME_TOLD,      /* it ran, and the launcher reported what went wrong later */
	OUTCOME_CRASHED,   /* the launcher died of it before the command ran */
	OUTCOME_KILLED,    /* the launcher was killed, as wanted */
	OUTCOME_UNREACHED, /* this run did not come to the point */
	OUTCOME_VIOLATION,
	OUTCOME_COUNT,
};

/* What a run without injection gave. */
struct reference {
	char *view;   /* TRACE_VIEW bytes */
	char *output; /* WORLD_TEXT bytes */
	char *workspace;
	char *git;
};

/*
 * verdict_good - whether a run without injection really has every wall: nothing else may serve
 * as a reference. Returns NULL, or what is missing.
 */
const char *verdict_good(const struct trace_result *r, const struct world_left *left);

/*
 * verdict_may_pass_over - whether @hit, inside, may go on as if nothing were where its call fails as
 * @point says; @argument is the call's second one. Outside it is always so.
 */
bool verdict_may_pass_over(
	const struct trace_process *hit, const struct trace_point *point, uint64_t argument);

/*
 * verdict_git - in a repository: nothing that the command left stands in it, and nothing that was there before is gone
 * but what can only be cleared by being read, which then is in the report's quarantine as a whole. @standing: what was left may
 * still stand, as nobody lived who could move it, or he said that he could not. Whether all is well; else @ret_why.
 */
bool verdict_git(const struct world_left *left, const struct reference *good, bool standing,
	char *ret_why, size_t size);

/*
 * verdict - judge one run. May run gc. @ret_why: filled in for a violation.
 */
enum outcome verdict(struct world *w, const struct trace_point *point,
	const struct trace_result *r, struct world_left *left, const struct reference *good,
	char *ret_why, size_t size);

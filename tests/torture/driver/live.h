/*
 * live.h - a live session under torture: what its clients do, and whether it was safe, true and clean.
 *
 * Runs in: the torture driver; the scenario in the traced process "0", which is never failed itself.
 *
 * The scenario starts a session; a first execution, the witness, that waits; a second one, the
 * marker; then it lets the witness end, and ends the session. It notes how each client ended, one
 * line each: "start 0", "exec 0", "witness 0 unharmed", "end 0", and "stray ID" for each session
 * that lives where its start has failed. What is left after all that it ends as well.
 */
#pragma once

#include "verdict.h"

/* live_scenario - @argv: CARREL ROOT BASE HOST HIDDEN REPORT MARKER PROTECTED-NAME [SETTING...]. Its exit status. */
int live_scenario(int argc, char **argv);

/* As verdict_good() and verdict(), of verdict.h. */
const char *live_verdict_good(const struct trace_result *r, const struct world_left *left);
enum outcome live_verdict(struct world *w, const struct trace_point *point,
	const struct trace_result *r, struct world_left *left, const struct reference *good,
	char *ret_why, size_t size);

/*
 * output.h - the policy's settings for standard output and error, and what carrel tells of both at the end.
 *
 * Runs in: S, or the client of an exec.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "host/report/report.h"
#include "host/stdio/stdio.h"
#include "plan/policy.h"

/* output_of_policy - the settings output-budget, output-max and merge-output. */
struct stdio_output output_of_policy(const struct policy *policy);

/*
 * output_report - what came on the streams of @s, for the report. After stdio_close().
 * @arena: owns the texts. Without a budget and a bound it fills in nothing. 0 or -ENOMEM.
 */
MUST_CHECK int output_report(const struct stdio *s, struct arena *arena, struct report *ret);

/*
 * output_report_faults - say on stderr what is wrong with a saved output: it could not be written; it is longer
 * than output-max; it went with the session, unless @kept. After stdio_close().
 * @quiet: errors alone.
 */
void output_report_faults(const struct stdio *s, bool quiet, bool kept);

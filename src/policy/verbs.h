/*
 * verbs.h - the verbs of carrel-policy, a file for each.
 *
 * Runs in: carrel-policy, outside, as the caller. May not: change anything, the session's directory
 * and the report included: nothing here has an effect.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "host/launch/prepare.h"
#include "host/machine/explain.h"

enum {
	STATUS_FINDINGS =
		1, /* `policy check`: it is wrong; host/machine/explain.h has the others */
};

/* Each takes argv, whose words from @first on are its own, and returns the exit status. */

/* verb_plan - `carrel plan [--json] [SETTING...] [-- COMMAND]`. */
int verb_plan(int argc, char **argv, int first);

/* verb_policy - `carrel policy show|check ...`. */
int verb_policy(int argc, char **argv, int first);

/* verb_check - `carrel policy check [--system] FILE...`. */
int verb_check(int argc, char **argv, int first);

/* verb_why - `carrel why [SETTING...] | -s ID  PATH | HOST[:PORT] | SYSCALL ...`. */
int verb_why(int argc, char **argv, int first);

/* verb_explain - for the narrator of a session (host/explain/narrator.h): `carrel-policy explain SETTING...`. */
int verb_explain(int argc, char **argv, int first);

/* --- for all of them -------------------------------------------------------------------------- */

/* verb_write - a `write` for the printers: to stdout. 0 or -errno. */
int verb_write(void *context, const void *data, size_t size);

/* verb_output_failed - stdout could not be written. Returns STATUS_CARREL. */
int verb_output_failed(int r);

/* verb_usage - @usage and the settings, to stdout. Returns the exit status. */
int verb_usage(const char *usage);

/*
 * verb_prepared - a verb with settings and --json: reads its arguments from @first, prepares as far as @until,
 * and calls @show; prints @usage if that is asked for. @show: its @rest is the first word after the settings, or
 * NULL; it returns the exit status, as this function does.
 */
int verb_prepared(enum prepare_until until, int argc, char **argv, int first, const char *usage,
	int (*show)(struct prepared *p, bool json, const char *rest));

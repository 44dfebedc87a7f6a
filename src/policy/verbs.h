/*
 * verbs.h - what carrel-policy does, a file for each verb.
 *
 * Runs in: carrel-policy, outside, as the caller. May not: change anything, the session's directory
 * and the report included: nothing here has an effect.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

enum {
	STATUS_FINDINGS = 1, /* `policy check`: it is wrong */
	STATUS_CARREL = 125,
};

/* Each takes argv, whose words from @first on are its own, and returns the exit status. */

/* verb_plan - `carrel plan [--json] [SETTING...] [-- COMMAND]`. */
int verb_plan(int argc, char **argv, int first);

/* verb_policy - `carrel policy show|check ...`. */
int verb_policy(int argc, char **argv, int first);

/* verb_check - `carrel policy check [--system] FILE...`. */
int verb_check(int argc, char **argv, int first);

/* --- for all of them -------------------------------------------------------------------------- */

/* verb_say - an error on stderr, as the launcher says it. Returns STATUS_CARREL. */
int verb_say(const struct error *e);

/*
 * verb_unknown - say that @word is none of @names (NULL: that one is missing), and which was
 * probably meant. Returns STATUS_CARREL.
 */
int verb_unknown(const char *word, const char *const *names, size_t count);

/* verb_write - a `write` for the printers: to stdout. 0 or -errno. */
int verb_write(void *context, const void *data, size_t size);

/* verb_output_failed - stdout could not be written. Returns STATUS_CARREL. */
int verb_output_failed(int r);

/* verb_usage - @usage and the settings, to stdout. Returns the exit status. */
int verb_usage(const char *usage);

/*
 * options.h - the options of the verbs that talk to a live session.
 *
 * Runs in: the client. Options have two dashes and are written in full; -s, -h and -c are the only
 * short ones. A value is the next argument or follows '='. If an option is given twice, the later one counts. Options end before
 * the first word without a dash, or after "--".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct client_option {
	const char *name;        /* without dashes */
	char letter;             /* 0: none */
	const char *placeholder; /* of its value; NULL: a flag */
	const char **values;     /* may be given many times: room for argc values; else NULL */
	/* set by options_read() */
	unsigned count;
	const char *value; /* the last one */
	bool off; /* for a flag that is a setting: --no-NAME came last; the count is 0 then */
};

/*
 * options_read - read argv from @first on into @options.
 * @usage: the hint if something is wrong. @ret_next: index of the first word after the options.
 * Returns 0; 1: it met -h or --help; -errno with @e (ERROR_USAGE).
 */
MUST_CHECK int options_read(int argc, const char *const *argv, int first,
	struct client_option *options, size_t count, const char *usage, int *ret_next,
	struct error *e);

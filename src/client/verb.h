/*
 * verb.h - reads the words of a verb, with options anywhere among its operands, and prints its help.
 *
 * Runs in: the client. On top of client/options.h, which ends at the first operand.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "client/options.h"

/* What --help shows. */
struct verb_help {
	const char *usage; /* "carrel scratch get [-s ID] NAME" */
	const char *about; /* the rest, lines with their newlines */
};

/*
 * verb_read - read argv from @first on: options up to "--", the rest are operands.
 * @ret_words: room for argc words. Returns 0; 1: help was asked for, and shown; -errno with @e:
 * ERROR_USAGE, also if there are fewer than @least or more than @most operands.
 */
MUST_CHECK int verb_read(const struct verb_help *h, int argc, const char *const *argv,
	int first, struct client_option *options, size_t count, const char **ret_words,
	size_t *ret_count, size_t least, size_t most, struct error *e);

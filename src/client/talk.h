/*
 * talk.h - results of a verb, on stdout.
 *
 * Runs in: the client.
 */
#pragma once

#include "base/error.h"

/*
 * talk_result - write @size bytes to stdout.
 * Returns 0, or -errno with @e: a result that nobody got is a failure.
 */
MUST_CHECK int talk_result(const void *data, size_t size, struct error *e);

/* talk_json - a `write` for json_init(): to stdout. @context: unused. */
int talk_json(void *context, const void *data, size_t size);

/*
 * talk_name - @name as one line of text: backslashes and control characters become \xNN, all other
 * bytes stay. Cut to @size, always terminated.
 */
void talk_name(const char *name, char *ret_text, size_t size);

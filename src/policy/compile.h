/*
 * compile.h - a shipped filter with the `syscall` lines of a policy on top, compiled at run time.
 *
 * Runs in: carrel-policy, started by the launcher (host/load/filter_cache.h) or by hand.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

struct compile_line {
	const char *file; /* where it was written */
	unsigned line;
	const char *text; /* "allow NAME if arg0 == 1" */
};

/*
 * compile_filter - the program for the machine that this runs on, in the form of a file of the cache.
 * @arena: FILTER_ARENA_SIZE at least; owns the result. @base: a shipped filter, e.g. "default".
 * @ret_data: struct filter_file_header and the instructions.
 * Returns 0 or -errno with @e: ERROR_POLICY (no such filter, a wrong line; on = file:line),
 * ERROR_LIMIT, ERROR_INTERNAL (the program is not what the text says: a fault of ours).
 */
MUST_CHECK int compile_filter(struct arena *arena, const char *base,
	const struct compile_line *lines, size_t count, const void **ret_data, size_t *ret_size,
	struct error *e);

/*
 * compile_main - the verb `compile BASE [FILE LINE TEXT]...`: the result goes to stdout, which may
 * not be a terminal. After failure stdout gets the struct error instead, for the launcher, which is
 * of the same build, and stderr the message.
 * @argc, @argv: from the verb on. Returns the exit status.
 */
int compile_main(int argc, char **argv);

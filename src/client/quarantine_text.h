/*
 * quarantine_text.h - the text of one file in quarantine, line by line.
 *
 * Runs in: the client, outside. For quarantine_show.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

struct quarantine_text {
	const char *text; /* any bytes */
	size_t size;
	bool cut;    /* the file is longer */
	bool absent; /* the file does not exist */
};

/* quarantine_text_read - the file that @place (O_PATH) is; -EINVAL for what is no regular file, or -errno. */
MUST_CHECK int quarantine_text_read(struct quarantine_text *ret, struct arena *a, int place);

/* quarantine_text_print - print all lines, each after @prefix; what a terminal would obey as \xNN. 0 or -errno with @e. */
MUST_CHECK int quarantine_text_print(
	const struct quarantine_text *t, const char *prefix, struct error *e);

/*
 * quarantine_text_diff - print the lines in which @was and @would differ: it leaves out the lines that both begin and end with,
 * and prints the rest after - and +. @ret_differ: whether they differ. 0 or -errno with @e.
 */
MUST_CHECK int quarantine_text_diff(const struct quarantine_text *was,
	const struct quarantine_text *would, bool *ret_differ, struct error *e);

/* quarantine_text_same - whether they are the same, as far as they were read. */
bool quarantine_text_same(const struct quarantine_text *a, const struct quarantine_text *b);

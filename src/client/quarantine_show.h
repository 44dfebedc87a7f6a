/*
 * quarantine_show.h - what is in quarantine, for people: nothing in it reaches a terminal as it is.
 *
 * Runs in: the client, outside. May not: open anything but regular files and directories, follow a link.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "host/quarantine/quarantine_held.h"

/* quarantine_show - print where it appeared, where it is, since when, and what is in it. @a: for its work. 0 or -errno. */
MUST_CHECK int quarantine_show(
	const struct quarantine_held *h, struct arena *a, struct error *e);

/* quarantine_diff - print what restoring it would change. Otherwise the same. */
MUST_CHECK int quarantine_diff(
	const struct quarantine_held *h, struct arena *a, struct error *e);

/* quarantine_format_age - "12s", "5m", "3h", "40d". */
void quarantine_format_age(int64_t seconds, char *ret, size_t size);

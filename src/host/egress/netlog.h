/*
 * netlog.h - where `net-log` leads.
 *
 * Runs in: the launcher, outside, with the caller's rights.
 */
#pragma once

#include "base/error.h"
#include "host/report/toolplace.h"

/*
 * netlog_open - open @target, a path or "fd:N", for appending. A regular file is made where there is none (0600); a
 * FIFO or a character device is written as it is, and never waited for. A place where tools can write is refused:
 * @place says which these are. The descriptor, or -errno with @e (ERROR_REPORT).
 */
MUST_CHECK int netlog_open(const char *target, const struct toolplace *place, struct error *e);

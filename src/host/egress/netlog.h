/*
 * netlog.h - where `net-log` leads.
 *
 * Runs in: the launcher, outside, with the caller's rights.
 */
#pragma once

#include "base/error.h"
#include "host/report/toolplace.h"

/*
 * netlog_open - open @target, a path or "fd:N", for appending. Makes a regular file where there is none (0600). Writes
 * to a FIFO or a character device directly, and never waits for it. Refuses a place where tools can write, which
 * @place lists. The descriptor, or -errno with @e (ERROR_REPORT).
 */
MUST_CHECK int netlog_open(const char *target, const struct toolplace *place, struct error *e);

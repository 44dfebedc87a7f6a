/*
 * leaked.h - the processes that a session without namespaces left behind when its init was lost: they are found
 * among our descendants, and killed.
 *
 * Runs in: S. We are a child subreaper (prctl(2)): a process that loses its parent stays our descendant.
 */
#pragma once

#include "base/error.h"

/* leaked_filters - how many system-call filters this process has, or -errno. Before the session begins. */
MUST_CHECK int leaked_filters(void);

/*
 * leaked_end - kill every descendant that has more than @filters system-call filters, and wait
 * until none lives. A process never loses a filter (seccomp(2)), so these are the session's; other
 * children of S are left alone. They are stopped first, until no new one appears: nothing can fork
 * faster than it is killed. Reaps nothing. 0 or -errno, where /proc cannot be read.
 */
MUST_CHECK int leaked_end(unsigned filters);

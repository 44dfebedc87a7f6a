/*
 * mountwatch.h - the mounts of a session, as the kernel lists them: /proc/PID/mountinfo, proc(5).
 *
 * Runs in: S, while the session lives, and the coverer's child. Thousands of mounts of the host can be in it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "plan/plan.h"

/*
 * mountwatch_open - a descriptor that polls EPOLLPRI when init's mounts change, or -errno.
 *
 * -ENOENT: they cannot be seen (hidepid), or init has ended already.
 */
MUST_CHECK int mountwatch_open(pid_t init);

/*
 * mountwatch_missing - *@ret_path: the first place of the plan where nothing is mounted any more, or NULL. @fd: from
 * mountwatch_open(). 0, or -errno; -EINVAL: init has ended.
 */
MUST_CHECK int mountwatch_missing(int fd, const struct plan *plan, const char **ret_path);

/*
 * mountwatch_lost - where nobody can cover it again: whether the session has to end, for something of the plan is not
 * mounted any more, or that cannot be told. @fd: from mountwatch_open(). @e says which.
 */
bool mountwatch_lost(int fd, const struct plan *plan, struct error *e);

/* A copy of the table, of any length. */
struct mountwatch_table {
	char *text; /* ended by a NUL */
	size_t size;
};

/* mountwatch_table_read - 0 or -errno; -EINVAL: whose mounts @fd lists has ended. mountwatch_table_free gives it back. */
MUST_CHECK int mountwatch_table_read(int fd, struct mountwatch_table *ret);
void mountwatch_table_free(struct mountwatch_table *table);

/* mountwatch_table_has - whether something is mounted at @path. */
bool mountwatch_table_has(const struct mountwatch_table *table, const char *path);

/*
 * mountwatch.h - the mounts of a session, as the kernel lists them: /proc/PID/mountinfo, proc(5).
 *
 * Runs in: S, while the session lives, and the coverer's child. The list can have thousands of the host's mounts.
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
 * -ENOENT: /proc hides init (hidepid), or init has ended.
 */
MUST_CHECK int mountwatch_open(pid_t init);

/*
 * mountwatch_missing - *@ret_path: the first place of the plan where nothing is mounted any more, or NULL. @fd: from
 * mountwatch_open(). 0, or -errno; -EINVAL: init has ended.
 */
MUST_CHECK int mountwatch_missing(int fd, const struct plan *plan, const char **ret_path);

/*
 * mountwatch_lost - for a session without a coverer: does it have to end, because a mount of the plan is missing, or because
 * that cannot be found out? @fd: from mountwatch_open(). @e says which.
 */
bool mountwatch_lost(int fd, const struct plan *plan, struct error *e);

/* A copy of the mount table, of any length. */
struct mountwatch_table {
	char *text; /* ended by a NUL */
	size_t size;
};

/* mountwatch_table_read - 0 or -errno; -EINVAL: the process of @fd has ended. mountwatch_table_free - free its memory. */
MUST_CHECK int mountwatch_table_read(int fd, struct mountwatch_table *ret);
void mountwatch_table_free(struct mountwatch_table *table);

/* mountwatch_table_has - whether something is mounted at @path. */
bool mountwatch_table_has(const struct mountwatch_table *table, const char *path);

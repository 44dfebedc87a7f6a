/*
 * mountwatch.h - notices when something outside takes a mount of the session away.
 *
 * Runs in: S, while the session lives. When a file is replaced, renamed or removed on the host, the
 * kernel detaches what is mounted on it in every mount namespace (d_invalidate, __detach_mounts): a
 * protected `.git/config` that the host's git rewrites is then no longer protected inside. Nothing
 * can prevent that from below, so the session is ended as soon as it is seen.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "plan/plan.h"

/*
 * mountwatch_open - a descriptor that polls EPOLLPRI when init's mounts change, or -errno. See: proc(5).
 *
 * -ENOENT: they cannot be seen (hidepid), or init has ended already.
 */
MUST_CHECK int mountwatch_open(pid_t init);

/*
 * mountwatch_lost - whether the session has to end: something of the plan is not mounted any more,
 * or that cannot be told. @fd: from mountwatch_open(). @e says which.
 */
bool mountwatch_lost(int fd, const struct plan *plan, struct error *e);

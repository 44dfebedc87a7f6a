/*
 * descendants.h - everything that stems from a monitor, whatever session or group it moved to.
 *
 * Runs in: a monitor (and init, to end one that does not answer). It is a child subreaper
 * (PR_SET_CHILD_SUBREAPER, prctl(2)): what a command leaves behind becomes the monitor's child, so
 * that the tree below the monitor is the execution. The tree is read from the session's own /proc.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/*
 * descendants_signal - send @signal to everything that stems from @root. 0 or -errno where /proc cannot
 * be read.
 */
__attribute__((warn_unused_result)) int descendants_signal(pid_t root, int signal);

/*
 * descendants_end_strays - kill what stems from the calling process and from none of its children
 * @kept: what a killed monitor left. The caller reaps them. 0 or -errno.
 */
__attribute__((warn_unused_result)) int descendants_end_strays(const pid_t *kept, size_t count);

/*
 * descendants_end - kill and reap all of them; it returns at once if there are none. They are
 * stopped first, until no new one is found: what is stopped cannot fork. @children: signalfd for
 * SIGCHLD.
 * Returns 0 when the monitor has no child any more, or -errno.
 */
__attribute__((warn_unused_result)) int descendants_end(int children);

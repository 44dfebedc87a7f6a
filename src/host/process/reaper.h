/*
 * reaper.h - children that S did not start: what is orphaned to it as pid 1 of a container, as a
 * subreaper, or because it was executed by a process that had children already.
 *
 * Runs in: S.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * reaper_is_pid1 - whether we are pid 1: every orphan comes to us, and no signal has a default
 * action that would end us.
 */
bool reaper_is_pid1(void);

/*
 * reaper_reap_unexpected - reap every child that has ended, but for @own, which somebody else waits for.
 * Never waits. See: waitid(2).
 */
void reaper_reap_unexpected(pid_t own);

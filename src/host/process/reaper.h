/*
 * reaper.h - children that S did not start. They become its children when they lose their parents, because S is
 * pid 1 of a container or a subreaper, or they were there before the process executed carrel.
 *
 * Runs in: S.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * reaper_is_pid1 - whether we are pid 1: we adopt every orphan, and no signal ends us by its default action
 * (pid_namespaces(7)).
 */
bool reaper_is_pid1(void);

/*
 * reaper_reap_unexpected - reap every child that has ended, but for @own, which somebody else waits for.
 * Never waits. See: waitid(2).
 */
void reaper_reap_unexpected(pid_t own);

/*
 * placement.h - on which processor the launcher works.
 *
 * Runs in: the launcher.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * placement_part - go on on another processor than @child, just forked, where it waits for this one
 * and another is free. The scheduler does that on a machine of its own; in a virtual machine a
 * processor that rests counts as one that the host has taken away, and whoever is forked stays behind
 * its parent (available_idle_cpu() of the kernel). The caller moves and not the child: what was once
 * given a mask keeps it, and the command would, when the session's cpuset grows. The caller's own mask
 * is what it was when this returns; but it is a given one then, and who is forked later has it: removal
 * workers, and the init of a launch that begins again (`net host` in a policy file, launch.c). Nothing
 * is done where /proc does not tell, where as many are running as there are processors, or in a
 * real-time class.
 * See: sched_setaffinity(2), proc(5).
 */
void placement_part(pid_t child);

/* placement_leave - go on on another processor than @here, where the caller's mask has one. */
void placement_leave(int here);

/* placement_running - the runnable processes in the text of /proc/loadavg. -1: it is not such a text. */
int placement_running(const char *loadavg);

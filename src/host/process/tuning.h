/*
 * tuning.h - what makes a launch faster, or an idle session smaller, and nothing else: without any of it every
 * wall stands and every command ends in the same way.
 *
 * Runs in: the launcher. Each part names the row of `./dev bench` that shows what it is for; what no row
 * shows does not belong here. The figures are in docs/performance.md.
 *
 *   part                                 row        what it gains
 *   tuning_part()                        launch     a quarter of the median in a quiet virtual machine
 *   tuning_find_code(), box/rest.h       session    init 22 KiB, a used monitor 260, the supervisor 64
 */
#pragma once

#include <sys/types.h>

#include "box/box.h"

/*
 * tuning_part - move the launcher to another processor than that of @child, which it has just forked, where the
 * child waits for this processor and another one is free.
 *
 * The scheduler does that by itself on a real machine. In a virtual machine it takes an idle processor for one
 * that the host has taken away (available_idle_cpu() of the kernel), and the child stays behind its parent. The
 * launcher moves, and not the child: a process that was once given a mask keeps it, and the command would not
 * see the session's cpuset grow. The launcher's own mask is afterwards what it was, but it is a given one then,
 * and processes that are forked later inherit it: removal workers, and the init of a launch that begins again
 * (`net host` in a policy file, launch.c). Nothing is done where /proc does not tell, where as many processes
 * run as there are processors, or in a real-time class.
 * See: sched_setaffinity(2), proc(5).
 */
void tuning_part(pid_t child);

/* tuning_leave - move to another processor than @here, where the caller's mask has one. */
void tuning_leave(int here);

/* tuning_running - the number of runnable processes in the text of /proc/loadavg; -1: it is not such a text. */
int tuning_running(const char *loadavg);

/*
 * tuning_find_code - find the segments of this executable that cannot be written. An idle session needs a small
 * part of what setting it up took: it gives these segments back (box/rest.h, madvise(2)), and the kernel reads
 * them again from the page cache when they are needed. Fewer than there are is no error.
 */
void tuning_find_code(struct box_code *ret);

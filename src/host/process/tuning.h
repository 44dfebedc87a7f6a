/*
 * tuning.h - what makes a launch faster, or an idle session smaller, and nothing else: without any of it every
 * wall stands and every command ends in the same way.
 *
 * Runs in: the launcher. Each part names the row of `./dev bench` that shows what it is for; what no row
 * shows does not belong here. The figures are in docs/performance.md.
 *
 *   part                                 row        what it gains
 *   tuning_part()                        launch     a quarter of the median in a quiet virtual machine
 *   box/channel.h: channel_await()       launch     4 to 6 % of that median, half of it in init
 *   tuning_find_code(), box/rest.h       session    init 22 KiB, a used monitor 260, the supervisor 64
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "box/box.h"

/*
 * tuning_part - move @child, which the launcher has just forked and which waits behind it, to another processor where
 * one is free.
 *
 * The scheduler does that by itself on a real machine. In a virtual machine it takes an idle processor for one
 * that the host has taken away (available_idle_cpu() of the kernel), and the child stays behind its parent. What
 * waits is moved at once; what runs is not moved, for it is there already. Afterwards the child's mask is the
 * caller's, and it sees the session's cpuset grow as the caller would. Nothing is done where /proc does not tell,
 * where as many processes run as there are processors, or in a real-time class.
 * Returns whether there was a processor to spare: then init may wait without sleeping (channel_await()).
 * See: sched_setaffinity(2), cpuset(7), proc(5).
 */
bool tuning_part(pid_t child);

/* tuning_move - the same, from the processor @here, whatever else runs. Nothing is done where the caller may use no other. */
void tuning_move(pid_t child, int here);

/* tuning_running - the number of runnable processes in the text of /proc/loadavg; -1: it is not such a text. */
int tuning_running(const char *loadavg);

/*
 * tuning_find_code - find the segments of this executable that cannot be written. An idle session needs a small
 * part of what setting it up took: it gives these segments back (box/rest.h, madvise(2)), and the kernel reads
 * them again from the page cache when they are needed. Fewer than there are is no error.
 */
void tuning_find_code(struct box_code *ret);

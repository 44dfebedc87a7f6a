/*
 * turns.h - how long this process wants to run at a time.
 *
 * Runs in: the supervisor of a live session, and the client of an exec.
 */
#pragma once

/*
 * turns_shorten - ask the scheduler for short turns instead of long ones: what only passes a record on and
 * sleeps again then need not wait until somebody else's turn is over. Its share of the processor is the
 * same. For the whole process and what it forks. Kernels before 6.12 take no notice.
 * See: sched_setattr(2), sched_runtime of SCHED_OTHER.
 */
void turns_shorten(void);

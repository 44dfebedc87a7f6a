/*
 * turns.h - how long this process wants to run at a time.
 *
 * Runs in: the launcher and the supervisor, init, and the client of an exec.
 */
#pragma once

/*
 * turns_shorten - ask the scheduler for short turns instead of long ones: what passes the word on
 * and sleeps again then need not wait until somebody else's turn is over. Its share of the
 * processor is the same. For this process alone: what it forks has turns of the usual length, the
 * payload with it. Nothing is done for a process that has a real-time class or a negative nice
 * value; kernels before 6.12 take no notice.
 * See: sched_setattr(2), sched_runtime of SCHED_OTHER, SCHED_FLAG_RESET_ON_FORK.
 */
void turns_shorten(void);

/*
 * turns.c - see turns.h.
 *
 * Runs in: the launcher and the supervisor, init, and the client of an exec. No heap, no stdio.
 */
#include "box/turns.h"

#include <linux/sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TURN_NS = 100000 }; /* the least that the kernel takes */

/* As the kernel has it; the C library has none. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

void turns_shorten(void)
{
	struct attributes a = { .size = sizeof(a) };

	/* A negative nice value would be lost to what is forked, like the short turns. */
	if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) < 0 || a.policy != SCHED_NORMAL ||
		a.nice < 0)
		return;
	a.runtime_ns = TURN_NS;
	a.flags |= SCHED_FLAG_RESET_ON_FORK;
	(void)syscall(SYS_sched_setattr, 0, &a, 0); /* no wall: as it was, then */
}

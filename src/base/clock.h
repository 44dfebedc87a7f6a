/*
 * clock.h - the time that only goes forward.
 *
 * Runs in: every process outside the box.
 */
#pragma once

#include <stdint.h>
#include <time.h>

/* clock_now_ns - CLOCK_MONOTONIC in nanoseconds. */
static inline int64_t clock_now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail with a valid clock */
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

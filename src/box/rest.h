/*
 * rest.h - how a process of a live session waits while nothing happens: it gives back the memory that it
 * does not need then.
 *
 * Runs in: init, monitors and the supervisor of a live session. host/process/tuning.h lists all that is done
 * for speed or size alone, and why this is.
 */
#pragma once

#include <poll.h>
#include <stdint.h>
#include <sys/mman.h>

#include "box/box.h"

enum { REST_AFTER_MS = 1000 }; /* long enough that a busy session never rests */

/*
 * A function that gives memory back and then waits: within one page, which it keeps. A fault would bring
 * sixteen pages around it.
 */
#define REST_FUNCTION __attribute__((noinline, aligned(512)))

/*
 * rest_give_back - the program's text, but for the page of @here, and the plan; they come again, from the
 * page cache, when used.
 */
static inline void rest_give_back(const struct box *box, const void *here)
{
	uintptr_t kept = (uintptr_t)here & ~(box->code.page - 1);

	/* This is not a wall, and nothing is lost where the kernel refuses it. */
	for (unsigned i = 0; i < box->code.count; i++) {
		uintptr_t start = (uintptr_t)box->code.start[i];
		uintptr_t end = start + box->code.size[i];

		if (kept >= start && kept < end) {
			(void)madvise((void *)start, kept - start, MADV_DONTNEED);
			start = kept + box->code.page;
		}
		(void)madvise((void *)start, end - start, MADV_DONTNEED);
	}
	(void)madvise(box->arena, box->arena_size, MADV_DONTNEED);
}

/*
 * rest_poll - wait for one of @count events, as poll(2) without a timeout; what waits for long gives its
 * memory back. Returns how many there are, or -errno.
 */
__attribute__((warn_unused_result)) int rest_poll(
	const struct box *box, struct pollfd *events, nfds_t count);

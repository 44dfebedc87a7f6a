/*
 * confined.h - look at what tools made, in a child that can read and answer, and nothing else.
 *
 * Runs in: the launcher or the supervisor, outside; what is said to run in the child runs there.
 * The child has the caller's uid and no capability: of what tools made it can read what they could.
 * (As root, in another user's workspace, tools have that user's uid; there it may read all, and no
 * more.) It may use the system calls of policy/reader.policy and open files below some directories
 * (Landlock, where the kernel has it); it has the memory that it was born with, and time until a
 * deadline. May not: be trusted. What it answers is bytes, which the caller checks; that it
 * answered at all does not say that it was not taken over.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What the child has to say. */
struct answer {
	char *bytes;
	size_t used, size;
};

struct confined {
	/*
	 * In the child. 0, or -errno, which confined_run() then returns; what it put is an answer
	 * all the same.
	 */
	int (*work)(void *context, struct answer *answer);
	void *context; /* of the caller: the child has a copy of it, as it has of all memory that is not shared */
	const int *keep; /* descriptors that stay open in the child; all others are closed */
	size_t keep_count;
	int64_t deadline_ns; /* CLOCK_MONOTONIC */
	bool foreign;        /* confined_is_foreign(): it keeps CAP_DAC_READ_SEARCH alone */
};

/*
 * confined_is_foreign - as root: is the writable place @fd (O_PATH) another user's? What tools make
 * in there is that user's as well. A child of root's without any capability could not see what they
 * lock: a mode would be enough to keep it from the review.
 */
bool confined_is_foreign(int fd);

/*
 * confined_run - fork, look, and wait; no longer than until the deadline and half a second for the killed to end.
 * @ret_answer: the caller's memory, @size bytes. @ret_used: bytes of it that the child has filled.
 * Returns what the work returned; -ETIMEDOUT where it was late; -ECHILD where the child died or could not be
 * confined; -EPROTO where what it left is no answer; or -errno where none could be started. Of the last four
 * there is no answer: *ret_used is 0.
 * See: clone(2), pidfd_open(2), seccomp(2), landlock(7), capabilities(7).
 */
MUST_CHECK int confined_run(
	const struct confined *what, char *ret_answer, size_t size, size_t *ret_used);

/*
 * confined_only_below - in the child, before it opens what tools chose: from now on only what is below the
 * directories @below (O_PATH) is opened for reading, and nothing for writing. 0 also where the kernel has
 * no Landlock; -errno, and then the child has to end.
 */
MUST_CHECK int confined_only_below(const int *below, size_t count);

/* answer_put - in the child: append. -E2BIG where there is no room. */
MUST_CHECK int answer_put(struct answer *answer, const void *bytes, size_t size);

/*
 * begin.h - init before the plan is known: the namespaces, and what every plan asks for.
 *
 * Runs in: init, on another processor while the launcher works out the plan. Making a network namespace
 * alone takes longer than all other preparation. Init uses nothing of the caller's here but the channel,
 * and starts nothing.
 */
#pragma once

#include "box/box.h"

struct begin {
	const struct box *box; /* in the shared arena; filled in before CHANNEL_GO */
	void *arena;           /* sealed here as well before the plan is applied */
	size_t arena_size;
	int channel; /* init's end */
	unsigned long
		flags; /* CLONE_NEW* to unshare; the user and pid namespaces are there already.
			* 0: no namespace at all, not those two either */
};

/*
 * begin_main - pid 1 from its first instruction: make the namespaces, wait for CHANNEL_GO, go on as
 * box_init(). Never returns. A failure is reported as CHANNEL_FAILED with a step.
 */
_Noreturn void begin_main(const struct begin *begin);

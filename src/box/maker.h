/*
 * maker.h - the process that makes the namespaces while the plan is still being worked out.
 *
 * Runs in: the maker, a short-lived child of the launcher. A new network namespace alone costs more
 * than the whole rest of the preparation; here it is made on another processor meanwhile.
 */
#pragma once

#include "box/box.h"

/* Between launcher and maker: one shared page, and the box in the shared arena. */
struct maker_status {
	pid_t init;  /* written by the kernel when init is cloned; 0 before */
	int step;    /* enum maker_step */
	int errnum;  /* why that step failed; 0 while none has */
};

enum maker_step {
	MAKER_NAMESPACES,
	MAKER_LOOPBACK,
	MAKER_WAIT,  /* for the launcher's word */
	MAKER_SEAL,
	MAKER_CLONE,
	MAKER_DONE,
};

struct maker {
	struct maker_status *status; /* shared */
	const struct box *box;       /* in the shared arena; filled in before the word is given */
	void *arena;                 /* sealed here as well before init is cloned */
	size_t arena_size;
	int channel;                 /* init's end */
	int launcher_end;            /* the other end: closed at once, or its end would not be seen */
	unsigned long flags;         /* CLONE_NEW* to unshare; the user namespace is there already */
	pid_t launcher;
};

/*
 * maker_main - make the namespaces, wait for CHANNEL_GO, clone init as a child of the launcher.
 * Never returns; status tells how far it came.
 */
_Noreturn void maker_main(const struct maker *maker);

/*
 * attempt.h - trying what a session needs of the machine, in a process that ends with it.
 *
 * Runs in: a child of the launcher, in new namespaces, before any session. Nothing outside changes.
 */
#pragma once

enum attempt_step {
	ATTEMPT_BEGIN,
	ATTEMPT_NAMESPACES,
	ATTEMPT_TREE,  /* taking the root's mounts, read-only */
	ATTEMPT_TMPFS, /* a new file system */
	ATTEMPT_MOVE,  /* mounting it */
	ATTEMPT_MAPS,  /* the launcher's: the ids of the user namespace */
	ATTEMPT_DONE,
};

/* In memory shared with the launcher. */
struct attempt {
	enum attempt_step step; /* the last one begun */
	int error;              /* -errno of it, or 0 */
	int proc;               /* a new procfs: 0 or -errno */
};

/*
 * attempt_main - wait for the end of file on @go[0], then try it all. @flags: CLONE_NEW* to unshare.
 * Never returns.
 */
_Noreturn void attempt_main(struct attempt *ret, unsigned long flags, const int go[2]);

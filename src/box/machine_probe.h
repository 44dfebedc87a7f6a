/*
 * machine_probe.h - tries what a session needs of the machine, in a process that ends afterwards.
 *
 * Runs in: a child of the launcher, in new namespaces, before any session. Nothing outside changes.
 */
#pragma once

enum machine_probe_step {
	MACHINE_PROBE_BEGIN,
	MACHINE_PROBE_NAMESPACES,
	MACHINE_PROBE_TREE,  /* taking the root's mounts, read-only */
	MACHINE_PROBE_TMPFS, /* a new file system */
	MACHINE_PROBE_MOVE,  /* mounting it */
	MACHINE_PROBE_MAPS,  /* the launcher's: the ids of the user namespace */
	MACHINE_PROBE_DONE,
};

/* In memory shared with the launcher. */
struct machine_probe {
	enum machine_probe_step step; /* the last one begun */
	int error;                    /* -errno of it, or 0 */
	int proc;                     /* a new procfs: 0 or -errno */
};

/*
 * machine_probe_main - wait for the end of file on @go[0], then try it all. @flags: CLONE_NEW* to unshare.
 * Never returns.
 */
_Noreturn void machine_probe_main(
	struct machine_probe *ret, unsigned long flags, const int go[2]);

/*
 * confine_self.h - the supervisor's own wall, in two steps, and the parts that its children's walls
 * are made of.
 *
 * Runs in: S, once init is cloned; its children. A fault in S must not be worth more than what S still has to do:
 * watch, relay, quarantine, remove, report. Until it has started the coverer (host/cover/cover.h) that is more than
 * afterwards, since a child under a filter can do no more than the filter allows.
 */
#pragma once

#include <linux/capability.h>

#include "base/error.h"

/* The capabilities that the coverer needs if root itself made the session's mounts. */
enum {
	CONFINE_COVERER = 1u << CAP_SYS_ADMIN | 1u << CAP_SYS_CHROOT | 1u << CAP_SYS_PTRACE |
		1u << CAP_KILL | 1u << CAP_DAC_READ_SEARCH
};

/*
 * confine_self - the first step, before any command runs: no_new_privs, and the shipped `supervisor` filter, which
 * is what S and the coverer need together. After this S can neither execute anything nor open a socket. As root the
 * capabilities that teardown needs are left, and those of the coverer permitted, but not effective.
 * Returns 0 or -errno.
 */
MUST_CHECK int confine_self(void);

/*
 * confine_settle - the second step: drop the coverer's capabilities, and refuse its calls (the
 * filter `settled`, on top of the first). S takes it when the coverer has been started, or when
 * there is nothing more to cover; a child of S that goes on by itself takes it when it begins. Once
 * is enough; a further time loads a further filter. Returns 0 or -errno; after a failure the
 * capabilities may be gone, and the calls be there.
 */
MUST_CHECK int confine_settle(void);

/*
 * confine_self_capabilities - keep, of the permitted capabilities of this process, those of the
 * mask @kept, and make them effective; the inheritable ones go. Returns 0 or -errno. See:
 * capabilities(7).
 */
MUST_CHECK int confine_self_capabilities(unsigned kept);

/*
 * confine_self_filter - load the shipped filter @name on top of those that the process has. It needs no_new_privs or
 * CAP_SYS_ADMIN (seccomp(2)). Returns 0, -ENOENT where no such filter ships, or -errno.
 */
MUST_CHECK int confine_self_filter(const char *name);

/*
 * identity.h - whose rights the payload has, as the kernel sees it.
 *
 * Runs in: the launcher, outside.
 */
#pragma once

#include "base/error.h"
#include "plan/plan.h"

struct identity {
	uid_t uid; /* the caller's effective ids, and the payload's as it sees them */
	gid_t gid;
	bool privileged;
	const char *unprivileged_why; /* root, but not privileged: what is missing */
	uid_t kernel_uid;             /* the payload's as seen outside */
	gid_t kernel_gid;
};

/*
 * identity_guess - the same without looking which ids can be given away: right on most machines.
 * Its kernel ids are the caller's.
 */
void identity_guess(struct identity *ret);

/*
 * identity_choose - user mode or privileged mode (docs/architecture.md), and in the second the
 * kernel uid and gid. Returns 0 or -errno with @e.
 */
MUST_CHECK int identity_choose(struct identity *ret, struct error *e);

/*
 * identity.h - whose rights the payload has, as the kernel sees it.
 *
 * Runs in: the launcher, outside.
 */
#pragma once

#include "base/error.h"
#include "plan/plan.h"

/*
 * identity_choose - user mode or privileged mode (docs/architecture.md), and in the second the
 * kernel uid and gid. Fills privileged, unprivileged_why, kernel_uid, kernel_gid of @f.
 * Returns 0 or -errno with @e.
 */
MUST_CHECK int identity_choose(struct facts *f, struct error *e);

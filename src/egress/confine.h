/*
 * confine.h - carrel-egress's own walls.
 *
 * Runs in: carrel-egress, when it has read its rules and before it touches what anybody else can write to.
 */
#pragma once

#include "base/error.h"

/*
 * confine - no capability, no new privileges, not dumpable, no core file, no file by any path (Landlock, where the kernel has
 * it; with it no abstract socket and no signal to others), and the filter policy/egress.policy.
 * 0, or -errno: then it has to end.
 */
MUST_CHECK int confine(void);

/*
 * confine.h - carrel-egress's own walls.
 *
 * Runs in: carrel-egress, when it has read its rules and before it reads what anybody else can write.
 */
#pragma once

#include "base/error.h"

/*
 * confine - give up all capabilities, new privileges, core files and every file by its path (Landlock, where the kernel has
 * it; with it also abstract sockets and signals to others), become not dumpable, and load the filter policy/egress.policy.
 * 0, or -errno: then the program has to end.
 */
MUST_CHECK int confine(void);

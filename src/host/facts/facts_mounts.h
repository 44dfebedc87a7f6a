/*
 * facts_mounts.h - where other mounts show what is hidden or protected.
 *
 * Runs in: the launcher and carrel-policy, outside. May not: change anything. A file system may be mounted at
 * several places, as a whole or in part, and an overlay shows what lies in its layers: a path that is hidden is
 * hidden wherever it is seen. A snapshot, a copy and a hard link are other files: no mount tells of them.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "plan/plan.h"

/*
 * facts_mounts - add a fact for each place where a mount shows what a hide rule names; what a
 * protect rule names, if it is writable there; or a place that never is the host's inside. Call it
 * after facts_cover().
 * @policy: for the workspace's mode. Returns 0, or -errno with @e: ERROR_UNAVAILABLE (the mounts
 * cannot be told), ERROR_LIMIT.
 */
MUST_CHECK int facts_mounts(
	struct facts *facts, struct arena *a, const struct policy *policy, struct error *e);

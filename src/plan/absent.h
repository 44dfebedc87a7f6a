/*
 * absent.h - protected paths that were not there: nothing may be there at the end either.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#pragma once

#include "plan/emit.h"

/*
 * absent_collect - note in the plan each protected path that tools could write to on the host: an
 * absent one must stay absent, an existing one must stay the same thing. Call it after all nodes
 * were placed. Returns 0 or -errno with the builder's error.
 */
MUST_CHECK int absent_collect(struct builder *b);

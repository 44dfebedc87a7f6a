/*
 * absent.h - protected paths that were not there: nothing may be there at the end either.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#pragma once

#include "plan/emit.h"

/*
 * absent_collect - note in the plan each protected path that lies where the tools can write to the
 * host: whether it is absent and has to stay so, or which thing it is and has to stay. After all nodes were placed. Returns 0 or -errno with the builder's error.
 */
MUST_CHECK int absent_collect(struct builder *b);

/*
 * explain.h - why the machine refused, and what to do about it.
 *
 * Runs in: the launcher, outside, on the way to an error message. May look at /proc/sys.
 */
#pragma once

#include "base/error.h"
#include "plan/plan.h"

/* explain_clone - creating the namespaces failed with @errnum. Fills @e, returns -errno. */
int explain_clone(int errnum, struct error *e);

/* explain_op - operation (or step, box/channel.h) @op failed inside with @errnum. As above. */
int explain_op(const struct plan *plan, int op, int errnum, struct error *e);

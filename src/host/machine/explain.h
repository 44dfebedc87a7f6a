/*
 * explain.h - why the machine refused, and what to do about it.
 *
 * Runs in: the launcher, outside, on the way to an error message. May look at /proc/sys.
 */
#pragma once

#include "base/error.h"
#include "plan/plan.h"

/* explain_clone - creating the namespaces of a session, @live or not, failed with @errnum. Fills @e, returns -errno. */
int explain_clone(int errnum, bool live, struct error *e);

/*
 * explain_exec - the payload failed in @step (box/channel.h) with @errnum. @name: the command; @cwd,
 * @path_env: where it was to start and be looked for, or NULL; @live: by a session that goes on. Fills @e,
 * returns the exit status.
 */
int explain_exec(int step, int errnum, const char *name, const char *cwd, const char *path_env,
	bool live, struct error *e);

/* explain_cwd - what explain_exec() says where @cwd cannot be entered. Fills @e, returns -errnum. */
int explain_cwd(int errnum, const char *cwd, struct error *e);

/* explain_op - operation (or step, box/channel.h) @op failed inside with @errnum. As above. */
int explain_op(const struct plan *plan, int op, int errnum, bool live, struct error *e);

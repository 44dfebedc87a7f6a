/*
 * exec_explain.h - what one execution of a live session was refused, as `carrel exec` prints it.
 *
 * Runs in: the client. The session's observer has noted it (host/explain/explain.h); the client looks up what it means.
 */
#pragma once

#include <stdbool.h>

#include "client/execution.h"
#include "host/explain/explain.h"

/*
 * exec_explain_check - check that the session has an observer: it has to be there before the session's first process.
 * 0, or -EINVAL with @e (ERROR_SESSION).
 */
MUST_CHECK int exec_explain_check(const struct client_session *s, struct error *e);

/*
 * exec_explain - have it looked up, and print it, unless @quiet. @ret: for the report; nobody frees its texts, which go with the
 * program. Returns whether the session has an observer.
 */
bool exec_explain(struct explain *ret, const struct client_session *s,
	struct execution_end *end, bool quiet);

/*
 * exec_explain.h - what one execution of a live session was refused, as `carrel exec` says it.
 *
 * Runs in: the client. The session's observer has noted it (host/explain/explain.h); what it means is looked up here.
 */
#pragma once

#include <stdbool.h>

#include "client/execution.h"
#include "host/explain/explain.h"

/*
 * exec_explain_check - that what the session refuses is seen: whoever sees it has to be there before the first process.
 * 0, or -EINVAL with @e (ERROR_SESSION).
 */
MUST_CHECK int exec_explain_check(const struct client_session *s, struct error *e);

/*
 * exec_explain - have it looked up, and say it, unless @quiet. @ret: for the report; its texts are not given back, as the program
 * ends with them. Whether the session has an observer.
 */
bool exec_explain(struct explain *ret, const struct client_session *s,
	struct execution_end *end, bool quiet);

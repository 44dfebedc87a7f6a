/*
 * session_logs.h - `carrel session logs`: what a service wrote.
 *
 * Runs in: the client.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/*
 * session_logs - print the log of a service to stdout; to a terminal with what that would obey as \xNN.
 * @id: of the session, or NULL. @name: of the service, or its number. @follow: go on until the service has ended.
 * Returns 0 or -errno with @e: ERROR_SESSION; ERROR_EXECUTION: there is no such service, or it has no log;
 * ERROR_PATH: the log cannot be read.
 */
MUST_CHECK int session_logs(const char *id, const char *name, bool follow,
	const char *const *environment, struct error *e);

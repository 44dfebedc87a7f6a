/*
 * path.h - paths of a command line, on their way to a session.
 *
 * Runs in: the client.
 */
#pragma once

#include "base/error.h"

/*
 * client_absolute - @path, against the working directory where it is relative; not resolved otherwise.
 * Freed by the caller. NULL with @e.
 */
char *client_absolute(const char *path, struct error *e);

/*
 * path.h - makes the paths of a command line absolute, for a session.
 *
 * Runs in: the client.
 */
#pragma once

#include "base/error.h"

/*
 * client_absolute - @path; if it is relative, below the working directory. Not resolved otherwise.
 * The caller frees it. NULL with @e.
 */
char *client_absolute(const char *path, struct error *e);

/*
 * libexec.h - the other programs of carrel: where they lie, and becoming one of them.
 *
 * Runs in: the launcher, outside.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

/*
 * libexec_path - the absolute path of @program: beside this executable (a build tree), else in the
 * directory it was configured with. Never searched in PATH. 0 or -errno.
 */
MUST_CHECK int libexec_path(const char *program, char *ret_path, size_t size);

/* libexec_become - execute @program with @argv in this process' place; returns only to fail: 125. */
int libexec_become(const char *program, char *const *argv);

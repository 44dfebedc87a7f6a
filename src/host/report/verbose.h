/*
 * verbose.h - the setting `verbose`: what a session is, on stderr, before its command begins.
 *
 * Runs in: the launcher.
 */
#pragma once

#include <stdbool.h>

#include "plan/plan.h"

/*
 * verbose_report - tell where the session is, which walls are missing and why, and what carrel noticed about
 * the repositories in its workspace (docs/git.md). Nothing without `verbose`.
 */
void verbose_report(const struct plan *plan);

/* verbose_passed_over - tell that carrel ignores --env for @variable (NAME or NAME=VALUE), since it sets that variable itself. */
void verbose_passed_over(const char *variable);

/* verbose_tell_covered - tell that the host replaced @path (@gone: removed it) and that carrel covered it again. With `verbose` alone. */
void verbose_tell_covered(const char *path, bool gone);

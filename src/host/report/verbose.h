/*
 * verbose.h - the setting `verbose`: what a session is, on stderr, before its command begins.
 *
 * Runs in: the launcher.
 */
#pragma once

#include <stdbool.h>

#include "plan/plan.h"

/*
 * verbose_report - where the session is, which walls it does without and why, and what was noticed about
 * the repositories in its workspace (docs/git.md). Nothing without `verbose`.
 */
void verbose_report(const struct plan *plan);

/* verbose_passed_over - that --env names @variable, NAME or NAME=VALUE, which carrel sets itself and no other way. */
void verbose_passed_over(const char *variable);

/* verbose_tell_covered - @path was replaced on the host, and is covered again; @gone: removed. For `verbose` alone. */
void verbose_tell_covered(const char *path, bool gone);

/*
 * verbose.h - the setting `verbose`: what a session is, on stderr, before its command begins.
 *
 * Runs in: the launcher.
 */
#pragma once

#include "plan/plan.h"

/*
 * verbose_report - where the session is, which layers it does without and why, and what was noticed about
 * the repositories in its workspace (docs/git.md). Nothing without `verbose`.
 */
void verbose_report(const struct plan *plan);

/*
 * exec_notes.h - what the caller of `carrel exec` is told of an execution beside its status.
 *
 * Runs in: the client. Names that tools asked for were checked by the session (host/launch/notes.h).
 */
#pragma once

#include "client/execution.h"

/* exec_notes_print - on standard error, once it has ended. @quiet: only what was moved away, since somebody may look for it. */
void exec_notes_print(const struct execution_end *end, bool quiet);

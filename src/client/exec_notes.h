/*
 * exec_notes.h - what the caller of `carrel exec` is told about an execution besides its status.
 *
 * Runs in: the client. The session has checked the names that tools asked for (host/launch/notes.h).
 */
#pragma once

#include "client/execution.h"

/* exec_notes_print - print them on standard error, once it has ended. @quiet: only what was moved away, since somebody may look for that. */
void exec_notes_print(const struct execution_end *end, bool quiet);

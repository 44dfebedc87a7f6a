/*
 * exec_refused.h - what a command was refused, in the answer of the tool `exec`.
 *
 * Runs in: carrel-agent, outside. carrel-policy looks up what it means, and this program waits for it.
 */
#pragma once

#include <jansson.h>

#include "agent/agent_session.h"
#include "agent/buffer.h"

/*
 * exec_refused - add it to both forms of the answer, unless @arguments say `explain: false`. If they ask for it and the session has no
 * observer, add that. @board: it came with the end (host/explain/board.h), taken; -1: none came. 0 or -ENOMEM.
 */
MUST_CHECK int exec_refused(const struct agent_session *d, const json_t *arguments, int *board,
	json_t *structured, struct buffer *text);

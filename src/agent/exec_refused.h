/*
 * exec_refused.h - what a command was refused, in the answer of the tool `exec`.
 *
 * Runs in: carrel-agent, outside. What it means is looked up by carrel-policy, which is waited for.
 */
#pragma once

#include <jansson.h>

#include "agent/agent_session.h"
#include "agent/buffer.h"

/*
 * exec_refused - add it to both forms of the answer, unless @arguments say `explain: false`; where they ask for it and the session
 * does not see it, that. @board: what came with the end (host/explain/board.h), taken; -1: nothing did. 0 or -ENOMEM.
 */
MUST_CHECK int exec_refused(const struct agent_session *d, const json_t *arguments, int *board,
	json_t *structured, struct buffer *text);

/*
 * exec_notes.h - what a model is told about a command besides its output: the walls that it met.
 *
 * Runs in: carrel-agent, outside. The notes are short, and come from the session, not from the command's output.
 */
#pragma once

#include "agent/agent_session.h"

/*
 * exec_notes_network - if a command failed that looked for a network where there is none, or for names that are not allowed: say
 * that trying again is in vain.
 * @end: how it ended; @said: what its body says. Adds the note to the array @notes, and to @text as a line.
 */
void exec_notes_network(
	const struct control_record *end, const char *said, json_t *notes, struct buffer *text);

/*
 * exec_notes_moved - say what was moved to quarantine since the last call.
 * @m: the answer to CONTROL_MOVED. @notes, @text: as above.
 */
void exec_notes_moved(struct agent_session *d, const struct control_message *m, json_t *notes,
	struct buffer *text);

/*
 * exec_request.h - what the tool `exec` was asked to run, as the bytes that the session takes.
 *
 * Runs in: carrel-agent, outside. PURE, but for the sealed file.
 */
#pragma once

#include <jansson.h>

#include "agent/agent_session.h"
#include "agent/buffer.h"

/*
 * exec_request_build - the body of an EXEC record (box/request.h) for the tool's @arguments.
 * @shell: what runs a command line.
 * @ret: it is appended there. @ret_why: with -EINVAL, what is wrong.
 * Returns 0, -EINVAL or -ENOMEM.
 */
MUST_CHECK int exec_request_build(const struct agent_session *d, const json_t *arguments,
	const char *shell, struct buffer *ret, struct buffer *ret_why);

/* exec_request_limit - the word for the limit that ended it, or NULL. @too_long: its output was too long. */
const char *exec_request_limit(const struct control_record *end, bool too_long);

/*
 * exec_request_explain - why the command of @end was not started, and what to do; for the model.
 * Appended to @ret, unless that says something already.
 */
void exec_request_explain(const struct agent_session *d, const json_t *arguments,
	const struct control_record *end, struct buffer *ret);

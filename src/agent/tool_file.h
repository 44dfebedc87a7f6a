/*
 * tool_file.h - what the tools for files share: they have a path opened inside the session, and say what to do if
 * that fails.
 *
 * Runs in: carrel-agent, outside. The descriptor was opened by a process inside, with its walls.
 */
#pragma once

#include "agent/tools.h"

/* A file that a tool asked for; lies first in the tool's own struct. */
struct tool_file {
	struct session_request request; /* first */
	struct call *call;
	struct agent_session *session;
	struct buffer path; /* as it was asked for, absolute */
	int flags;
	unsigned mode;
	struct buffer hidden; /* by the policy: the line that says so; else empty */
	struct buffer held;   /* the tool's own; freed with the rest */
	/*
	 * The file is open: take @fd, and leave -1 in its place. @path is the session's name for it, valid
	 * during the call. The tool frees @f with tool_file_free().
	 */
	void (*opened)(struct tool_file *f, int *fd, const char *path);
};

/*
 * tool_file_open - open @path, relative to the scratch, with @flags (O_*) and @mode, inside. It first asks the
 * session to classify the path: a hidden file looks empty, or absent; and a protected file that does not exist could
 * be made, but would be moved to quarantine.
 * @f: zeroed, from calloc(3), with `opened` set. If this fails, @f and the call are gone, and the model was told, or
 * will be.
 */
void tool_file_open(
	struct tool_file *f, struct call *c, const char *path, int flags, unsigned mode);

/*
 * tool_file_refuse - the call failed with @errnum, or because the file is hidden: say what to do. @f and the
 * call are gone then.
 */
void tool_file_refuse(struct tool_file *f, int errnum);

/* tool_file_free - forget the request, and free @f with what is in it. */
void tool_file_free(struct tool_file *f);

/*
 * tool_file.h - what the tools for files share: a path opened inside the session, and what to say where
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
	 * It is open: @fd is to be taken (and -1 left behind); @path is what the session calls it, and
	 * goes with the call. The struct is the tool's to free, by tool_file_free().
	 */
	void (*opened)(struct tool_file *f, int *fd, const char *path);
};

/*
 * tool_file_open - open @path, relative to the scratch, with @flags (O_*) and @mode, inside. What it is
 * is asked first: what is hidden looks empty, or absent; a protected file that is not there yet could be
 * made, and would be taken away to quarantine when the session ends.
 * @f: zeroed, from calloc(3), `opened` set; it and the call are gone where it fails: the model was
 * told then, or will be.
 */
void tool_file_open(
	struct tool_file *f, struct call *c, const char *path, int flags, unsigned mode);

/*
 * tool_file_refuse - the call failed with @errnum, or because the file is hidden; says what to do. @f and the
 * call are gone.
 */
void tool_file_refuse(struct tool_file *f, int errnum);

/* tool_file_free - forget the request, and free @f with what is in it. */
void tool_file_free(struct tool_file *f);

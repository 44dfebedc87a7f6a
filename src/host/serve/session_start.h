/*
 * session_start.h - `carrel session start`: a session that stays.
 *
 * Runs in: the launcher, outside; it becomes the session's supervisor.
 */
#pragma once

/*
 * session_start_command - set a session up, say where it is, and serve it: in the background, after a
 * fork of its own and in a session of its own, or with --foreground in this process.
 * Arguments: all settings, --json, --foreground, --die-with PID. Returns the exit status for main().
 */
int session_start_command(int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed);

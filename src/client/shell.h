/*
 * shell.h - `carrel shell`: the user's shell, as a login shell, in a session.
 *
 * Runs in: the launcher; with -s ID the client.
 */
#pragma once

/*
 * shell_command - arguments: -s ID for a live session, else settings for a new one, as for run.
 * Returns the exit status for main().
 */
int shell_command(int argc, const char *const *argv, int first, const char *const *environment,
	unsigned closed);

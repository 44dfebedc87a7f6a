/*
 * exec.h - `carrel exec`: a command in a live session, with the caller's own descriptors.
 *
 * Runs in: the client.
 */
#pragma once

/*
 * exec_command - run one command in a session and return its exit status for main(): the command's own,
 * 128 + the signal that ended it, 124 timed out, 125 carrel failed, 126 not executable, 127 not found.
 */
int exec_command(int argc, const char *const *argv, int first, const char *const *environment,
	unsigned closed);

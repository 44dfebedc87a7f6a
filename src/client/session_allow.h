/*
 * session_allow.h - `carrel session allow`: adds names that a live session may reach, or takes them back.
 *
 * Runs in: the client, outside.
 */
#pragma once

/* session_allow_command - the verb; @first: its first argument. Returns the exit status. */
int session_allow_command(
	int argc, const char *const *argv, int first, const char *const *environment);

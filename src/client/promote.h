/*
 * promote.h - `carrel promote`: artifacts out of the scratch of a live session.
 *
 * Runs in: the client, with the caller's rights. The session's policy says what it may write to
 * (host/promote/promote_guard.h).
 */
#pragma once

/* promote_command - the verb. Returns the exit status for main(): 0 or 125. */
int promote_command(int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed);

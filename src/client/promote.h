/*
 * promote.h - `carrel promote`: artifacts out of the scratch of a live session.
 *
 * Runs in: the client, with the caller's rights. What it may write to, the session's policy says
 * (host/promote/promote_guard.h).
 */
#pragma once

/* promote_command - the verb. Returns the exit status for main(): 0 or 125. */
int promote_command(int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed);

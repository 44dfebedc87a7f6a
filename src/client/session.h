/*
 * session.h - `carrel session start|list|show|end`.
 *
 * Runs in: the client; `start` becomes the supervisor (host/serve/session_start.h).
 */
#pragma once

/* session_command - returns the exit status for main(). */
int session_command(int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed);

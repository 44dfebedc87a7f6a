/*
 * scratch.h - `carrel scratch path|list|put|get|remove`.
 *
 * Runs in: the client.
 */
#pragma once

/* scratch_command - the verb. Returns the exit status for main(): 0 or 125. */
int scratch_command(int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed);

/*
 * prompt.h - `carrel prompt`: show what a model has to know about its session, for its system prompt.
 *
 * Runs in: the client.
 */
#pragma once

/* prompt_command - the verb. Returns the exit status for main(): 0 or 125. */
int prompt_command(int argc, const char *const *argv, int first, const char *const *environment,
	unsigned closed);

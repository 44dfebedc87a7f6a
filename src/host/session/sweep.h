/*
 * sweep.h - `carrel gc`.
 *
 * Runs in: the launcher, outside.
 */
#pragma once

/*
 * sweep_command - settle and remove what dead sessions left, wherever their records are.
 * Arguments: [--dry-run] and --scratch-base DIR: only what lies in that base. Returns the exit status for main().
 */
int sweep_command(int argc, const char *const *argv, int first, const char *const *environment,
	unsigned closed);

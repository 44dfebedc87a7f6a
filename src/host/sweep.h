/*
 * sweep.h - `carrel gc`.
 *
 * Runs in: the launcher, outside.
 */
#pragma once

/*
 * sweep_command - remove what dead sessions left in the scratch base.
 * Arguments: [--dry-run] and the setting scratch-base. Returns the exit status for main().
 */
int sweep_command(int argc, const char *const *argv, int first, const char *const *environment,
	unsigned closed);

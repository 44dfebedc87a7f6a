/*
 * quarantine.h - `carrel quarantine`: shows its owner what appeared at protected paths and was moved away, puts it back or removes it.
 *
 * Runs in: the client, outside.
 */
#pragma once

/* quarantine_command - argv[@first] is list, show, diff, restore or remove; without a word the verb is list. */
int quarantine_command(int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed);

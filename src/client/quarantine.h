/*
 * quarantine.h - `carrel quarantine`: what appeared at protected paths and was moved away, for whom it belongs to.
 *
 * Runs in: the client, outside.
 */
#pragma once

/* quarantine_command - argv[@first] is list, show, diff, restore or remove; without a word it is list. */
int quarantine_command(int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed);

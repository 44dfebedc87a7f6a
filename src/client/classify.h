/*
 * classify.h - `carrel classify`: which surface of a live session a path belongs to.
 *
 * Runs in: the client. The session resolves the path, from inside.
 */
#pragma once

/* classify_command - returns the exit status for main(). */
int classify_command(int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed);

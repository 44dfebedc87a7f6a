/*
 * read.h - `carrel read`: a part of a file that a live session may read.
 *
 * Runs in: the client. The file is opened inside, with all walls of the session.
 */
#pragma once

/* read_command - returns the exit status for main(). */
int read_command(int argc, const char *const *argv, int first, const char *const *environment,
	unsigned closed);

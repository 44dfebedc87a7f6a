/*
 * run.h - the main job: one command in a session of its own.
 *
 * Runs in: the launcher, outside; becomes the session's supervisor.
 */
#pragma once

/*
 * run_command - `carrel run`: the whole launch, top to bottom, and back.
 * @first: index in @argv where settings begin. @closed: of stdio_sanitize().
 * Returns the exit status for main(): the command's own, 128+N, 124, 125, 126 or 127.
 */
int run_command(int argc, const char *const *argv, int first, const char *const *environment,
	unsigned closed);

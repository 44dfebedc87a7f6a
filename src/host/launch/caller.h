/*
 * caller.h - where the caller's arguments and environment lie in this process' memory.
 *
 * Runs in: the launcher. Init is a copy of the launcher and wipes its copy of that memory, which may hold secrets.
 */
#pragma once

#include <stddef.h>

/*
 * caller_block - find the one block in which the kernel put both (execve(2)).
 * *@ret_start, *@ret_size: NULL and 0 where there is no argument.
 */
void caller_block(int argc, const char *const *argv, const char *const *environment,
	char **ret_start, size_t *ret_size);

/*
 * autofree.h - memory of the heap that one scope owns.
 *
 * Runs in: the programs beside the launcher, and clients of a live session; the launch itself uses arenas
 * (base/arena.h). `autofree char *p = malloc(n);` is freed at the end of its scope, on every way out.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

/* autofree_end - free what the pointer at @pointer points to. For the cleanup attribute. */
static inline void autofree_end(void *pointer)
{
	void *memory;

	memcpy(&memory, pointer, sizeof(memory));
	free(memory);
}
#define autofree __attribute__((cleanup(autofree_end), unused))

/*
 * name_set.h - the names in a directory, for questions about many that are not there.
 *
 * Runs in: the launcher and carrel-policy, outside; the supervisor at the end. One call lists a small
 * directory; a larger one is not listed, so that its size costs nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* Zeroed: nothing is known. */
struct name_set {
	uint32_t *hashes; /* of every name; NULL: not known */
	size_t count;
};

/*
 * name_set_read - list the directory @fd (O_PATH is enough). Where it is not small, cannot be read, or
 * its listing would not settle what can be found in it, @ret stays as it is. @arena: owns the set.
 */
void name_set_read(struct name_set *ret, struct arena *arena, int fd);

/* name_set_lacks - nothing is found under this name (@length bytes); false where that is not known. */
bool name_set_lacks(const struct name_set *set, const char *name, size_t length);

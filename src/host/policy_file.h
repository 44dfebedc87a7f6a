/*
 * policy_file.h - reading the files that policies are in.
 *
 * Runs in: the launcher and carrel-policy, outside. May not: change anything, wait for a FIFO.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/policy.h"

struct policy_loader {
	struct arena *arena; /* takes the texts */
	const char **loaded; /* canonical paths of every policy file that was read */
	size_t count;
};

/*
 * policy_file_load - the `load` of a struct policy_resolver; @context: a struct policy_loader.
 * A regular file of at most POLICY_SIZE_MAX bytes, by whatever links it is named. Returns 0 or
 * -errno with @e (ERROR_POLICY).
 */
MUST_CHECK int policy_file_load(
	void *context, const char *path, struct policy_file *ret, struct error *e);

/*
 * caller.c - see caller.h.
 *
 * Runs in: the launcher.
 */
#include "host/launch/caller.h"

#include <string.h>

void caller_block(int argc, const char *const *argv, const char *const *environment,
	char **ret_start, size_t *ret_size)
{
	const char *end = argc > 0 ? argv[0] : NULL;

	/* A word that a verb added lies elsewhere. */
	for (int i = 0; i < argc; i++)
		if (argv[i] == end)
			end = argv[i] + strlen(argv[i]) + 1;
	for (; end && environment && *environment; environment++)
		if (*environment == end)
			end = *environment + strlen(*environment) + 1;
	*ret_start = argc > 0 ? (char *)argv[0] : NULL;
	*ret_size = argc > 0 ? (size_t)(end - argv[0]) : 0;
}

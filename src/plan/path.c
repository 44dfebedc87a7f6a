/*
 * path.c - see path.h.
 *
 * Runs in: wherever paths are compared. PURE.
 */
#include "plan/path.h"

#include <string.h>

int path_compare(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (*a == *b)
		return 0;
	/* The end of a name sorts first, then '/', then the rest as bytes. */
	int ra = *a == '\0' ? -2 : *a == '/' ? -1 : (unsigned char)*a;
	int rb = *b == '\0' ? -2 : *b == '/' ? -1 : (unsigned char)*b;
	return ra - rb;
}

const char *path_below(const char *dir, const char *path)
{
	size_t n = 0;

	/* Most paths differ from most directories in their first bytes. */
	while (dir[n] && dir[n] == path[n])
		n++;
	if (dir[n])
		return NULL;
	if (path[n] == '\0' || (n == 1 && dir[0] == '/'))
		return path + n;
	return path[n] == '/' ? path + n + 1 : NULL;
}

size_t path_parent_length(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;

	return length ? length : 1;
}

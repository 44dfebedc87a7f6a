/*
 * path.c - see path.h.
 *
 * Runs in: the client.
 */
#include "client/path.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* @ret: PATH_MAX bytes. A deleted directory has no path; the path of one outside our root begins with "(unreachable)". */
static int find_here(const char *path, char *ret, struct error *e)
{
	errno = 0;
	if (getcwd(ret, PATH_MAX) && ret[0] == '/')
		return 0;
	bool gone = errno == 0 || errno == ENOENT;
	return error_set(e, ERROR_USAGE, "options",
		gone                      ? 0
			: errno == ERANGE ? ENAMETOOLONG
					  : errno,
		path, "the working directory %s, and the path is relative to it",
		gone ? "no longer exists" : "cannot be named");
}

char *client_absolute(const char *path, struct error *e)
{
	size_t length = strlen(path), used = 0;
	char *whole = malloc(PATH_MAX + length + 1);
	int r = 0;

	if (!whole)
		r = error_no_memory(e, "options");
	else if (!length)
		r = error_set(e, ERROR_USAGE, "options", 0, NULL, "an empty path");
	else if (path[0] != '/')
		r = find_here(path, whole, e);
	if (r < 0) {
		free(whole);
		return NULL;
	}
	if (path[0] != '/') {
		used = strlen(whole);
		whole[used++] = '/';
	}
	memcpy(whole + used, path, length + 1);
	return whole;
}

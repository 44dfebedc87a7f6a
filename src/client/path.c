/*
 * path.c - see path.h.
 *
 * Runs in: the client.
 */
#include "client/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *client_absolute(const char *path, struct error *e)
{
	char here[2048] = "";
	int r;

	if (!path[0]) {
		r = error_set(e, ERROR_USAGE, "options", 0, NULL, "an empty path");
		(void)r; /* there is no path */
		return NULL;
	}
	if (path[0] != '/' && (!getcwd(here, sizeof(here) - 1) || here[0] != '/')) {
		r = error_set(e, ERROR_USAGE, "options", errno, path,
			"the working directory is gone, and the path is relative to it");
		(void)r; /* there is no path */
		return NULL;
	}
	size_t size = strlen(here) + strlen(path) + 2;
	char *whole = malloc(size);
	if (whole)
		(void)snprintf(whole, size, "%s%s%s", here, here[0] ? "/" : "", path);
	else
		r = error_set(e, ERROR_LIMIT, "options", ENOMEM, NULL, "no memory");
	return whole;
}

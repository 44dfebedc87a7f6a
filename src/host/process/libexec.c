/*
 * libexec.c - see libexec.h.
 *
 * Runs in: the launcher, outside.
 */
#include "host/process/libexec.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

int libexec_path(const char *program, char *ret_path, size_t size)
{
	char self[PATH_MAX / 2];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n > 0) {
		self[n] = '\0';
		char *slash = strrchr(self, '/');

		if (slash) {
			*slash = '\0';
			int length = snprintf(ret_path, size, "%s/%s", self, program);
			if (length > 0 && (size_t)length < size && access(ret_path, X_OK) == 0)
				return 0;
			length = snprintf(
				ret_path, size, "%s/../libexec/carrel/%s", self, program);
			if (length > 0 && (size_t)length < size && access(ret_path, X_OK) == 0)
				return 0;
		}
	}
	int length = snprintf(ret_path, size, "%s/%s", CARREL_LIBEXECDIR, program);
	if (length <= 0 || (size_t)length >= size)
		return -ENAMETOOLONG;
	return access(ret_path, X_OK) == 0 ? 0 : -errno;
}

int libexec_become(const char *program, char *const *argv)
{
	char path[PATH_MAX / 2], text[1024];
	int r = libexec_path(program, path, sizeof(path));

	if (r >= 0) {
		(void)execv(path, argv);
		r = -errno;
	}
	int length = snprintf(text, sizeof(text),
		"carrel: cannot execute: %s: %s\n"
		"carrel: hint: it is installed with carrel, in %s\n",
		program, strerror(-r), CARREL_LIBEXECDIR);
	(void)!fd_write_all(STDERR_FILENO, text, (size_t)length);
	return STATUS_CARREL;
}

/*
 * inspect.c - what both verbs share; see inspect.h.
 *
 * Runs in: carrel-inspect.
 */
#include "inspect/inspect.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"

int inspect_print(const struct findings *f, bool json)
{
	struct error e = { 0 };
	int r = json ? findings_print_json(f, STDOUT_FILENO) : findings_print(f, STDOUT_FILENO);

	if (r >= 0 && !f->overflow)
		return 0;
	r = error_set(&e, ERROR_INTERNAL, "report", r < 0 ? -r : ENOMEM, NULL,
		"cannot print what was found");
	return r < 0 ? error_report(&e) : INSPECT_BROKEN;
}

int inspect_launcher(char *ret_path, size_t size)
{
	/* A build tree; PREFIX/libexec/carrel; a libexec directory of one level. */
	static const char *const places[] = { "carrel", "../../bin/carrel", "../bin/carrel" };
	char self[PATH_MAX / 2];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return -errno;
	self[n] = '\0';
	char *slash = strrchr(self, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int length = snprintf(ret_path, size, "%s/%s", self, places[i]);

		struct stat st;

		if (length > 0 && (size_t)length < size && stat(ret_path, &st) == 0 &&
			S_ISREG(st.st_mode) && access(ret_path, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

/*
 * mksettings.c - the settings table as text: help, and parts of the man pages.
 *
 * Runs in: the build only; never installed. May not: know any setting itself.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "plan/settings.h"

int main(int argc, char **argv)
{
	static const int out = STDOUT_FILENO;
	const char *what = argc == 2 ? argv[1] : "";
	int r;

	if (!strcmp(what, "help"))
		r = settings_print_help(fd_write_to, (void *)&out);
	else if (!strcmp(what, "man") || !strcmp(what, "man-exec"))
		r = settings_print_man(what[3] == '-', fd_write_to, (void *)&out);
	else
		return (void)fputs("usage: mksettings help|man|man-exec\n", stderr), 2;
	if (r < 0)
		(void)fprintf(stderr, "mksettings: %s: %s\n", what, strerror(-r));
	return r < 0 ? 1 : 0;
}

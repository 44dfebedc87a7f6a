/*
 * mksettings.c - the settings table as text: completions for shells, a part of the man page.
 *
 * Runs in: the build only; never installed. May not: know any setting itself.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "plan/settings.h"

static int write_stdout(void *context, const void *text, size_t size)
{
	(void)context;
	return fd_write_all(STDOUT_FILENO, text, size);
}

int main(int argc, char **argv)
{
	int r;

	if (argc != 2) {
		(void)fputs("usage: mksettings help|man|man-exec|bash|zsh|fish\n", stderr);
		return 2;
	}
	if (!strcmp(argv[1], "help"))
		r = settings_print_help(write_stdout, NULL);
	else if (!strcmp(argv[1], "man") || !strcmp(argv[1], "man-exec"))
		r = settings_print_man(argv[1][3] == '-', write_stdout, NULL);
	else
		r = settings_print_completion(argv[1], write_stdout, NULL);
	if (r < 0)
		(void)fprintf(stderr, "mksettings: %s: %s\n", argv[1], strerror(-r));
	return r < 0 ? 1 : 0;
}

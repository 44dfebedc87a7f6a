/*
 * shell.c - see shell.h.
 *
 * Runs in: the launcher; with -s ID the client. It only writes the command line of `run` or `exec`.
 */
#include "client/shell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "client/exec.h"
#include "host/facts/facts.h"
#include "host/launch/run.h"
#include "plan/settings.h"

enum { WORDS_MORE = 4 };

static bool names_session(int argc, const char *const *argv, int first)
{
	for (int i = first; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (!strcmp(argv[i], "-s") || !strcmp(argv[i], "--session") ||
			!strncmp(argv[i], "--session=", 10))
			return true;
	return false;
}

/* The first word that is no option and no value of one, or NULL. */
static const char *find_command(int argc, const char *const *argv, int first)
{
	for (int i = first; i < argc; i++) {
		const char *word = argv[i];

		if (word[0] != '-' || !word[1] || !strcmp(word, "--") || !strcmp(word, "-c"))
			return word;
		if (!strcmp(word, "-s") || !strcmp(word, "--session")) {
			i++;
			continue;
		}
		if (strchr(word, '='))
			continue;
		const struct setting *s =
			word[1] == '-' ? settings_find(word + 2, strlen(word + 2)) : NULL;
		if (!s)
			return NULL; /* an option of `exec`, or unknown: `exec` or `run` will say so */
		i += settings_arguments(s, i + 1 < argc ? argv[i + 1] : "");
	}
	return NULL;
}

static const char *choose_shell(const char *const *environment)
{
	const char *shell = facts_env(environment, "SHELL");

	return shell && shell[0] == '/' ? shell : "/bin/sh";
}

int shell_command(int argc, const char *const *argv, int first, const char *const *environment,
	unsigned closed)
{
	static const char help[] =
		"usage: carrel shell [SETTINGS]\n"
		"       carrel shell -s ID [OPTIONS OF exec]\n\n"
		"$SHELL as a login shell, in a session of its own or in a live one.\n";
	struct error e = { 0 };
	const char **words = calloc((size_t)argc + WORDS_MORE, sizeof(*words));
	const char *command = find_command(argc, argv, first);
	int count = 0, r = 0;

	if (!words)
		r = error_no_memory(&e, "options");
	else if (command)
		r = error_set(&e, ERROR_USAGE, "options", 0, command,
			"`carrel shell` takes no command");
	if (command)
		error_hint(&e, "`carrel run` and `carrel exec` run one");
	if (r < 0) {
		(void)error_report(&e);
		free(words);
		return STATUS_CARREL;
	}
	for (; count < argc; count++) {
		words[count] = argv[count];
		if (count >= first &&
			(!strcmp(argv[count], "--help") || !strcmp(argv[count], "-h"))) {
			free(words);
			return fd_write_all(STDOUT_FILENO, help, sizeof(help) - 1) < 0
				? STATUS_CARREL
				: 0;
		}
	}
	words[count++] = "--";
	words[count++] = choose_shell(environment);
	words[count++] = "-l";
	int status = names_session(argc, argv, first)
		? exec_command(count, words, first, environment, closed)
		: run_command(count, words, first, environment, closed);
	free(words);
	return status;
}

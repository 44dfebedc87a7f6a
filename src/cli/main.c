/*
 * main.c - `carrel`: one table of verbs, no logic of its own.
 *
 * Runs in: the launcher, outside. A verb that is not the launcher's own is another program
 * in libexec, executed in this one's place, as git does.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "host/libexec.h"
#include "host/run.h"
#include "host/stdio.h"
#include "host/sweep.h"

extern char **environ;

struct verb {
	const char *name;
	const char *program; /* NULL: `handler` */
	int (*handler)(int argc, const char *const *argv, int first,
		const char *const *environment, unsigned closed);
	const char *help;
};

static int verb_help(int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed);

static const struct verb verbs[] = {
	{ "run", NULL, run_command, "run a command in a session of its own" },
	{ "gc", NULL, sweep_command, "remove what killed sessions left behind" },
	{ "plan", "carrel-policy", NULL, "show what `run` would do, operation by operation" },
	{ "policy", "carrel-policy", NULL, "show or check policies" },
	{ "doctor", "carrel-inspect", NULL,
		"say what this machine allows, and what to change" },
	{ "attest", "carrel-inspect", NULL, "compare a session's mounts with its plan" },
	{ "help", NULL, verb_help, "this text" },
};
enum { VERB_COUNT = sizeof(verbs) / sizeof(verbs[0]), STATUS_CARREL = 125 };

static int print(int fd, const char *const *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fd_write_all(fd, parts[i], strlen(parts[i])) < 0)
			return STATUS_CARREL;
	return 0;
}

static int verb_help(int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed)
{
	static const char *const head[] = { "usage: carrel VERB [ARGUMENT ...]\n\n" };
	static const char *const tail[] = {
		"\n`carrel run --help` lists the settings; `man carrel` tells the rest.\n"
	};

	(void)argc;
	(void)argv;
	(void)first;
	(void)environment;
	(void)closed;
	int status = print(STDOUT_FILENO, head, 1);
	for (size_t i = 0; i < VERB_COUNT && status == 0; i++) {
		const char *const line[] = { "  ", verbs[i].name,
			&"            "[strlen(verbs[i].name)], verbs[i].help, "\n" };

		status = print(STDOUT_FILENO, line, 5);
	}
	return status ? status : print(STDOUT_FILENO, tail, 1);
}

static int unknown_verb(const char *word)
{
	const char *names[VERB_COUNT];

	for (size_t i = 0; i < VERB_COUNT; i++)
		names[i] = verbs[i].name;
	const char *nearest = text_nearest(word, names, VERB_COUNT);
	const char *const parts[] = { "carrel: there is no such verb: ", word,
		nearest ? "\ncarrel: hint: did you mean `carrel "
			: "\ncarrel: hint: `carrel help",
		nearest ? nearest : "", "`\n" };

	(void)print(STDERR_FILENO, parts, 5);
	return STATUS_CARREL;
}

int main(int argc, char **argv)
{
	const char *const *args = (const char *const *)argv;
	unsigned closed = 0;

	if (stdio_sanitize(&closed) < 0) {
		static const char *const lost[] = {
			"carrel: cannot look at descriptors 0 to 2\n"
		};

		(void)print(
			STDERR_FILENO, lost, 1); /* where stderr is closed, nobody hears it */
		return STATUS_CARREL;
	}
	if (argc < 2 || !strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")) {
		int status = verb_help(argc, args, 1, (const char *const *)environ, closed);

		return argc < 2 ? STATUS_CARREL : status;
	}
	if (!strcmp(argv[1], "--version")) {
		static const char *const version[] = { "carrel " CARREL_VERSION "\n" };

		return print(STDOUT_FILENO, version, 1);
	}
	for (size_t i = 0; i < VERB_COUNT; i++) {
		if (strcmp(verbs[i].name, argv[1]) != 0)
			continue;
		if (verbs[i].program)
			return libexec_become(verbs[i].program, argv);
		return verbs[i].handler(argc, args, 2, (const char *const *)environ, closed);
	}
	return unknown_verb(argv[1]);
}

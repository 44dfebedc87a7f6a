/*
 * main.c - `carrel`: one table of verbs, no logic of its own.
 *
 * Runs in: the launcher, outside. A verb that is not the launcher's own is another program
 * in libexec, executed in this one's place, as git does.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "base/text.h"
#include "client/exec.h"
#include "client/promote.h"
#include "client/prompt.h"
#include "client/quarantine.h"
#include "client/read.h"
#include "client/scratch.h"
#include "client/session.h"
#include "client/shell.h"
#include "host/launch/run.h"
#include "host/process/libexec.h"
#include "host/session/sweep.h"
#include "host/stdio/stdio.h"

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

/* The first ones are what one needs every day. */
enum { EVERYDAY_COUNT = 7 };
static const struct verb verbs[] = {
	{ "run", NULL, run_command, "run a command in a session of its own" },
	{ "shell", NULL, shell_command,
		"an interactive shell, in a new session or a live one" },
	{ "session", NULL, session_command, "start, list, show and end live sessions" },
	{ "exec", NULL, exec_command, "run a command in a live session" },
	{ "mcp", "carrel-agent", NULL, "serve an agent: the Model Context Protocol on stdio" },
	{ "why", "carrel-policy", NULL,
		"show what a command finds at a path, host or system call" },
	{ "doctor", "carrel-inspect", NULL,
		"show what this machine allows, and what to change" },

	{ "promote", NULL, promote_command, "move artifacts out of a scratch, to keep them" },
	{ "quarantine", NULL, quarantine_command,
		"what was moved away from protected paths: look, restore, remove" },
	{ "scratch", NULL, scratch_command, "the scratch of a live session, from outside" },
	{ "read", NULL, read_command, "print a part of a file, as a live session sees it" },
	{ "pad", "carrel-agent", NULL, "the pad of a session: an agent's notes" },
	{ "prompt", NULL, prompt_command, "show what a model has to know about its session" },
	{ "policy", "carrel-policy", NULL, "show or check policies" },
	{ "plan", "carrel-policy", NULL, "show what `run` would do, operation by operation" },
	{ "attest", "carrel-inspect", NULL, "compare a session's mounts with its plan" },
	{ "gc", NULL, sweep_command, "remove what killed sessions left behind" },
	{ "help", NULL, verb_help, "this text, or that of a verb" },
};
enum { VERB_COUNT = sizeof(verbs) / sizeof(verbs[0]) };

static int print_parts(int fd, const char *const *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fd_write_all(fd, parts[i], strlen(parts[i])) < 0)
			return STATUS_CARREL;
	return 0;
}

static int unknown_verb(const char *word)
{
	const char *names[VERB_COUNT];
	struct error e = { 0 };

	for (size_t i = 0; i < VERB_COUNT; i++)
		names[i] = verbs[i].name;
	const char *nearest = text_nearest(word, names, VERB_COUNT);
	(void)error_set(&e, ERROR_USAGE, "options", 0, word, "there is no such verb");
	if (nearest)
		error_hint(&e, "did you mean `carrel %s`?", nearest);
	else
		error_hint(&e, "`carrel help` lists them");
	return error_report(&e);
}

/* argv[1] is the verb. */
static int become_verb(
	int argc, const char *const *argv, const char *const *environment, unsigned closed)
{
	for (size_t i = 0; i < VERB_COUNT; i++) {
		if (strcmp(verbs[i].name, argv[1]) != 0)
			continue;
		if (verbs[i].program)
			return libexec_become(verbs[i].program, (char **)argv);
		return verbs[i].handler(argc, argv, 2, environment, closed);
	}
	return unknown_verb(argv[1]);
}

static int verb_help(int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed)
{
	static const char *const head[] = { "usage: carrel VERB [ARGUMENT ...]\n\n" };
	static const char *const tail[] = {
		"\n`carrel run --help` lists the settings; `man carrel` tells the rest.\n"
	};

	if (argc > first && strcmp(argv[first], "help") != 0) {
		const char *const help_words[] = { argv[0], argv[first], "--help", NULL };

		return become_verb(3, help_words, environment, closed);
	}
	int status = print_parts(STDOUT_FILENO, head, 1);
	for (size_t i = 0; i < VERB_COUNT && status == 0; i++) {
		const char *const line[] = { i == EVERYDAY_COUNT ? "\nmore:\n  " : "  ",
			verbs[i].name, &"            "[strlen(verbs[i].name)], verbs[i].help,
			"\n" };

		status = print_parts(STDOUT_FILENO, line, 5);
	}
	return status ? status : print_parts(STDOUT_FILENO, tail, 1);
}

int main(int argc, char **argv)
{
	const char *const *args = (const char *const *)argv;
	unsigned closed = 0;

	if (stdio_sanitize(&closed) < 0) {
		static const char *const lost[] = {
			"carrel: cannot look at descriptors 0 to 2\n"
		};

		(void)print_parts(
			STDERR_FILENO, lost, 1); /* where stderr is closed, nobody hears it */
		return STATUS_CARREL;
	}
	if (argc < 2 || !strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")) {
		int status = verb_help(0, args, 0, (const char *const *)environ, closed);

		return argc < 2 ? STATUS_CARREL : status;
	}
	if (!strcmp(argv[1], "--version")) {
		static const char *const version[] = { "carrel " CARREL_VERSION "\n" };

		return print_parts(STDOUT_FILENO, version, 1);
	}
	return become_verb(argc, args, (const char *const *)environ, closed);
}

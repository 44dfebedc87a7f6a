/*
 * main.c - carrel-policy: what a policy says and what becomes of it.
 *
 * Runs in: its own program, outside, as the caller. The launcher becomes it for the verbs it does
 * not have itself, and starts it to compile `syscall` lines.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/text.h"
#include "policy/compile.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

enum { STATUS_CARREL = 125 };

struct verb {
	const char *name;
	int (*run)(int argc, char **argv); /* from the verb on; returns the exit status */
};

static const struct verb verbs[] = {
	{ "compile", compile_main },
};

static int no_such_verb(const char *word)
{
	const char *names[LENGTH(verbs)];
	struct error e = { 0 };
	char text[2048];

	for (size_t i = 0; i < LENGTH(verbs); i++)
		names[i] = verbs[i].name;
	(void)error_set(&e, ERROR_USAGE, "options", 0, word,
		word ? "there is no such verb" : "a verb is missing");
	const char *nearest = word ? text_nearest(word, names, LENGTH(names)) : NULL;
	if (nearest)
		error_hint(&e, "did you mean '%s'?", nearest);
	size_t size = error_format(&e, text, sizeof(text));
	/* Where stderr cannot be written, the status says it. */
	(void)!fd_write_all(STDERR_FILENO, text, size);
	return STATUS_CARREL;
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	for (size_t i = 0; word && i < LENGTH(verbs); i++)
		if (!strcmp(verbs[i].name, word))
			return verbs[i].run(argc - 1, argv + 1);
	return no_such_verb(word);
}

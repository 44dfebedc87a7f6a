/*
 * main.c - carrel-inspect: what the machine allows (doctor), and what a session really is (attest).
 *
 * Runs in: its own program, outside, as the caller. The launcher becomes it for these verbs.
 */
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "inspect/inspect.h"

extern char **environ;

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

struct verb {
	const char *name;
	int (*run)(int argc, const char *const *argv, const char *const *environment);
};

static const struct verb verbs[] = {
	{ "doctor", doctor_main },
	{ "attest", attest_main },
};

static int no_such_verb(const char *word)
{
	const char *names[LENGTH(verbs)];
	struct error e = { 0 };

	for (size_t i = 0; i < LENGTH(verbs); i++)
		names[i] = verbs[i].name;
	int r = error_set(&e, ERROR_USAGE, "options", 0, word,
		word ? "there is no such verb" : "a verb is missing");
	const char *nearest = word ? text_nearest(word, names, LENGTH(names)) : NULL;
	if (r < 0 && nearest)
		error_hint(&e, "did you mean '%s'?", nearest);
	return inspect_complain(&e);
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	for (size_t i = 0; word && i < LENGTH(verbs); i++)
		if (!strcmp(verbs[i].name, word))
			return verbs[i].run(
				argc, (const char *const *)argv, (const char *const *)environ);
	return no_such_verb(word);
}

/*
 * main.c - carrel-inspect: what the machine allows (doctor), and what a session really is (attest).
 *
 * Runs in: its own program, outside, as the caller. The launcher becomes it for these verbs.
 */
#include <string.h>

#include "base/error_report.h"
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

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	for (size_t i = 0; word && i < LENGTH(verbs); i++)
		if (!strcmp(verbs[i].name, word))
			return verbs[i].run(
				argc, (const char *const *)argv, (const char *const *)environ);
	const char *names[LENGTH(verbs)];
	for (size_t i = 0; i < LENGTH(verbs); i++)
		names[i] = verbs[i].name;
	return error_report_unknown_verb(word, names, LENGTH(names));
}

/*
 * main.c - carrel-policy: what a policy says and what becomes of it.
 *
 * Runs in: its own program, outside, as the caller. The launcher becomes it for the verbs it does
 * not have itself, and starts it to compile `syscall` lines.
 */
#include <string.h>

#include "base/error_report.h"
#include "policy/compile.h"
#include "policy/verbs.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

struct verb {
	const char *name;
	int (*run)(int argc, char **argv, int first); /* returns the exit status */
};

static int verb_compile(int argc, char **argv, int first)
{
	return compile_main(argc - first + 1, argv + first - 1);
}

static const struct verb verbs[] = {
	{ "plan", verb_plan },
	{ "policy", verb_policy },
	{ "why", verb_why },
	{ "compile", verb_compile },
	{ "explain", verb_explain },
};

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	for (size_t i = 0; word && i < LENGTH(verbs); i++)
		if (!strcmp(verbs[i].name, word))
			return verbs[i].run(argc, argv, 2);
	const char *names[LENGTH(verbs)];
	for (size_t i = 0; i < LENGTH(verbs); i++)
		names[i] = verbs[i].name;
	return error_report_unknown_verb(word, names, LENGTH(names));
}

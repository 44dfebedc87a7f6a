/*
 * main.c - carrel-agent: what an agent speaks to: the MCP server and the pad.
 *
 * Runs in: its own program, outside, as the caller. The launcher becomes it for these verbs.
 */
#include <string.h>

#include "agent/verbs.h"
#include "base/error_report.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

struct verb {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the verb; returns the exit status */
};

static const struct verb verbs[] = {
	{ "mcp", verb_mcp },
	{ "pad", verb_pad },
};

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	for (size_t i = 0; word && i < LENGTH(verbs); i++)
		if (!strcmp(verbs[i].name, word))
			return verbs[i].run(argc - 1, argv + 1);
	const char *names[LENGTH(verbs)];

	for (size_t i = 0; i < LENGTH(verbs); i++)
		names[i] = verbs[i].name;
	return error_report_unknown_verb(word, names, LENGTH(names));
}

/*
 * verb.c - what the verbs share; see verbs.h.
 *
 * Runs in: carrel-policy, outside.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "base/text.h"
#include "plan/settings.h"
#include "policy/verbs.h"

extern char **environ;

int verb_write(void *context, const void *data, size_t size)
{
	(void)context;
	return fd_write_all(STDOUT_FILENO, data, size);
}

int verb_output_failed(int r)
{
	struct error e = { 0 };

	(void)error_set(&e, ERROR_INTERNAL, "plan", -r, "stdout", "cannot write the answer");
	return error_report(&e);
}

int verb_usage(const char *usage)
{
	int r = verb_write(NULL, usage, strlen(usage));

	if (r >= 0)
		r = settings_print_help(verb_write, NULL);
	return r < 0 ? STATUS_CARREL : 0;
}

int verb_prepared(enum prepare_until until, int argc, char **argv, int first, const char *usage,
	int (*show)(struct prepared *p, bool json, const char *rest))
{
	struct policy_verb_flag flags[] = { { .name = "json" }, PREPARE_COMMAND_LINE };
	struct prepared *p = NULL;
	struct error e = { 0 };
	int status = 0;

	int r = prepare_begin(&p, &e);
	if (r < 0)
		return error_report(&e);
	r = prepare_with(p, NULL, until, argc, (const char *const *)argv, first,
		(const char *const *)environ, flags, until == PREPARE_DRY ? 2 : 1, &e);
	if (r < 0)
		status = error_report(&e);
	else if (p->help)
		status = verb_usage(usage);
	else
		status = show(p, flags[0].given, p->next < argc ? argv[p->next] : NULL);
	prepare_free(p);
	return status;
}

/*
 * verb_plan.c - the dry run: the same line as `carrel run`, stopped after the plan.
 *
 * Runs in: carrel-policy, outside, as the caller. May not: change anything.
 */
#include "host/prepare.h"
#include "plan/plan_print.h"
#include "policy/verbs.h"

extern char **environ;

/* Shown for the session's id, which is another one in each session. */
#define ANY_SESSION "SESSION"

static int show(const struct prepared *p, bool json)
{
	const struct plan_view view = {
		.plan = &p->plan,
		.session = ANY_SESSION,
		.write = verb_write,
	};
	int r = json ? plan_print_json(&view) : plan_print(&view);

	return r < 0 ? verb_output_failed(r) : 0;
}

int verb_plan(int argc, char **argv, int first)
{
	struct policy_verb_flag flags[] = { { .name = "json" } };
	struct prepared *p = NULL;
	struct error e = { 0 };
	int status = 0;

	int r = prepare_begin(&p, &e);
	if (r < 0)
		return verb_say(&e);
	r = prepare_with(p, NULL, PREPARE_DRY, argc, (const char *const *)argv, first,
		(const char *const *)environ, flags, 1, &e);
	if (r < 0)
		status = verb_say(&e);
	else if (p->help)
		status = verb_usage(
			"usage: carrel plan [--json] [SETTINGS] [-- COMMAND [ARGUMENT "
			"...]]\n\nShows what `carrel run` would do, operation by "
			"operation, and does nothing.\n\n");
	else
		status = show(p, flags[0].given);
	prepare_free(p);
	return status;
}

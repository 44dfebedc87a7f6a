/*
 * verb_plan.c - the dry run: the same line as `carrel run`, stopped after the plan.
 *
 * Runs in: carrel-policy, outside, as the caller. May not: change anything.
 */
#include "base/say.h"
#include "host/limits.h"
#include "plan/plan_print.h"
#include "policy/verbs.h"

/* Shown for the session's id, which is another one in each session. */
#define ANY_SESSION "SESSION"

static int show(struct prepared *p, bool json, const char *rest)
{
	const struct plan_view view = {
		.plan = &p->plan,
		.session = ANY_SESSION,
		.write = verb_write,
	};
	struct error e = { 0 };

	(void)rest; /* the command, which the plan has */
	int r = json ? plan_print_json(&view) : plan_print(&view);

	if (r < 0)
		return verb_output_failed(r);
	/* The plan stands; the launch would end at this. */
	return limits_check(&p->plan, &e) < 0 ? say_error(&e) : 0;
}

int verb_plan(int argc, char **argv, int first)
{
	return verb_prepared(PREPARE_DRY, argc, argv, first,
		"usage: carrel plan [--json] [SETTINGS] [-- COMMAND [ARGUMENT ...]]\n\n"
		"Shows what `carrel run` would do, operation by operation, and does nothing.\n\n",
		show);
}

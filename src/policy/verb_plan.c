/*
 * verb_plan.c - the dry run: the same line as `carrel run`, stopped after the plan.
 *
 * Runs in: carrel-policy, outside, as the caller. May not: change anything.
 */
#include <errno.h>
#include <sys/stat.h>

#include "base/error_report.h"
#include "host/facts/resolve.h"
#include "host/launch/limits.h"
#include "host/report/report_file.h"
#include "plan/plan_print.h"
#include "plan/surface.h"
#include "policy/verbs.h"

/* Shown in place of the session's id, which is different in each session. */
#define ANY_SESSION "SESSION"

/* If the command would start in a directory of the host's own, check that it is there. */
static int check_cwd(struct prepared *p, struct error *e)
{
	struct resolver res = { .arena = &p->arena };
	const char *cwd = p->plan.cwd;
	struct resolved found;
	int r = plan_shows_host(&p->plan, cwd) ? resolve_path(&res, cwd, 0, &found) : -ENOTSUP;

	resolve_done(&res);
	if (r < 0 || !plan_shows_host(&p->plan, found.path))
		return 0;
	if (found.exists && S_ISDIR(found.st.st_mode))
		return 0;
	return explain_cwd(found.exists ? ENOTDIR : ENOENT, cwd, e);
}

/* The plan is made, but the launch would fail at one of these, with the same message. */
static int check_launch(struct prepared *p, struct error *e)
{
	const char *report = p->policy.report.value;
	int r = report ? report_check(report, e) : 0;

	if (r >= 0)
		r = limits_check(&p->plan, e);
	return r < 0 ? r : check_cwd(p, e);
}

static int print_plan(struct prepared *p, bool json, const char *rest)
{
	const struct plan_view view = {
		.plan = &p->plan,
		.session = ANY_SESSION,
		.write = verb_write,
	};
	struct error e = { 0 };

	(void)rest; /* the command, which the plan has */
	int r = plan_print(&view, json);

	if (r < 0)
		return verb_output_failed(r);
	return check_launch(p, &e) < 0 ? error_report(&e) : 0;
}

int verb_plan(int argc, char **argv, int first)
{
	return verb_prepared(PREPARE_DRY, argc, argv, first,
		"usage: carrel plan [--json] [SETTINGS] [-- COMMAND [ARGUMENT ...]]\n"
		"       carrel plan [--json] [SETTINGS] -c LINE [WORD ...]\n\n"
		"Shows what `carrel run` would do, operation by operation, and does nothing.\n\n"
		"  -c, --command LINE      the command is /bin/sh -c LINE\n\n",
		print_plan);
}

/*
 * run.c - see run.h.
 *
 * Runs in: the launcher, outside. options -> launch -> policy -> facts -> plan -> session -> apply ->
 * supervise -> close -> report. Before the session nothing is changed; init is cloned, and waits.
 */
#include "host/launch/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "base/parent.h"
#include "host/explain/explain.h"
#include "host/explain/learn_file.h"
#include "host/launch/caller.h"
#include "host/launch/finish.h"
#include "host/launch/launch.h"
#include "host/launch/limits.h"
#include "host/launch/notes.h"
#include "host/launch/prepare.h"
#include "host/launch/supervise.h"
#include "host/machine/explain.h"
#include "host/machine/refusal.h"
#include "host/process/reaper.h"
#include "host/process/signals.h"
#include "host/report/output.h"
#include "host/report/report.h"
#include "host/report/verbose.h"
#include "host/session/manifest.h"
#include "host/session/session.h"
#include "host/session/sweeper.h"
#include "host/stdio/passed.h"
#include "host/stdio/stdio.h"
#include "plan/settings.h"

#define RESULTS "tool-results"

struct run {
	struct prepared *p; /* in its own arena, shared with init */
	struct session session;
	struct launch launch;
	struct limits limits;
	struct stdio stdio;
	struct passed passed;
	struct signals signals;
	struct outcome outcome;
	struct report report;
	struct report_file report_file;
	struct explain explain;
	struct learn_file learn;
	struct error error;
	struct error refused; /* why namespaces were refused, before the policy was known */
	int results;          /* the directory tool-results, where outputs are saved; else -1 */
	bool has_session, has_stdio;
	char results_path[PATH_MAX]; /* last: it is seldom used, and a page of its own */
};

static int print_help(void *context, const void *data, size_t size)
{
	(void)context;
	return fd_write_all(STDOUT_FILENO, data, size);
}

static int show_help(void)
{
	static const char usage[] =
		"usage: carrel run [SETTINGS] -- COMMAND [ARGUMENT ...]\n"
		"       carrel run [SETTINGS] -c LINE [WORD ...]\n\n"
		"Runs COMMAND in a session of its own: the machine is read-only, the workspace\n"
		"(default: the current directory) and the session's scratch are writable, system\n"
		"calls are filtered, and nothing is left behind.\n\n"
		"  carrel run -- make test\n"
		"  carrel run --allow @npm --timeout 10m -- npm ci\n\n"
		"  -c, --command LINE      the command is /bin/sh -c LINE\n\n";

	if (fd_write_all(STDOUT_FILENO, usage, sizeof(usage) - 1) < 0)
		return STATUS_CARREL;
	return settings_print_help(print_help, NULL) < 0 ? STATUS_CARREL : 0;
}

static int no_command(struct run *run)
{
	int r = error_set(
		&run->error, ERROR_USAGE, "options", 0, NULL, "there is no command to run");

	error_hint(&run->error, "carrel run [SETTINGS] -- COMMAND [ARGUMENT ...]");
	return r;
}

/* Starts a sweep of dead sessions while the command already runs. */
static void sweep(void *context)
{
	const struct run *run = context;

	sweeper_start(run->p->records, session_id(run->p->facts.session_name));
}

/* Save outputs that exceed their budget: the one execution of this session is number 1. */
static int save_output(struct run *run)
{
	int length = snprintf(run->results_path, sizeof(run->results_path), "%s/%s",
		run->p->facts.session_dir, RESULTS);

	if (length >= (int)sizeof(run->results_path))
		return error_set(&run->error, ERROR_SCRATCH, "session", ENAMETOOLONG,
			run->p->facts.session_dir, "cannot save outputs");
	run->results =
		fd_open_at(run->session.dir, RESULTS, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (run->results < 0)
		return error_set(&run->error, ERROR_SCRATCH, "session", -run->results,
			run->results_path, "cannot open the directory for outputs");
	stdio_save_in(&run->stdio, run->results, run->results_path, 1,
		!run->p->policy.keep.on && !run->p->policy.keep_for_ms.set);
	return 0;
}

static int create_session(struct run *run)
{
	int r = session_create(&run->session, run->p->records, &run->p->plan, &run->error);

	run->has_session = r >= 0;
	run->session.alone = true;
	return r;
}

/* Make the record first: it holds the note by which a sweep finds the groups. */
static int start_limits(struct run *run)
{
	int r = create_session(run);

	if (r < 0)
		return r;
	r = limits_begin(&run->limits, &run->p->plan, run->session.record, false, &run->error);
	if (r < 0)
		return r;
	limits_fill_launch(&run->limits, &run->launch);
	return 0;
}

/* Begin while S may still start processes, and before init has the plan. */
static int start_explain(struct run *run, const char *const *argv, int first)
{
	int r = explain_begin(&run->explain, &run->p->plan, argv + first,
		(size_t)(run->p->next - first), &run->error);

	run->launch.explain = run->explain.plan ? &run->explain : NULL;
	return r;
}

static void report_refusal(const struct plan *plan)
{
	char line[1024];

	/* stderr may not be writable: the report says the same. */
	if (refusal_format(plan, line, sizeof(line)))
		(void)!fd_write_all(STDERR_FILENO, line, strlen(line));
}

/* Done before a descriptor of carrel's could have one of their numbers and not be close-on-exec. */
static int pass_descriptors(struct run *run)
{
	const struct facts *facts = &run->p->facts;
	int r = passed_of_policy(&run->passed, &run->p->policy, &run->error);

	run->stdio.passed = &run->passed;
	for (unsigned i = 0; facts->privileged && i < run->passed.count && r >= 0; i++)
		passed_set_owner(
			run->passed.fd[i].pair.from, facts->kernel_uid, facts->kernel_gid);
	return r;
}

static int start(struct run *run, int argc, const char *const *argv, int first,
	const char *const *environment)
{
	static const int caller_fd[STDIO_STREAMS] = { 0, 1, 2 };
	const struct facts *facts = &run->p->facts;
	const struct plan *plan = &run->p->plan;
	struct error *e = &run->error;
	char *block;
	size_t block_size;
	const struct stdio_output output = output_of_policy(&run->p->policy);
	int r = stdio_prepare_output(&run->stdio, caller_fd, run->p->policy.tty, &output, e);

	if (r < 0)
		return r;
	run->has_stdio = true;
	r = pass_descriptors(run);
	if (r < 0)
		return r;
	if (facts->privileged)
		stdio_set_owner(&run->stdio, facts->kernel_uid, facts->kernel_gid);
	caller_block(argc, argv, environment, &block, &block_size);
	r = limits_requested(&run->p->policy) ? start_limits(run) : 0;
	if (r < 0)
		return r;
	r = start_explain(run, argv, first);
	if (r < 0)
		return r;
	r = launch_init(&run->launch, plan, run->stdio.want_pty, block, block_size, e);
	if (r < 0)
		return r;
	r = limits_enter(&run->limits, run->launch.init, e);
	if (r < 0)
		return r;
	/* With limits the session is there already; else it is made while init is at the first operations. */
	r = run->has_session ? 0 : create_session(run);
	if (r < 0)
		return r;
	r = stdio_is_held(&run->stdio) ? save_output(run) : 0;
	if (r < 0)
		return r;
	r = launch_session(&run->launch, e);
	if (r < 0)
		return r;
	/* While init applies the plan: it waits for nothing of this. */
	r = launch_egress(&run->launch, &run->p->policy, facts, e);
	if (r < 0)
		return r;
	verbose_report(plan);
	report_refusal(plan);
	return 0;
}

static int make_plan(struct run *run, int argc, const char *const *argv, int first,
	const char *const *environment)
{
	struct policy_verb_flag flags[] = { PREPARE_COMMAND_LINE };
	struct error *e = &run->error;
	struct identity identity;

	/* Init makes the namespaces that are most likely needed, in another process meanwhile. */
	identity_guess(&identity);
	int r = launch_begin(&run->launch, &run->p->arena, &identity, e);
	if (r < 0 && e->code != ERROR_NAMESPACES)
		return r;
	if (r < 0) {
		run->refused = *e; /* the policy says whether that is the end */
		*e = (struct error){ 0 };
	}
	r = identity_choose(&identity, e);
	if (r < 0)
		return r;
	return prepare_with(
		run->p, &identity, PREPARE_PLAN, argc, argv, first, environment, flags, 1, e);
}

static int options_to_plan(struct run *run, int argc, const char *const *argv, int first,
	const char *const *environment)
{
	struct error *e = &run->error;
	int r = make_plan(run, argc, argv, first, environment);

	if (run->p->help)
		return r;
	/* Without namespaces and without `degraded` only this error is worth reporting: where a
	 * filter refuses them, everything after it fails for the same reason. */
	if (run->refused.code &&
		(r >= 0 ? run->p->plan.clone_flags != 0 : !run->p->policy.degraded.on)) {
		*e = run->refused;
		r = -EPERM;
	}
	/* If the report cannot be opened, the command is not started. Where the policy could be
	 * read, the report says why a later step failed. */
	if (run->p->policy.report.value) {
		struct error late = { 0 };
		int opened = prepare_report(run->p, &run->report_file, &late);

		if (opened < 0 && r >= 0) {
			*e = late;
			r = opened;
		}
	}
	if (r < 0)
		return r;
	if (!run->p->argv || !run->p->argv[0])
		return no_command(run);
	if (run->p->policy.learn.value)
		return learn_file_open(
			run->p->policy.learn.value, &run->p->facts, &run->learn, e);
	return 0;
}

/* The command was killed before execve, from outside or by a signal to carrel: nothing else
 * reports that. */
static int explain_end_before_start(struct run *run)
{
	const struct outcome *o = &run->outcome;
	const char *name = run->p->argv[0];

	if (o->ready && WIFSIGNALED(o->wait_status))
		(void)error_set(&run->error, ERROR_EXEC, "launch", 0, name,
			"the command was killed by signal %d before it started",
			WTERMSIG(o->wait_status));
	else
		(void)error_set(&run->error, ERROR_EXEC, "launch", 0, name,
			"the session was ended before the command started");
	return STATUS_CARREL;
}

static int exit_status(struct run *run, int r)
{
	const struct outcome *o = &run->outcome;

	if (o->breached || (o->ended && !o->confined))
		return STATUS_CARREL;
	if (o->timed_out)
		return STATUS_TIMED_OUT;
	if (o->ended)
		return WIFSIGNALED(o->wait_status) ? 128 + WTERMSIG(o->wait_status)
						   : WEXITSTATUS(o->wait_status);
	if (r >= 0 && o->ready && o->started == STARTED_NO && o->errnum)
		return explain_exec(o->op, o->errnum, run->p->argv[0], run->p->plan.cwd,
			run->p->plan.path_env, false, &run->error);
	return r < 0 ? STATUS_CARREL : explain_end_before_start(run);
}

/* Tell the user what was asked for in vain, and why the command may have failed. */
static void explain_run(const struct run *run, int status)
{
	if (run->outcome.started != STARTED_YES)
		return;
	notes_presets(run->p);
	if (status == 0 || run->outcome.timed_out)
		return;
	notes_work_tree(run->p, run->p->argv);
	notes_network(&run->p->plan, &run->launch.egress, &run->outcome);
}

/* Close and report: on every way out, whatever stage was reached. */
static int finish_run(struct run *run, int status)
{
	run->session.memory = take_fd(&run->launch.scratch);
	struct finish f = {
		.prepared = run->p,
		.session = run->has_session ? &run->session : NULL,
		.stdio = run->has_stdio ? &run->stdio : NULL,
		.outcome = &run->outcome,
		.signals = &run->signals,
		.limits = &run->limits,
		.egress = &run->launch.egress,
		.report = &run->report,
		.report_file = &run->report_file,
		.explain = &run->explain,
		.learn = &run->learn,
		.error = &run->error,
		.status = status,
	};

	status = finish_session(&f);
	/* The session's lock is released: a sweep removes what there was no time for. */
	if (run->report.teardown == REPORT_TEARDOWN_DEFERRED)
		sweeper_start(run->p->records, "");
	if (run->error.code != ERROR_NONE)
		error_report(&run->error);
	else
		explain_run(run, status);
	/* This runs while the kernel takes init down; the wait for init comes last. */
	prepare_free(run->p);
	launch_kill(&run->launch);
	return status;
}

/* Signals are blocked once: pid 1 must not lose an early signal, and another process may be ended
 * by one. */
static int block_signals(struct run *run)
{
	int r = run->signals.fd < 0 ? signals_block(&run->signals) : 0;

	return r < 0 ? error_set(&run->error, ERROR_INTERNAL, "launch", -r, NULL,
			       "cannot block signals")
		     : 0;
}

/* launch -> session -> apply -> supervise, until the command has ended. */
static int run_session(struct run *run, int argc, const char *const *argv, int first,
	const char *const *environment)
{
	struct error *e = &run->error;
	int r = block_signals(run);

	if (r < 0)
		return r;
	/* SIGTERM, since SIGHUP may be ignored. */
	if (run->p->policy.die_with_parent.on && parent_die_with(getppid(), SIGTERM) < 0)
		return error_set(e, ERROR_INTERNAL, "launch", 0, NULL,
			"the caller has ended, and the policy says `die-with-parent`");
	r = start(run, argc, argv, first, environment);
	if (r < 0)
		return r;
	/* Written while init applies the plan, for the case that the launcher is killed before it
	 * can clear up. */
	r = manifest_write(run->session.record, &run->p->plan, run->launch.init, e);
	if (r < 0)
		return r;
	return supervise(&run->p->plan, &run->launch, &run->stdio, &run->signals, sweep, run,
		&run->outcome, e);
}

static int run_with(struct run *run, int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed)
{
	int r = reaper_is_pid1() ? block_signals(run) : 0;

	if (r >= 0)
		r = options_to_plan(run, argc, argv, first, environment);

	if (run->p->help) {
		launch_kill(&run->launch);
		prepare_free(run->p);
		return show_help();
	}
	report_init(&run->report, run->p->argv ? run->p->argv : argv + argc);
	for (unsigned i = 0; i < 3; i++)
		if (closed & (1u << i))
			run->report.stdio[i] = REPORT_STREAM_CLOSED;
	if (r >= 0)
		r = run_session(run, argc, argv, first, environment);
	/* Where only init is left, the kernel takes it down while the launcher clears the
	 * directory. */
	if (!run->outcome.alone || run->limits.requested)
		launch_kill(&run->launch);
	egress_ask_end(&run->launch.egress);
	limits_settle(&run->limits, &run->outcome, &run->error);
	int status = finish_run(run, exit_status(run, r));
	cover_reap(&run->outcome.cover);
	fd_close(&run->signals.fd);
	return status;
}

int run_command(int argc, const char *const *argv, int first, const char *const *environment,
	unsigned closed)
{
	/* malloc(3) is not used: its start alone takes five system calls. This memory stays until
	 * the end. */
	struct arena memory;
	struct run *run = arena_init(&memory, sizeof(*run) + 16) < 0
		? NULL
		: arena_alloc(&memory, sizeof(*run));

	if (!run) {
		const struct error e = { .code = ERROR_LIMIT,
			.errnum = ENOMEM,
			.op = -1,
			.what = "cannot start the session" };

		error_report(&e);
		return STATUS_CARREL;
	}
	run->launch = (struct launch){
		.pidfd = -1, .channel = -1, .scratch = -1, .egress = EGRESS_NONE
	};
	run->session = SESSION_NONE;
	run->explain = EXPLAIN_NONE;
	run->learn.dir = -1;
	run->signals.fd = -1;
	run->results = -1;
	run->outcome.op = -1;
	limits_init(&run->limits);
	if (prepare_begin(&run->p, &run->error) < 0) {
		error_report(&run->error);
		return STATUS_CARREL;
	}
	int status = run_with(run, argc, argv, first, environment, closed);
	fd_close(&run->results);
	explain_end(&run->explain);
	learn_file_close(&run->learn);
	return status;
}

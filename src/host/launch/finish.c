/*
 * finish.c - see finish.h.
 *
 * Runs in: the launcher, when every process of the session is dead.
 */
#include "host/launch/finish.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "host/explain/explain.h"
#include "host/explain/learn_file.h"
#include "host/launch/close.h"
#include "host/launch/network.h"
#include "host/launch/notes.h"
#include "host/promote/promote_session.h"
#include "host/report/output.h"

enum { CLOSE_ARENA_SIZE = 64 << 20 };

/* Reports what the user must know although the session itself succeeded. */
static void complain(struct finish *f, const struct error *e)
{
	if (f->error->code == ERROR_NONE)
		*f->error = *e;
	/* It is printed only where the command succeeded: its own failure is more important. */
	if (f->status == 0)
		f->status = STATUS_CARREL;
}

/* The share of the time after a time-out that the review, the report and the removal need. */
enum { AFTER_PROMOTION_NS = 500000000 };

/* Whether the command ran to its end and succeeded; for a live session, whether it ended as it
 * should. */
static bool has_succeeded(const struct finish *f)
{
	const struct outcome *o = f->outcome;

	if (f->live)
		return o->ready && !o->breached;
	return o->ready && o->started == STARTED_YES && o->ended && !o->timed_out &&
		!o->breached && WIFEXITED(o->wait_status) && WEXITSTATUS(o->wait_status) == 0;
}

/* Returns whether something that was to be promoted is still in the scratch. */
static bool promote_artifacts(struct finish *f, struct arena *arena, struct error *e)
{
	const struct plan *plan = &f->prepared->plan;
	struct until until = { .signals = f->signals };

	if (f->outcome->deadline_ns)
		until.deadline_ns = f->outcome->deadline_ns - AFTER_PROMOTION_NS;
	if (!plan->policy->promote_count || !has_succeeded(f) ||
		promote_session(plan, f->session, &until, arena, f->report, e) == 0)
		return false;
	error_hint(e, "the scratch is kept: %s", plan->facts->scratch_dir);
	complain(f, e);
	e->code = ERROR_NONE;
	return true;
}

static void close_session(struct finish *f, struct arena *arena)
{
	const struct plan *plan = &f->prepared->plan;
	struct error e = { 0 };

	if (!f->session)
		return;
	bool lost = promote_artifacts(f, arena, &e);
	int64_t end = f->outcome->deadline_ns;
	int64_t review = close_review_deadline(
		clock_now_ns(), end, f->outcome->timed_out || (lost && end));
	if (f->outcome->ready &&
		close_quarantine(plan, &f->outcome->cover, &f->outcome->watch,
			f->outcome->breached, review, arena, f->report, &e) < 0)
		complain(f, &e);
	e.code = ERROR_NONE;
	if (close_directory(
		    plan, f->session, lost, f->outcome->deadline_ns, arena, f->report, &e) < 0)
		complain(f, &e);
	session_close(f->session);
}

static void end_limits(struct finish *f)
{
	struct error e = { 0 };

	if (limits_end(f->limits, &e) < 0)
		complain(f, &e);
}

static void report_command(struct finish *f)
{
	const struct policy *policy = &f->prepared->policy;
	const struct outcome *o = f->outcome;
	struct report *r = f->report;

	r->started = o->started == STARTED_YES ? REPORT_STARTED_YES
		: o->started == STARTED_NO     ? REPORT_STARTED_NO
					       : REPORT_STARTED_UNKNOWN;
	if (o->ended && WIFSIGNALED(o->wait_status)) {
		r->end = REPORT_END_SIGNAL;
		r->signal = WTERMSIG(o->wait_status);
	} else if (o->ended) {
		r->end = REPORT_END_STATUS;
		r->status = WEXITSTATUS(o->wait_status);
	}
	int signal = o->ended
		? limits_signal(o->wait_status, policy->cpu_time_ms.set, policy->file_size.set)
		: 0;
	if (signal)
		r->limit = signal == SIGXCPU ? REPORT_LIMIT_CPU_TIME : REPORT_LIMIT_FILE_SIZE;
	if (f->limits->memory_ended)
		r->limit = REPORT_LIMIT_MEMORY;
	if (f->limits->tasks_ended)
		r->limit = REPORT_LIMIT_PIDS;
	if (r->limit == REPORT_LIMIT_NONE && f->stdio && stdio_is_over(f->stdio))
		r->limit = REPORT_LIMIT_OUTPUT;
	if (o->timed_out)
		r->limit = REPORT_LIMIT_TIMEOUT;
	r->wall_time_known = o->wall_known;
	r->wall_us = o->wall_us;
	r->usage_known = o->usage_known;
	r->user_us = o->user_us;
	r->system_us = o->system_us;
	r->max_rss_bytes = o->max_rss_kib * 1024;
}

static void report_limits(struct finish *f)
{
	const struct limits *l = f->limits;
	struct report *r = f->report;

	if (!l->requested)
		return;
	r->limits_known = true;
	if (f->prepared->policy.pids.set)
		r->pids_by = l->tasks_by_rlimit ? "rlimit" : "cgroup";
	r->figures = l->figures;
	/* Init is in the group as well, but is not a task of the command. */
	if (r->figures.tasks_peak > 0)
		r->figures.tasks_peak--;
}

static void report_policy(struct finish *f)
{
	struct report *r = f->report;

	if (!f->prepared->policy.expanded)
		return;
	memcpy(r->policy_digest, f->prepared->policy_digest, sizeof(r->policy_digest));
	r->policy_known = true;
	r->profile = f->prepared->policy.profile.value;
}

static void report_session(struct finish *f)
{
	const struct facts *facts = &f->prepared->facts;
	const struct plan *plan = &f->prepared->plan;
	struct report *r = f->report;

	if (!facts->workspace)
		return;
	r->session = facts->session_name ? facts->session_name + strlen("carrel-") : NULL;
	r->identity = facts->privileged ? REPORT_IDENTITY_PRIVILEGED : REPORT_IDENTITY_USER;
	r->kernel_uid = facts->kernel_uid;
	r->kernel_gid = facts->kernel_gid;
	r->landlock_abi = facts->landlock_abi;
	r->workspace = facts->workspace;
	r->workspace_mode = f->prepared->policy.workspace_mode;
	if (f->outcome->ready)
		for (int w = 0; w < WALL_COUNT; w++)
			report_wall(r, (enum wall)w, plan->walls[w].state, plan->walls[w].why);
	if (f->outcome->unwatched)
		report_wall(r, WALL_MOUNTS, WALL_ON,
			"not watched: /proc hides init (hidepid), or the command ended at once");
	if (f->outcome->breached)
		report_wall(r, WALL_MOUNTS, WALL_OFF, "a mount was removed from outside");
	if (!f->outcome->confined)
		report_wall(r, WALL_SUPERVISOR, WALL_OFF, NULL);
	r->passed = f->stdio ? f->stdio->passed : NULL;
	for (int i = 0; f->stdio && i < STDIO_STREAMS; i++) {
		if (r->stdio[i] == REPORT_STREAM_CLOSED)
			continue;
		r->stdio[i] = f->stdio->stream[i].how == STDIO_PASS ? REPORT_STREAM_DIRECT
			: f->stdio->stream[i].how == STDIO_RELAY    ? REPORT_STREAM_RELAY
								    : REPORT_STREAM_PTY;
	}
}

static void write_report(struct finish *f)
{
	struct error e = { 0 };

	if (f->report_file->kind == REPORT_FILE_NONE)
		return;
	report_command(f);
	report_limits(f);
	report_policy(f);
	f->report->exit_status = f->status;
	f->report->error = f->error->code != ERROR_NONE ? f->error : NULL;
	if (report_write(f->report_file, f->report, &e) < 0) {
		f->status = STATUS_CARREL;
		if (f->error->code == ERROR_NONE)
			*f->error = e;
	}
}

static void close_output(struct finish *f, struct arena *arena)
{
	const struct policy *policy = &f->prepared->policy;
	struct error e = { 0 };

	if (!f->stdio)
		return;
	if (stdio_close(f->stdio, &e) < 0)
		complain(f, &e);
	e.code = ERROR_NONE;
	int r = output_report(f->stdio, arena, f->report);
	if (r < 0) {
		(void)error_set(&e, ERROR_LIMIT, "close", -r, NULL,
			"cannot report what became of the output");
		complain(f, &e);
	}
	output_report_faults(
		f->stdio, policy->quiet.on, policy->keep.on || policy->keep_for_ms.set);
}

/* Print what was refused, note it for the report, and write what was learned from it. */
static void tell_refusals(struct finish *f, struct arena *arena)
{
	const struct policy *policy = &f->prepared->policy;
	struct explain *x = f->explain;
	struct error e = { 0 };

	if (!x || !x->observes)
		return;
	explain_stop(x);
	explain_tell(x, arena);
	if (!policy->quiet.on)
		explain_print(x);
	f->report->explained = true;
	f->report->denials = x->json;
	f->report->denials_size = x->json_size;
	f->report->denials_missing = x->missing;
	if (policy->learn.value && learn_file_write(f->learn, x, &e) < 0)
		complain(f, &e);
}

int finish_session(struct finish *f)
{
	struct arena arena = { 0 }; /* the plan's is sealed */

	if (arena_init(&arena, CLOSE_ARENA_SIZE) < 0)
		arena = (struct arena){ 0 };
	close_output(f, &arena);
	tell_refusals(f, &arena);
	report_session(f);
	end_limits(f);
	if (f->session)
		f->report->scratch = f->prepared->facts.scratch_dir;
	close_session(f, &arena);
	egress_end(f->egress);
	network_report(f->report, f->egress, &f->prepared->policy, &arena);
	notes_log_lost(&f->prepared->policy, f->egress);
	write_report(f);
	arena_free(&arena);
	return f->status;
}

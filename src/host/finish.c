/*
 * finish.c - see finish.h.
 *
 * Runs in: the launcher, when every process of the session is dead.
 */
#include "host/finish.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "base/sha256.h"
#include "host/close.h"

enum { STATUS_CARREL = 125, CLOSE_ARENA_SIZE = 16 << 20 };

/* What the user must hear although the session itself went well. */
static void complain(struct finish *f, const struct error *e)
{
	if (f->error->code == ERROR_NONE)
		*f->error = *e;
	/* Only where the command succeeded: its own failure is the more important news. */
	if (f->status == 0)
		f->status = STATUS_CARREL;
}

static void close_session(struct finish *f, struct arena *arena)
{
	const struct plan *plan = &f->prepared->plan;
	struct error e = { 0 };

	if (!f->session)
		return;
	if (f->outcome->ready &&
		close_quarantine(plan, f->session, f->outcome->breached, arena, f->report, &e) <
			0)
		complain(f, &e);
	e.code = ERROR_NONE;
	if (close_directory(plan, f->session, arena, f->report, &e) < 0)
		complain(f, &e);
	session_close(f->session);
}

static void report_command(struct finish *f)
{
	const struct outcome *o = f->outcome;
	struct report *r = f->report;

	r->started = o->started == STARTED_YES ? REPORT_STARTED_YES
		: o->started == STARTED_NO     ? REPORT_STARTED_NO
					       : REPORT_STARTED_UNKNOWN;
	if (o->ended && WIFSIGNALED(o->wait_status)) {
		r->end = REPORT_END_SIGNAL;
		r->signal = WTERMSIG(o->wait_status);
		if (r->signal == SIGXCPU && f->prepared->policy.cpu_time_ms.set)
			r->limit = REPORT_LIMIT_CPU_TIME;
		if (r->signal == SIGXFSZ && f->prepared->policy.file_size.set)
			r->limit = REPORT_LIMIT_FILE_SIZE;
	} else if (o->ended) {
		r->end = REPORT_END_STATUS;
		r->status = WEXITSTATUS(o->wait_status);
	}
	if (o->timed_out)
		r->limit = REPORT_LIMIT_TIMEOUT;
	r->wall_time_known = o->wall_known;
	r->wall_us = o->wall_us;
	r->usage_known = o->usage_known;
	r->user_us = o->user_us;
	r->system_us = o->system_us;
	r->max_rss_bytes = o->max_rss_kib * 1024;
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
	report_policy(f);
	f->report->exit_status = f->status;
	f->report->error = f->error->code != ERROR_NONE ? f->error : NULL;
	if (report_write(f->report_file, f->report, &e) < 0) {
		f->status = STATUS_CARREL;
		if (f->error->code == ERROR_NONE)
			*f->error = e;
	}
}

int finish_session(struct finish *f)
{
	struct error e = { 0 };
	struct arena arena = { 0 }; /* the plan's is sealed */

	if (arena_init(&arena, CLOSE_ARENA_SIZE) < 0)
		arena = (struct arena){ 0 };
	if (f->stdio && stdio_close(f->stdio, &e) < 0)
		complain(f, &e);
	report_session(f);
	if (f->session)
		f->report->scratch = f->prepared->facts.scratch_dir;
	close_session(f, &arena);
	write_report(f);
	arena_free(&arena);
	return f->status;
}

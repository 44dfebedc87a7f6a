/*
 * finish.c - see finish.h.
 *
 * Runs in: the launcher, when every process of the session is dead.
 */
#include "host/finish.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sha256.h"
#include "host/remove.h"

enum { STATUS_CARREL = 125 };

/* What the user must hear although the session itself went well. */
static void complain(struct finish *f, const struct error *e)
{
	if (f->error->code == ERROR_NONE)
		*f->error = *e;
	/* Only where the command succeeded: its own failure is the more important news. */
	if (f->status == 0)
		f->status = STATUS_CARREL;
}

static void note_keep(struct finish *f)
{
	char text[1200];
	const struct policy *policy = &f->prepared->policy;
	struct error e = { 0 };
	int r = session_keep(f->session,
		policy->keep_for_ms.set ? policy->keep_for_ms.value : 0, &e);

	if (r < 0)
		complain(f, &e);
	f->report->teardown = REPORT_TEARDOWN_KEPT;
	f->report->scratch_kept = true;
	if (policy->quiet.on)
		return;
	int length = snprintf(text, sizeof(text), "carrel: kept: %s\n",
		f->prepared->facts.scratch_dir);
	r = fd_write_all(STDERR_FILENO, text, (size_t)length);
	(void)r; /* nobody is there to read it */
}

static void remove_session(struct finish *f)
{
	const struct remove_options options = {
		.flags = f->prepared->policy.report.value ? REMOVE_COUNT_BYTES : 0,
	};
	struct remove_result gone;
	struct error e = { 0 };
	int r = remove_tree_with(f->session->base, f->session->name, &options, &gone, &e);

	f->report->scratch_files = gone.files;
	f->report->scratch_bytes = gone.bytes;
	f->report->teardown = r >= 0 ? REPORT_TEARDOWN_REMOVED :
		gone.removed ? REPORT_TEARDOWN_PARTIAL : REPORT_TEARDOWN_FAILED;
	f->report->teardown_remaining = gone.remained;
	f->report->teardown_errno = gone.errnum;
	if (r < 0)
		complain(f, &e);
}

static void close_session(struct finish *f)
{
	const struct policy *policy = &f->prepared->policy;

	if (!f->session)
		return;
	if (policy->keep.on || policy->keep_for_ms.set)
		note_keep(f);
	else
		remove_session(f);
	session_close(f->session);
}

static void report_command(struct finish *f)
{
	const struct outcome *o = f->outcome;
	struct report *r = f->report;

	r->started = o->started == STARTED_YES ? REPORT_STARTED_YES :
		o->started == STARTED_NO ? REPORT_STARTED_NO : REPORT_STARTED_UNKNOWN;
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

static int hash_part(void *context, const void *data, size_t size)
{
	sha256_update(context, data, size);
	return 0;
}

static void report_policy(struct finish *f)
{
	struct sha256 hash;
	struct report *r = f->report;

	if (!f->prepared->policy.expanded)
		return;
	sha256_init(&hash);
	if (policy_print(&f->prepared->policy, false, hash_part, &hash) < 0)
		return;
	sha256_final(&hash, r->policy_digest);
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
	if (!f->outcome->confined)
		report_wall(r, WALL_SUPERVISOR, WALL_OFF, NULL);
	for (int i = 0; f->stdio && i < STDIO_STREAMS; i++) {
		if (r->stdio[i] == REPORT_STREAM_CLOSED)
			continue;
		r->stdio[i] = f->stdio->stream[i].how == STDIO_PASS ? REPORT_STREAM_DIRECT :
			f->stdio->stream[i].how == STDIO_RELAY ? REPORT_STREAM_RELAY :
								 REPORT_STREAM_PTY;
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

	if (f->stdio && stdio_close(f->stdio, &e) < 0)
		complain(f, &e);
	report_session(f);
	if (f->session)
		f->report->scratch = f->prepared->facts.scratch_dir;
	close_session(f);
	write_report(f);
	return f->status;
}

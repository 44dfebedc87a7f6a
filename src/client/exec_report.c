/*
 * exec_report.c - see exec_report.h.
 *
 * Runs in: the client. The session's own report has what belongs to the session.
 */
#include "client/exec_report.h"

#include <stdlib.h>
#include <sys/wait.h>

#include "base/arena.h"
#include "box/channel.h"
#include "host/report/output.h"
#include "host/report/report.h"

enum { ARENA_SIZE = 65536 };

static enum report_limit limit_of(uint32_t limit)
{
	switch ((enum control_limit)limit) {
	case CONTROL_LIMIT_TIMEOUT:
		return REPORT_LIMIT_TIMEOUT;
	case CONTROL_LIMIT_CPU_TIME:
		return REPORT_LIMIT_CPU_TIME;
	case CONTROL_LIMIT_FILE_SIZE:
		return REPORT_LIMIT_FILE_SIZE;
	case CONTROL_LIMIT_MEMORY:
		return REPORT_LIMIT_MEMORY;
	case CONTROL_LIMIT_PIDS:
		return REPORT_LIMIT_PIDS;
	case CONTROL_LIMIT_NONE:
		break;
	}
	return REPORT_LIMIT_NONE;
}

static void put_end(struct report *r, const struct execution_end *end)
{
	const struct control_record *how = &end->how;

	r->started = end->runs ? REPORT_STARTED_YES
		: end->number  ? REPORT_STARTED_UNKNOWN
			       : REPORT_STARTED_NO;
	if (!end->ended)
		return;
	r->started = how->started == STARTED_YES ? REPORT_STARTED_YES
		: how->started == STARTED_NO     ? REPORT_STARTED_NO
						 : REPORT_STARTED_UNKNOWN;
	r->limit = limit_of(how->limit);
	r->limits_known = end->limited;
	r->figures = end->usage.figures;
	r->pids_by = end->usage.pids_by == LIMITS_PIDS_CGROUP ? "cgroup"
		: end->usage.pids_by == LIMITS_PIDS_RLIMIT    ? "rlimit"
							      : NULL;
	/* The monitor is in the group, but no task of the command's. */
	if (r->figures.tasks_peak > 0)
		r->figures.tasks_peak--;
	r->wall_time_known = r->usage_known = how->started == STARTED_YES;
	r->wall_us = how->wall_us;
	r->user_us = how->user_us;
	r->system_us = how->system_us;
	r->max_rss_bytes = how->max_rss_bytes;
	if (how->started != STARTED_YES)
		return;
	if (WIFSIGNALED(how->wait_status)) {
		r->end = REPORT_END_SIGNAL;
		r->signal = WTERMSIG(how->wait_status);
	} else {
		r->end = REPORT_END_STATUS;
		r->status = WEXITSTATUS(how->wait_status);
	}
}

static void put_streams(struct report *r, const struct stdio *s)
{
	for (unsigned i = 0; i < STDIO_STREAMS; i++)
		r->stdio[i] = s->stream[i].how == STDIO_PASS ? REPORT_STREAM_DIRECT
			: s->stream[i].how == STDIO_RELAY    ? REPORT_STREAM_RELAY
							     : REPORT_STREAM_PTY;
	if (r->limit == REPORT_LIMIT_NONE && stdio_is_over(s))
		r->limit = REPORT_LIMIT_OUTPUT;
}

int exec_report_write(const struct exec_report *x, struct error *e)
{
	struct report *r = malloc(sizeof(*r));
	struct arena arena = { 0 };
	int result = r ? arena_init(&arena, ARENA_SIZE) : -1;

	if (result >= 0) {
		report_init(r, x->argv);
		r->session = x->session->id;
		r->execution = x->end->number ? x->end->number : 1;
		r->exit_status = x->status;
		r->error = x->error->code != ERROR_NONE ? x->error : NULL;
		put_end(r, x->end);
		if (x->refused) {
			r->explained = true;
			r->denials = x->refused->json;
			r->denials_size = x->refused->json_size;
			r->denials_missing = x->refused->missing;
		}
		put_streams(r, &x->execution->stdio);
		r->passed = &x->execution->request->passed;
		result = output_report(&x->execution->stdio, &arena, r);
	}
	if (result >= 0)
		result = report_write(x->file, r, e);
	else
		report_discard(x->file);
	arena_free(&arena);
	free(r);
	return result < 0 ? STATUS_CARREL : x->status;
}

/*
 * report.c - see report.h. One function for each object of the document, in its order.
 *
 * Runs in: the launcher, outside, after the session is closed. May not: find anything out itself.
 */
#include "host/report/report.h"

#include <errno.h>
#include <stdio.h>

#include "base/json.h"
#include "base/name.h"
#include "host/report/report_members.h"
#include "host/stdio/passed.h"

#define BUFFER_SIZE 2048
#define DIGEST_PREFIX "sha256:"

static const char *const started_words[] = {
	[REPORT_STARTED_NO] = "no",
	[REPORT_STARTED_YES] = "yes",
	[REPORT_STARTED_UNKNOWN] = "unknown",
};

static const char *const limit_words[] = {
	[REPORT_LIMIT_NONE] = NULL,
	[REPORT_LIMIT_TIMEOUT] = "timeout",
	[REPORT_LIMIT_CPU_TIME] = "cpu-time",
	[REPORT_LIMIT_FILE_SIZE] = "file-size",
	[REPORT_LIMIT_OUTPUT] = "output",
	[REPORT_LIMIT_MEMORY] = "memory",
	[REPORT_LIMIT_PIDS] = "pids",
};

static const char *const identity_words[] = {
	[REPORT_IDENTITY_NONE] = NULL,
	[REPORT_IDENTITY_USER] = "user",
	[REPORT_IDENTITY_PRIVILEGED] = "privileged",
};

static const char *const stream_words[] = {
	[REPORT_STREAM_NONE] = NULL,
	[REPORT_STREAM_DIRECT] = "direct",
	[REPORT_STREAM_RELAY] = "relay",
	[REPORT_STREAM_PTY] = "pty",
	[REPORT_STREAM_CLOSED] = "closed",
};

static const char *const teardown_words[] = {
	[REPORT_TEARDOWN_NONE] = NULL,
	[REPORT_TEARDOWN_REMOVED] = "removed",
	[REPORT_TEARDOWN_KEPT] = "kept",
	[REPORT_TEARDOWN_DEFERRED] = "deferred",
	[REPORT_TEARDOWN_PARTIAL] = "partial",
	[REPORT_TEARDOWN_FAILED] = "failed",
};

static const char *const wall_words[] = {
	[WALL_UNAVAILABLE] = "unavailable",
	[WALL_OFF] = "off",
	[WALL_ON] = "on",
};

static const char *const workspace_words[] = {
	[WORKSPACE_DIRECT] = "direct",
	[WORKSPACE_RO] = "ro",
	[WORKSPACE_OVERLAY] = "overlay",
};

/* --- objects ---------------------------------------------------------------------------------- */

static void put_command(struct json *j, const struct report *r)
{
	json_key(j, "command");
	json_array_begin(j);
	for (const char *const *arg = r->command; *arg; arg++)
		json_string(j, *arg);
	json_array_end(j);
}

static void put_end(struct json *j, const struct report *r, bool ran)
{
	put_known(j, "status", ran && r->end == REPORT_END_STATUS, (uint64_t)r->status);
	if (put_absent(j, "signal", !ran || r->end != REPORT_END_SIGNAL))
		return;
	put_unsigned(j, "number", (uint64_t)r->signal);
	put_string(j, "name", name_signal(r->signal));
	json_object_end(j);
}

static void put_outcome(struct json *j, const struct report *r)
{
	bool ran = r->started != REPORT_STARTED_NO, usage = ran && r->usage_known;

	put_string(j, "started", started_words[r->started]);
	put_end(j, r, ran);
	put_unsigned(j, "exit_status", (uint64_t)r->exit_status);
	put_bool(j, "timed_out", r->limit == REPORT_LIMIT_TIMEOUT);
	put_string(j, "limit", limit_words[r->limit]);
	put_known(j, "wall_us", ran && r->wall_time_known, r->wall_us);
	put_known(j, "user_us", usage, r->user_us);
	put_known(j, "system_us", usage, r->system_us);
	put_known(j, "max_rss_bytes", usage, r->max_rss_bytes);
}

static void put_figure(struct json *j, const char *key, int64_t value)
{
	put_known(j, key, value >= 0, (uint64_t)value);
}

static void put_limits(struct json *j, const struct report *r)
{
	const struct cgroup_figures *f = &r->figures;

	if (put_absent(j, "limits", !r->limits_known))
		return;
	put_string(j, "pids_by", r->pids_by);
	put_figure(j, "memory_peak_bytes", f->memory_peak_bytes);
	put_figure(j, "oom_kills", f->oom_kills);
	put_figure(j, "cpu_us", f->cpu_us);
	put_figure(j, "throttled_us", f->throttled_us);
	put_figure(j, "throttled_periods", f->throttled_periods);
	put_figure(j, "tasks_peak", f->tasks_peak);
	put_figure(j, "tasks_refused", f->tasks_refused);
	json_object_end(j);
}

static void put_identity(struct json *j, const struct report *r)
{
	if (put_absent(j, "identity", r->identity == REPORT_IDENTITY_NONE))
		return;
	put_string(j, "mode", identity_words[r->identity]);
	put_unsigned(j, "kernel_uid", r->kernel_uid);
	put_unsigned(j, "kernel_gid", r->kernel_gid);
	json_object_end(j);
}

static void put_walls(struct json *j, const struct report *r)
{
	if (put_absent(j, "walls", r->execution != 0))
		return;
	for (unsigned i = 0; i < WALL_COUNT; i++) {
		const struct wall_fact *w = &r->walls[i];
		bool silent = !w->why && w->state != WALL_ON;

		json_key(j, plan_wall_name((enum wall)i));
		json_object_begin(j);
		put_string(j, "state", wall_words[w->state]);
		put_string(j, "why", silent ? "not reached" : w->why);
		if (i == WALL_LANDLOCK)
			put_known(j, "abi", r->landlock_abi > 0, (uint64_t)r->landlock_abi);
		json_object_end(j);
	}
	json_object_end(j);
}

static void put_policy(struct json *j, const struct report *r)
{
	char digest[sizeof(DIGEST_PREFIX) + SHA256_HEX_SIZE] = DIGEST_PREFIX;

	if (put_absent(j, "policy", !r->policy_known))
		return;
	sha256_hex(r->policy_digest, digest + sizeof(DIGEST_PREFIX) - 1);
	put_string(j, "profile", r->profile);
	put_string(j, "digest", digest);
	json_object_end(j);
}

static void put_places(struct json *j, const struct report *r)
{
	if (!put_absent(j, "workspace", !r->workspace)) {
		put_string(j, "path", r->workspace);
		put_string(j, "mode", workspace_words[r->workspace_mode]);
		json_object_end(j);
	}
	if (!put_absent(j, "scratch", !r->scratch)) {
		put_string(j, "path", r->scratch);
		put_unsigned(j, "files", r->scratch_files);
		put_unsigned(j, "bytes", r->scratch_bytes);
		put_bool(j, "truncated", r->scratch_truncated);
		put_bool(j, "kept", r->scratch_kept);
		json_object_end(j);
	}
}

static void put_promoted(struct json *j, const struct report *r)
{
	json_key(j, "promoted");
	json_array_begin(j);
	for (size_t i = 0; i < r->promoted_count; i++) {
		const struct report_promotion *p = &r->promoted[i];

		json_object_begin(j);
		put_string(j, "source", p->source);
		put_string(j, "destination", p->destination);
		put_string(j, "how", p->how);
		put_unsigned(j, "files", p->files);
		put_unsigned(j, "bytes", p->bytes);
		put_errno(j, p->errnum);
		put_string(j, "text", p->why);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_quarantined(struct json *j, const struct report *r)
{
	json_key(j, "quarantined");
	json_array_begin(j);
	for (size_t i = 0; i < r->quarantined_count; i++) {
		json_object_begin(j);
		put_string(j, "path", r->quarantined[i].path);
		put_string(j, "to", r->quarantined[i].to);
		put_string(j, "id", r->quarantined[i].id);
		put_unsigned(j, "times", r->quarantined[i].times);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_covered(struct json *j, const struct report *r)
{
	json_key(j, "covered_again");
	json_array_begin(j);
	for (size_t i = 0; i < r->covered_count; i++) {
		json_object_begin(j);
		put_string(j, "path", r->covered[i].path);
		put_unsigned(j, "times", r->covered[i].times);
		put_unsigned(j, "microseconds", r->covered[i].longest_us);
		put_bool(j, "gone", r->covered[i].gone);
		json_object_end(j);
	}
	json_array_end(j);
	json_key(j, "breaches");
	json_array_begin(j);
	for (size_t i = 0; i < r->breach_count; i++) {
		json_object_begin(j);
		put_string(j, "path", r->breaches[i].path);
		put_string(j, "name", r->breaches[i].name);
		put_unsigned(j, "pid", (uint64_t)r->breaches[i].process);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_denials(struct json *j, const struct report *r)
{
	json_key(j, "denials");
	if (r->explained && r->denials_size)
		json_document(j, r->denials, r->denials_size);
	else
		json_null(j);
	put_string(j, "denials_missing", r->explained ? r->denials_missing : NULL);
}

static void put_stdio(struct json *j, const struct report *r)
{
	json_key(j, "stdio");
	json_object_begin(j);
	put_string(j, "stdin", stream_words[r->stdio[0]]);
	put_string(j, "stdout", stream_words[r->stdio[1]]);
	put_string(j, "stderr", stream_words[r->stdio[2]]);
	json_object_end(j);
}

static void put_passed(struct json *j, const struct report *r)
{
	json_key(j, "pass_fds");
	json_array_begin(j);
	for (unsigned i = 0; r->passed && i < r->passed->count; i++) {
		const struct passed_fd *fd = &r->passed->fd[i];

		json_object_begin(j);
		json_key(j, "from");
		json_number(j, fd->pair.from);
		json_key(j, "to");
		json_number(j, fd->pair.to);
		put_string(j, "kind", passed_kind_name(fd->kind));
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_stream(struct json *j, const char *key, const struct report_output *o)
{
	if (put_absent(j, key, !o->relayed))
		return;
	put_unsigned(j, "characters", o->characters);
	put_unsigned(j, "bytes", o->bytes);
	put_unsigned(j, "omitted", o->omitted);
	put_bool(j, "truncated", o->truncated);
	put_string(j, "path", o->path);
	put_unsigned(j, "saved_bytes", o->saved_bytes);
	put_errno(j, o->errnum);
	json_object_end(j);
}

static void put_output(struct json *j, const struct report *r)
{
	if (put_absent(j, "output", !r->output[1].relayed && !r->output[2].relayed))
		return;
	put_bool(j, "merged", r->output_merged);
	put_stream(j, "stdout", &r->output[1]);
	put_stream(j, "stderr", &r->output[2]);
	json_object_end(j);
}

static void put_teardown(struct json *j, const struct report *r)
{
	if (put_absent(j, "teardown", r->teardown == REPORT_TEARDOWN_NONE))
		return;
	put_string(j, "result", teardown_words[r->teardown]);
	put_unsigned(j, "remaining", r->teardown_remaining);
	put_string(j, "path", r->teardown_path);
	put_errno(j, r->teardown_errno);
	json_object_end(j);
}

static const char *or_null(const char *text)
{
	return *text ? text : NULL;
}

static void put_error(struct json *j, const struct error *e)
{
	if (put_absent(j, "error", !e || e->code == ERROR_NONE))
		return;
	put_string(j, "code", error_code_name(e->code));
	put_string(j, "stage", e->stage);
	put_known(j, "operation", e->op >= 0, (uint64_t)e->op);
	put_errno(j, e->errnum);
	put_string(j, "text", e->what);
	put_string(j, "on", or_null(e->on));
	put_string(j, "hint", or_null(e->hint));
	json_object_end(j);
}

static void put_report(struct json *j, const struct report *r)
{
	json_object_begin(j);
	put_unsigned(j, "schema", REPORT_SCHEMA);
	put_string(j, "carrel", CARREL_VERSION);
	put_string(j, "session", r->session);
	put_known(j, "execution", r->execution != 0, r->execution);
	put_command(j, r);
	put_outcome(j, r);
	put_limits(j, r);
	put_identity(j, r);
	put_walls(j, r);
	put_policy(j, r);
	put_places(j, r);
	report_put_network(j, r);
	report_put_published(j, r);
	put_promoted(j, r);
	put_covered(j, r);
	put_quarantined(j, r);
	put_denials(j, r);
	put_stdio(j, r);
	put_passed(j, r);
	put_output(j, r);
	put_teardown(j, r);
	put_error(j, r->error);
	json_object_end(j);
}

/* --- the whole -------------------------------------------------------------------------------- */

void report_init(struct report *ret, const char *const *command)
{
	*ret = (struct report){ .command = command, .exit_status = 125 };
	for (unsigned i = 0; i < WALL_COUNT; i++)
		ret->walls[i].state = WALL_OFF;
}

void report_wall(struct report *r, enum wall wall, enum wall_state state, const char *why)
{
	r->walls[wall] = (struct wall_fact){ .state = state, .why = why };
}

int report_write(struct report_file *f, const struct report *r, struct error *e)
{
	char buffer[BUFFER_SIZE];
	struct json j;

	if (f->kind == REPORT_FILE_NONE)
		return 0;
	int result = report_file_begin(f);
	if (result == 0) {
		json_init(&j, buffer, sizeof(buffer), report_file_write, f);
		put_report(&j, r);
		result = json_finish(&j);
	}
	if (result == 0)
		result = report_file_commit(f);
	if (result < 0)
		(void)error_set(e, ERROR_REPORT, "report", -result, f->target,
			"cannot write the report");
	report_discard(f);
	return result;
}

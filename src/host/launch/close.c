/*
 * close.c - see close.h.
 *
 * Runs in: the launcher, when every process of the session is dead.
 */
#include "host/launch/close.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error_report.h"
#include "base/fd.h"
#include "host/promote/promote_tree.h"
#include "host/quarantine/newpath.h"
#include "host/session/manifest.h"
#include "host/tree/beneath.h"
#include "host/tree/census.h"
#include "host/tree/remove.h"

#define MS INT64_C(1000000)

enum {
	REVIEW_MS =
		500, /* the share of the second after a time-out; usually it takes 2 to 20 ms */
	REMOVAL_MS = 200,      /* of what is left, for the removal */
	OVERLAY_BRIEF_MS = 50, /* to count what an overlay has, where there is a time-out */
	LONG_MS = 8000,        /* the review gives up before that by itself */
};

int64_t close_review_deadline(int64_t now_ns, int64_t deadline_ns, bool cut)
{
	int64_t brief = now_ns + REVIEW_MS * MS, last = deadline_ns - REMOVAL_MS * MS;

	if (cut)
		return brief;
	if (!deadline_ns || deadline_ns - now_ns > LONG_MS * MS)
		return 0;
	return last > brief ? last : brief;
}

/* Whether the directory stays when the session is over. */
static bool is_kept(const struct plan *plan, bool lost)
{
	return lost || plan->policy->keep.on || plan->policy->keep_for_ms.set;
}

int close_quarantine(const struct plan *plan, const struct cover *cover,
	const struct newpath_watch *watch, bool breached, int64_t deadline_ns,
	struct arena *arena, struct report *report, struct error *e)
{
	const struct facts *facts = plan->facts;
	const struct kept_path *kept = NULL;
	int told = cover_kept(cover, plan, arena, &kept);
	const struct newpath_scope what = {
		.workspace = facts->workspace,
		.workspace_dev = facts->workspace_dev,
		.workspace_ino = facts->workspace_ino,
		.caller = facts->uid,
		.begun = facts->begun,
		.absents = plan->absents,
		.absent_count = plan->absent_count,
		/* Where the session was ended because the host replaced a protected file, the
		 * replacement belongs to the host and stays. */
		.kept = kept,
		.kept_count = breached || told < 0 ? 0 : plan->kept_count,
		.git_rules = facts->git_rules,
		.git_rule_count = facts->git_rule_count,
		.review = plan->policy->workspace_mode == WORKSPACE_DIRECT,
		.deadline_ns = deadline_ns,
		.session_id = session_id(facts->session_name),
		.log = { .dir = AT_FDCWD,
			.state = facts->state_dir,
			.keep_ms = plan->policy->quarantine_for_ms.value },
	};
	int r = newpath_quarantine(
		&what, arena, &report->quarantined, &report->quarantined_count, e);

	if (cover_report(cover, arena, report) < 0 || told < 0)
		r = r < 0 ? r : error_no_memory(e, "close");
	/* It is reported with `quiet` as well: what was moved belongs to the user. */
	newpath_report(report->quarantined, report->quarantined_count);
	if (newpath_watch_report(
		    watch, arena, &report->quarantined, &report->quarantined_count) < 0 &&
		r >= 0)
		r = error_set(e, ERROR_LIMIT, "close", ENOMEM, NULL,
			"cannot report all that appeared at protected paths");
	return r;
}

/* Counts what the scratch at @name in @dir holds, on top of what is counted already. */
static void count_scratch(int dir, const char *name, struct report *report)
{
	struct census held;

	if (census_tree(dir, name, CENSUS_MAX_MS, &held) < 0) {
		report->scratch_truncated = true;
		return;
	}
	report->scratch_files += held.files;
	report->scratch_bytes += held.bytes;
	report->scratch_truncated |= held.truncated;
}

/* A scratch in memory is kept as a copy on disk, at the place where it would be without
 * scratch-size. */
static int save_memory(const struct plan *plan, const struct session *session, struct error *e)
{
	const char *path = plan->facts->scratch_dir;
	struct promote_tree saved;
	struct error why = { 0 };
	autofd int to = beneath_open(session->dir, "scratch",
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW, BENEATH_SAME_MOUNT);

	if (to < 0)
		return error_set(
			e, ERROR_SCRATCH, "close", -to, path, "cannot keep the scratch");
	int r = promote_tree_save(
		session->memory, to, plan->policy->scratch_size.value, path, &saved, &why);
	if (r >= 0)
		return 0;
	r = error_set(e, ERROR_SCRATCH, "close", error_cause(&why), why.on, "%s", why.what);
	error_hint(e, "the scratch was memory; what could be copied of it is in %s", path);
	return r;
}

static int keep_directory(const struct plan *plan, struct session *session, bool lost,
	struct arena *arena, struct report *report, struct error *e)
{
	const struct policy *policy = plan->policy;
	int saved = session->memory >= 0 ? save_memory(plan, session, e) : 0;
	struct error unmarked = { 0 };
	int r = session_keep(session,
		policy->keep_for_ms.set && !lost ? policy->keep_for_ms.value : 0, &unmarked);

	if (r < 0 && saved == 0)
		*e = unmarked;
	r = saved < 0 ? saved : r;
	report->teardown = REPORT_TEARDOWN_KEPT;
	report->scratch_kept = true;
	if (policy->report.value)
		count_scratch(session->dir, "scratch", report);
	if (!policy->quiet.on || lost) {
		const char *text = arena_format(arena, "carrel: kept%s: %s\n",
			saved < 0 ? " in part" : "", plan->facts->scratch_dir);

		/* Where stderr is closed nobody is there to read it. */
		if (text)
			(void)!fd_write_all(STDERR_FILENO, text, strlen(text));
	}
	return r;
}

/*
 * Remove what tools left, and count it: not what lies beside it, which is outputs, an overlay's layers and notes.
 * Returns whether anything was removed.
 */
static bool remove_counted(
	const struct session *session, int64_t deadline_ns, struct report *report)
{
	const struct remove_options options = { .flags = REMOVE_COUNT_BYTES,
		.deadline_ns = deadline_ns };
	struct remove_result gone;

	if (session->memory >= 0) {
		count_scratch(session->memory, ".", report);
		return false;
	}
	int r = remove_tree_with(session->dir, "scratch", &options, &gone, NULL);
	report->scratch_files = gone.files;
	report->scratch_bytes = gone.bytes;
	/* What cannot be removed here fails again, and is reported, when the whole directory is
	 * removed. */
	report->scratch_truncated = r < 0;
	return gone.removed;
}

/* The time is over. The caller was promised when the run ends, not when the scratch is gone. */
static __attribute__((noinline)) int leave_to_sweep(
	const struct plan *plan, struct report *report)
{
	struct error line = { 0 };

	report->teardown = REPORT_TEARDOWN_DEFERRED;
	report->teardown_path = plan->facts->session_dir;
	report->scratch_truncated = true;
	(void)error_set(&line, ERROR_TEARDOWN, "close", 0, plan->facts->session_dir,
		"the scratch is large: it is removed in the background");
	if (!plan->policy->quiet.on)
		(void)error_report(&line);
	return 0;
}

/*
 * Tell the user about a copy-on-write workspace: its changes are nowhere but in the upper layer,
 * which is removed now unless it is kept. A file that was removed is an entry there as well.
 */
static void tell_overlay(
	const struct plan *plan, const struct session *session, bool kept, int64_t deadline_ns)
{
	struct census changed = { 0 };
	struct error line = { 0 };
	autofd int layers = beneath_open(session->dir, "overlay",
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW, BENEATH_SAME_MOUNT);

	if (layers < 0 ||
		census_tree(layers, "upper", deadline_ns ? OVERLAY_BRIEF_MS : CENSUS_MAX_MS,
			&changed) < 0 ||
		(changed.files + changed.others == 0 && !changed.truncated))
		return;
	const unsigned long long count = changed.files + changed.others;
	const bool one = count == 1 && !changed.truncated;
	(void)error_set(&line, ERROR_WORKSPACE, "close", 0, plan->facts->workspace,
		one ? "%s%llu changed file stays out of the workspace%s%s"
		    : "%s%llu changed files stay out of the workspace%s%s",
		changed.truncated ? "at least " : "", count, kept ? "" : ", and ",
		kept          ? ""
			: one ? "is dropped"
			      : "are dropped");
	if (kept)
		error_hint(&line, "they are in %s/overlay/upper", plan->facts->session_dir);
	else
		error_hint(&line,
			"--keep leaves them in the session's directory; workspace-mode direct writes them");
	(void)error_report(&line);
}

int close_directory(const struct plan *plan, struct session *session, bool lost,
	int64_t deadline_ns, struct arena *arena, struct report *report, struct error *e)
{
	const struct remove_options options = { .deadline_ns = deadline_ns };
	struct remove_result gone;

	manifest_discard(session->record);
	if (plan->policy->workspace_mode == WORKSPACE_OVERLAY && !plan->policy->quiet.on)
		tell_overlay(plan, session, is_kept(plan, lost), deadline_ns);
	if (is_kept(plan, lost))
		return keep_directory(plan, session, lost, arena, report, e);
	bool some = plan->policy->report.value && remove_counted(session, deadline_ns, report);
	int r = remove_tree_with(session->base, session->name, &options, &gone, e);
	if (r == -ETIME) {
		e->code = ERROR_NONE;
		return leave_to_sweep(plan, report);
	}
	report->teardown = r >= 0      ? REPORT_TEARDOWN_REMOVED
		: some || gone.removed ? REPORT_TEARDOWN_PARTIAL
				       : REPORT_TEARDOWN_FAILED;
	report->teardown_remaining = gone.remained;
	report->teardown_errno = gone.errnum;
	if (gone.remained)
		report->teardown_path =
			arena_format(arena, "%s/%s", plan->facts->scratch_base, gone.first);
	if (r < 0) {
		error_below(e, plan->facts->scratch_base);
		return r;
	}
	r = session_forget(session);
	return r < 0 ? error_set(e, ERROR_TEARDOWN, "close", -r, session->name,
			       "cannot remove the record of the session")
		     : 0;
}

/*
 * close.c - see close.h.
 *
 * Runs in: the launcher, when every process of the session is dead.
 */
#include "host/close.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/sys.h"
#include "host/census.h"
#include "host/quarantine.h"
#include "host/remove.h"
#include "plan/path.h"

/* One descriptor for each writable root; absents of one root follow each other or nearly so. */
static int open_root(const struct plan *plan, const char *path, int *ret_fd)
{
	const struct facts *facts = plan->facts;
	struct stat st;
	autofd int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd < 0)
		return fd;
	if (!strcmp(path, facts->workspace) && (fstat(fd, &st) < 0 ||
			st.st_dev != facts->workspace_dev || st.st_ino != facts->workspace_ino))
		return -ESTALE;
	*ret_fd = take_fd(&fd);
	return 0;
}

static int make_items(const struct plan *plan, struct quarantine_item *items, struct error *e)
{
	const char *root = NULL;
	int fd = -1;

	for (size_t i = 0; i < plan->absent_count; i++) {
		const struct absent_path *a = &plan->absents[i];
		size_t root_length = strlen(a->root);

		if (!root || strcmp(root, a->root) != 0) {
			int r = open_root(plan, a->root, &fd);
			if (r < 0)
				return error_set(e, ERROR_TEARDOWN, "close", -r, a->root,
					"cannot look for what appeared at protected paths");
			root = a->root;
		}
		items[i] = (struct quarantine_item){
			.root_fd = fd,
			.root = a->root,
			.path = path_below(a->root, a->path),
			.existing_prefix_len = a->existing_prefix > root_length ?
				a->existing_prefix - root_length - 1 : 0,
		};
	}
	return 0;
}

static void close_items(struct quarantine_item *items, size_t count)
{
	int last = -1;

	for (size_t i = 0; i < count; i++) {
		if (items[i].root_fd > 0 && items[i].root_fd != last)
			(void)close(items[i].root_fd);
		last = items[i].root_fd;
	}
}

static int report_moves(const struct plan *plan, const struct quarantine_result *found,
	struct arena *arena, struct report *report)
{
	struct report_quarantine *list = arena_array(arena, found->count, sizeof(*list));

	for (size_t i = 0; list && i < found->count; i++) {
		const struct quarantine_move *m = &found->moves[i];

		list[i].path = arena_format(arena, "%s/%s", m->item->root, m->from);
		list[i].to = m->to ? arena_format(arena, "%s/%s", plan->facts->scratch_base, m->to) :
			"";
		if (!list[i].path || !list[i].to)
			return -ENOMEM;
	}
	report->quarantined = list;
	report->quarantined_count = list ? found->count : 0;
	return found->count && !list ? -ENOMEM : 0;
}

static void tell_moves(const struct report *report)
{
	struct error line = { 0 };
	char text[2048];

	for (size_t i = 0; i < report->quarantined_count; i++) {
		line.code = ERROR_NONE;
		int r = error_set(&line, ERROR_TEARDOWN, "close", 0, report->quarantined[i].path,
			"quarantined, since the host would obey it");
		size_t length = error_format(&line, text, sizeof(text));

		r = fd_write_all(STDERR_FILENO, text, length);
		(void)r; /* nobody is there to read it */
	}
}

int close_quarantine(const struct plan *plan, const struct session *session,
	struct arena *arena, struct report *report, struct error *e)
{
	struct quarantine_result found = { .arena = arena };
	struct quarantine_item *items;

	if (!plan->absent_count)
		return 0;
	items = arena_array(arena, plan->absent_count, sizeof(*items));
	if (!items)
		return error_set(e, ERROR_LIMIT, "close", ENOMEM, NULL, "no memory");
	int r = make_items(plan, items, e);
	if (r >= 0)
		r = quarantine_check(items, plan->absent_count, session->base, session->name,
			&found, e);
	close_items(items, plan->absent_count);
	int reported = report_moves(plan, &found, arena, report);
	if (found.count && !plan->policy->quiet.on)
		tell_moves(report);
	if (reported < 0 && r >= 0)
		r = error_set(e, ERROR_LIMIT, "close", -reported, NULL, "no memory");
	return r;
}

static int keep_directory(const struct plan *plan, struct session *session,
	struct report *report, struct error *e)
{
	struct census held;
	char text[1200];
	const struct policy *policy = plan->policy;
	int r = session_keep(session, policy->keep_for_ms.set ? policy->keep_for_ms.value : 0, e);

	report->teardown = REPORT_TEARDOWN_KEPT;
	report->scratch_kept = true;
	if (policy->report.value && census_tree(session->dir, "scratch", &held) == 0) {
		report->scratch_files = held.files;
		report->scratch_bytes = held.bytes;
		report->scratch_truncated = held.truncated;
	}
	if (!policy->quiet.on) {
		int length = snprintf(text, sizeof(text), "carrel: kept: %s\n",
			plan->facts->scratch_dir);
		int told = fd_write_all(STDERR_FILENO, text, (size_t)length);

		(void)told; /* nobody is there to read it */
	}
	return r;
}

int close_directory(const struct plan *plan, struct session *session, struct arena *arena,
	struct report *report, struct error *e)
{
	const struct remove_options options = {
		.flags = plan->policy->report.value ? REMOVE_COUNT_BYTES : 0,
	};
	struct remove_result gone;

	if (plan->policy->keep.on || plan->policy->keep_for_ms.set)
		return keep_directory(plan, session, report, e);
	int r = remove_tree_with(session->base, session->name, &options, &gone, e);
	report->scratch_files = gone.files;
	report->scratch_bytes = gone.bytes;
	report->teardown = r >= 0 ? REPORT_TEARDOWN_REMOVED :
		gone.removed ? REPORT_TEARDOWN_PARTIAL : REPORT_TEARDOWN_FAILED;
	report->teardown_remaining = gone.remained;
	report->teardown_errno = gone.errnum;
	if (gone.remained)
		report->teardown_path = arena_format(arena, "%s/%s", plan->facts->scratch_base,
			gone.first);
	return r;
}

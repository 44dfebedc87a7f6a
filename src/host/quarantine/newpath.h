/*
 * newpath.h - new protected paths: when a session ends, carrel moves away what it left where the host would obey it.
 * If the launcher was killed, the sweep that finds the session dead does it.
 *
 * Runs in: the launcher, outside, when every process of the session is dead.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/arena.h"
#include "base/error.h"
#include "host/git/gitdirs.h"
#include "host/quarantine/quarantine_record.h"
#include "host/report/report.h"
#include "plan/plan.h"

/* What the caller knows of the session. The caller owns all of it. */
struct newpath_scope {
	const char *workspace; /* canonical; NULL: unknown */
	dev_t workspace_dev;
	ino_t workspace_ino;
	uid_t caller;
	struct timespec begun;             /* CLOCK_REALTIME */
	const struct absent_path *absents; /* nothing may be there */
	size_t absent_count;
	const struct kept_path *kept; /* the same thing must be there */
	size_t kept_count;
	const struct gitdir_rule *git_rules; /* as they were at the start */
	size_t git_rule_count;
	bool review; /* look also for what no mount could prevent: docs/git.md */
	/* CLOCK_MONOTONIC: the review of git's files may read until then. What only reading could clear and was not
	 * read by then is moved away unread. 0: some seconds from now on. */
	int64_t deadline_ns;
	/* The launcher was killed, maybe long ago. A writable place that is gone, or is another directory by now, is
	 * then passed over; after a session that just ended that is an error. */
	bool dead;
	const char *session_id; /* without "carrel-" */
	struct quarantine_log log;
};

/*
 * newpath_quarantine - move it away. @arena: owns the list @ret_moved (@ret_count of them), which is set after a
 * failure, too. Returns 0, or -errno with @e: something may still stand.
 */
MUST_CHECK int newpath_quarantine(const struct newpath_scope *what, struct arena *arena,
	const struct report_quarantine **ret_moved, size_t *ret_count, struct error *e);

/*
 * newpath_open_root - open a writable root, O_PATH, no link followed. The workspace must be what it was: -ESTALE.
 * Only the workspace's members of @what are looked at. 0 with @ret_fd, or -errno.
 */
MUST_CHECK int newpath_open_root(
	const struct newpath_scope *what, const char *path, int *ret_fd);

/* newpath_report - report each on stderr, in a line or two. */
void newpath_report(const struct report_quarantine *moved, size_t count);

/*
 * attest_process.h - what the kernel says about a session's processes, against the plan.
 *
 * Runs in: carrel-inspect, outside. May not: enter the session; attest_status is PURE.
 */
#pragma once

#include <sys/types.h>

#include "inspect/finding.h"
#include "plan/plan.h"

struct status_expected {
	const char *who; /* "payload" or "init" */
	bool privileged; /* an unprivileged kernel uid, and no group */
	uid_t uid;       /* otherwise these */
	gid_t gid;
	const char *own_status; /* the text of our own /proc/self/status */
};

/*
 * attest_status - judge ids, groups, capabilities, no_new_privs, filters and pid namespaces by the text
 * of a /proc/PID/status.
 */
void attest_status(struct findings *f, const char *status, const struct status_expected *x);

/* attest_namespaces - compare each with ours; judge their owner, the one user namespace and its maps. */
void attest_namespaces(struct findings *f, const struct plan *plan, pid_t payload);

/*
 * attest_descriptors - there must be 0, 1 and 2 only. @exact: the process has opened nothing itself; otherwise
 * further ones count only if they lie on a mount that is not the session's.
 */
void attest_descriptors(struct findings *f, pid_t payload, bool exact);

/*
 * attest_environment - compare the payload's with the plan's.
 * @session: its name. @secret: the text of a variable that must be in no process but ours.
 */
void attest_environment(struct findings *f, const struct plan *plan, const char *session,
	pid_t init, pid_t payload, const char *secret);

/* attest_limits - compare the resource limits with those that the plan sets. */
void attest_limits(struct findings *f, const struct plan *plan, pid_t payload);

/*
 * attest_filter - compare the program that the kernel runs with the plan's, instruction by instruction;
 * a note if the kernel does not show it (it shows it only to root). See: ptrace(2).
 */
void attest_filter(
	struct findings *f, const struct plan *plan, pid_t payload, unsigned own_filters);

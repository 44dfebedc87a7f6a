/*
 * facts.h - what a plan must know about the caller, the machine and the paths of the policy.
 *
 * Runs in: the launcher and carrel-policy, outside, before anything of the session exists.
 * May not: change anything. Each path is looked up once; what was found is checked again (device and
 * inode) when it is used.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "host/facts/identity.h"
#include "plan/plan.h"

/*
 * facts_caller - ids, kernel, home, cwd, workspace, scratch base, session name.
 * @policy: after policy_finish(). @identity: chosen before, or NULL. @state_dir: the one in use, or NULL.
 * @environment: the caller's environment, borrowed.
 * Returns 0, or -errno with @e: ERROR_WORKSPACE (missing, not a directory, refused, not writable),
 * ERROR_SCRATCH (missing, not a directory, not writable, not trustworthy), ERROR_STATE, ERROR_INTERNAL.
 */
MUST_CHECK int facts_caller(struct facts *ret, struct arena *a, const struct policy *policy,
	const struct identity *identity, const char *state_dir, const char *const *environment,
	struct error *e);

/*
 * facts_names - the names that policies may use, from the facts and the caller's environment.
 * Before facts_caller() only those that do not depend on the session are there.
 * Returns 0, or -errno with @e where home_find() fails.
 */
MUST_CHECK int facts_names(struct policy_names *ret, struct arena *a, const struct facts *facts,
	const char *const *environment, struct error *e);

/*
 * facts_paths - resolve every path rule, what git needs, and the places every session shapes.
 * @policy: after policy_expand(); gets rules for the workspace's git directories added.
 * Returns 0, or -errno with @e: ERROR_PATH (a rule names what is missing or unusable).
 */
MUST_CHECK int facts_paths(
	struct facts *facts, struct arena *a, struct policy *policy, struct error *e);

/*
 * facts_work_tree - find the git work tree that holds the cwd. *@ret, in @a or @facts, is the cwd
 * itself (which may be NULL) if no work tree holds it, or only one that is refused as a workspace:
 * the home, a directory of the system.
 * @facts: its cwd, home and uid. Returns 0, or -errno with @e (ERROR_WORKSPACE: it belongs to
 * somebody else).
 */
MUST_CHECK int facts_work_tree(
	const struct facts *facts, struct arena *a, const char **ret, struct error *e);

/* facts_landlock - the ABI of Landlock that this kernel offers, or -errno: ENOSYS, EOPNOTSUPP, EPERM where it has none to offer. */
int facts_landlock(void);

/*
 * facts_cwd - the working directory, in the arena; NULL where it was deleted or lies outside of this
 * root, which reads as no path or "(unreachable)".
 */
const char *facts_cwd(struct arena *a);

/* facts_env - the value of NAME in an environment block, or NULL. */
const char *facts_env(const char *const *environment, const char *name);

/*
 * confine.h - the operations on init itself: identity, limits, capabilities, Landlock, filter.
 *
 * Runs in: init. Each is one wall, takes effect for init and everything it starts, and cannot be
 * undone. Each returns 0 or -errno; after a failure the session ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/plan.h"

#define MUST __attribute__((warn_unused_result))

/* Bring `lo` up in the new network namespace. See: netdevice(7). */
MUST int confine_loopback(void);

/* A new, empty session keyring: keys that the caller possesses stay out. See: keyrings(7). */
MUST int confine_keyring(void);

/* Privileged mode: join the prepared user namespace. See: setns(2). */
MUST int confine_enter_user_ns(int user_ns);

/* user.max_user_namespaces = 0 for this user namespace, through @proc (a procfs root). See: namespaces(7). */
MUST int confine_no_nested(int proc);

/* Become the payload's uid and gid, with no supplementary group where that can be had. */
MUST int confine_identity(const struct facts *facts);

/* setrlimit(2), soft and hard; never above the hard limit in force. */
MUST int confine_rlimit(unsigned resource, uint64_t value);

/*
 * Set RLIMIT_NPROC, which the kernel counts in this user namespace, and prove that it holds here:
 * -ENOTSUP if the kernel exempts this uid (the host's root). See: getrlimit(2).
 */
MUST int confine_tasks(uint64_t count);

/*
 * Empty the bounding, ambient, inheritable, permitted and effective sets, lock the securebits.
 * @lock: false: the bounding set and the securebits may stay if init may not change them.
 * See: capabilities(7).
 */
MUST int confine_capabilities(bool lock);

/* See: PR_SET_NO_NEW_PRIVS in prctl(2). */
MUST int confine_no_new_privs(void);

/*
 * One OP_LANDLOCK_*; *@ruleset is the descriptor between them. @place: what a rule is about; -1:
 * the rule's path is opened. See: landlock(7).
 */
MUST int confine_landlock(const struct op *op, int place, int *ruleset);

/* Without a network namespace: no socket but unix ones, EACCES. Before the filter. See: seccomp(2). */
MUST int confine_sockets(void);

/*
 * Wipe the caller's arguments and environment out of this copy and stop being dumpable.
 * @die_with_parent: be killed with the supervisor.
 */
MUST int confine_hide_self(char *caller_args, size_t size, bool die_with_parent);

/* Load the system-call filter. See: seccomp(2). */
MUST int confine_filter(const struct sock_filter *filter, unsigned short count);

/*
 * facts_gituser.h - files that a session sees replaced by a text of carrel's. Root's sessions run
 * as a uid that cannot read root's own files: a text tells git who root is. A session with `net
 * allow` has a resolver and hosts of its own.
 *
 * Runs in: the launcher and carrel-policy, outside. May not: change anything.
 */
#pragma once

#include "host/facts/resolve.h"
#include "plan/plan.h"

/*
 * facts_gituser - add a fact for each configuration of the caller's (~/.gitconfig, $XDG_CONFIG_HOME/git/config) that
 * would be seen if the session had the caller's uid, and cannot be read with the one it has: a file that holds name,
 * e-mail, default branch and aliases alone (host/git/gitidentity.h).
 * After the rules, before the closed directories. Nothing is added where a rule says something of that place.
 * Returns 0 or -ENOMEM.
 */
MUST_CHECK int facts_gituser(struct facts *facts, struct resolver *resolver);

/* facts_is_own - whether @path lies in the workspace, or in a place that never is the host's inside. */
bool facts_is_own(const struct facts *facts, const char *path);

/*
 * facts_hosts - show the session's own resolver (/etc/resolv.conf), and no host but itself
 * (/etc/hosts): add a fact for each of the two files that exists on the host and would be seen
 * inside. A file that is missing inside needs none: every resolver then asks 127.0.0.1
 * (resolv.conf(5)). Call it after the facts of all rules. 0 or -ENOMEM.
 */
MUST_CHECK int facts_hosts(struct facts *facts, struct resolver *resolver);

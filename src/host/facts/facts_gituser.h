/*
 * facts_gituser.h - files in whose place a text is shown. Root's sessions run as a uid that cannot read root's own files: who
 * root is to git they are told. One with `net allow` has a resolver and hosts of its own.
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

/* facts_is_own - whether @path lies in a place that is never the host's inside, or in the workspace, which has what is in it. */
bool facts_is_own(const struct facts *facts, const char *path);

/*
 * facts_hosts - the session's own resolver, and no host but itself: a fact for each of the two files that exists on the
 * host and would be seen inside. One that is missing inside needs none: then every resolver asks 127.0.0.1
 * (resolv.conf(5)). After the facts of all rules. 0 or -ENOMEM.
 */
MUST_CHECK int facts_hosts(struct facts *facts, struct resolver *resolver);

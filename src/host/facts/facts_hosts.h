/*
 * facts_hosts.h - what a session with `net allow` has in the place of the host's /etc/resolv.conf and /etc/hosts.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#pragma once

#include "host/facts/resolve.h"
#include "plan/plan.h"

/*
 * facts_hosts - the session's own resolver, and no host but itself: a fact for each of the two files that exists on the
 * host and would be seen inside. One that is missing inside needs none: then every resolver asks 127.0.0.1
 * (resolv.conf(5)). After the facts of all rules. 0 or -ENOMEM.
 */
MUST_CHECK int facts_hosts(struct facts *facts, struct resolver *resolver);

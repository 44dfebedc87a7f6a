/*
 * facts_cover.h - the fact of a path; and hide and protect rules about places where a bind shows something else.
 *
 * Runs in: the launcher and carrel-policy, outside. May not: change anything.
 */
#pragma once

#include "host/facts/resolve.h"
#include "plan/plan.h"

/* facts_path - make what was found a fact of @rule, shown at the place where it lies. */
struct path_fact facts_path(const struct path_rule *rule, const struct resolved *found);

/* facts_add - one more fact; the array may move. 0 or -ENOMEM. */
MUST_CHECK int facts_add(struct facts *facts, struct arena *a, const struct path_fact *fact);

/*
 * facts_cover - for each rule about a place below a bind's destination, look at what the bind shows
 * there instead of what the host has there: a fact for it is added, and that of the host is marked
 * `covered`. After all rules were looked up; costs nothing without binds. 0 or -errno.
 */
MUST_CHECK int facts_cover(
	struct facts *facts, struct resolver *resolver, const struct policy *policy);

/* facts_is_covered - whether what the host has at @place is not seen there, since a bind shows something else. */
bool facts_is_covered(const struct facts *facts, const char *place);

/*
 * facts_seats - look at each place below a bind's destination that something is mounted on, in
 * every session or by another rule. If the bind shows nothing there to mount it on, the place is
 * noted in facts.unseated. Call it after all other facts; it costs nothing without binds. 0 or
 * -ENOMEM.
 */
MUST_CHECK int facts_seats(struct facts *facts, struct arena *a);

enum { FACTS_SOCKETS_MAX = 128 };

/*
 * A read-only mount stops no connect(2), and before version 9 of its ABI neither does Landlock. So what listens when
 * the session begins is looked up in /proc/net/unix, and covered where the session would see it and may not write
 * it. A line that names a socket itself (`unix-socket`, `read`, `write`, `bind`) shows it all the same.
 *
 * facts_sockets - add a hide rule for each; after the policy's own rules were looked up.
 * facts->socket_count: how many; facts->sockets_why: what remains, in words; NULL where it was not looked.
 * Costs nothing where Landlock refuses them, and where there are no mounts. 0 or -errno: the list cannot be
 * read.
 */
MUST_CHECK int facts_sockets(
	struct facts *facts, struct resolver *resolver, const struct policy *policy);

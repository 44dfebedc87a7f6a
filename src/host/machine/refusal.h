/*
 * refusal.h - which of a session's needs this machine, or this container, refuses.
 *
 * Runs in: the launcher and carrel-policy, outside. Only where the policy says `degraded`: it costs a
 * process and a set of namespaces.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "host/facts/identity.h"
#include "plan/plan.h"

/* In words, for facts; NULL: not refused. */
struct refusal {
	const char *namespaces; /* any of them, or the mounts in them */
	const char *proc;       /* a new procfs */
	const char *keyring;
};

/*
 * refusal_find - try it. @id: whose session it would be.
 * Returns 0 or -errno with @e (ERROR_LIMIT, ERROR_INTERNAL), where it could not be tried.
 */
MUST_CHECK int refusal_find(
	struct refusal *ret, struct arena *a, const struct identity *id, struct error *e);

/*
 * refusal_format - the line for stderr about a session that goes on without something, because its
 * policy says `degraded`. Returns false where there is nothing to say. The line ends with a newline.
 */
bool refusal_format(const struct plan *plan, char *ret_line, size_t size);

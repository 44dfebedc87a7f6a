/*
 * container.h - which option of a container's runtime would grant what was refused.
 *
 * Runs in: the launcher, outside, on the way to an error message: never where all went well. What it
 * says is a hint, never a decision.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

enum container_need {
	CONTAINER_NAMESPACES, /* namespaces or mounts were refused */
	CONTAINER_PROC,       /* a new procfs was */
	CONTAINER_UID,        /* root could not be given an unprivileged uid */
};

/* container_is_one - whether carrel runs in a container of docker, podman or a relative of theirs. */
bool container_is_one(void);

/*
 * container_is_rootless - whether root here is root over some ids only. Then it has no rights over what
 * was mounted outside: no idmapped mount, for one.
 */
bool container_is_rootless(void);

/*
 * container_hint - name the options, for docker and for podman, as the hint of @e in place of the one
 * it has. @live: of a live session, which cannot do without namespaces and a /proc of its own, so that
 * `degraded` is offered only where it helps. Does nothing outside of a container.
 */
void container_hint(enum container_need need, bool live, struct error *e);

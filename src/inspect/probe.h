/*
 * probe.h - tries what a session needs, each time in a process of its own that leaves nothing.
 *
 * Runs in: carrel-inspect; what is tried runs in forked children.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* What a try is made with. */
struct probe {
	bool privileged; /* as the launcher does as root: namespaces without a user namespace, which is made apart */
	uid_t uid, kernel_uid; /* inside; and as the namespace of this process knows it */
	gid_t gid, kernel_gid;
	const char *path; /* what the try is about, or NULL */
	const char *other;
};

/* What has to be there before the try. */
enum probe_place {
	PROBE_HERE, /* nothing */
	PROBE_USER, /* a user namespace of its own with one id */
	PROBE_MOUNTS, /* a mount namespace; if not privileged, in a user namespace as with PROBE_USER */
};

/*
 * probe_run - do @try in a child. @try returns 0 or positive, or -errno; it may change its process as it
 * likes: the child is gone afterwards. Returns what @try returned (at most 2^30), or -errno.
 */
MUST_CHECK int probe_run(
	const struct probe *p, enum probe_place place, int (*try)(const struct probe *p));

/*
 * probe_make_user_ns - a user namespace that maps these ids to the kernel ids of @p.
 * Returns its descriptor or -errno.
 */
MUST_CHECK int probe_make_user_ns(const struct probe *p, uid_t inside, gid_t gid_inside);

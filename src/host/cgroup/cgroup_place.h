/*
 * cgroup_place.h - where a session's group can be made: found by trying, never by version or name.
 *
 * Runs in: the launcher, outside, before anything is started (and carrel-inspect, which only looks).
 * For the cgroup_*.c files and doctor.
 */
#pragma once

#include <stddef.h>

#include "host/cgroup/cgroup.h"

/* Where the hierarchy is seen, and where in it this process is. */
struct cgroup_location {
	char mount[CGROUP_PATH_MAX]; /* mount point, absolute */
	char own[CGROUP_PATH_MAX];   /* below it: "" or "/a/b" */
};

enum cgroup_lack {
	CGROUP_LACK_NOTHING,
	CGROUP_LACK_MOUNT,       /* no cgroup v2 is mounted */
	CGROUP_LACK_VIEW,        /* our own group cannot be seen in what is mounted */
	CGROUP_LACK_WRITABLE,    /* mounted read-only */
	CGROUP_LACK_RIGHTS,      /* not delegated to this user */
	CGROUP_LACK_CONTROLLERS, /* one that is needed is not there */
	CGROUP_LACK_ROOM,        /* processes that cannot be moved are in the way */
};

struct cgroup_place {
	int dir; /* the group that the session's is made in; -1: none */
	char path[CGROUP_PATH_MAX];
	enum cgroup_lack lack; /* why there is none */
	unsigned lacking;      /* which controllers, with CGROUP_LACK_CONTROLLERS */
};

/*
 * cgroup_locate - read /proc/self/mountinfo and /proc/self/cgroup, given as texts (changed).
 * PURE. 0, -ENODEV (no cgroup v2 is mounted), -EXDEV (ours is not below what is mounted).
 */
MUST_CHECK int cgroup_locate(
	char *mountinfo, const char *self_cgroup, struct cgroup_location *ret);

/* cgroup_location_read - the same for this process. As above, or -errno. */
MUST_CHECK int cgroup_location_read(struct cgroup_location *ret);

/*
 * cgroup_place_choose - the place for @location, which may be a tree of ordinary directories (tests).
 * @dry: nothing is changed, neither processes nor controllers: what would be tried.
 * @need, @want: as for cgroup_session_begin(). 0, or -errno with @ret->lack; @ret->dir is then -1.
 */
MUST_CHECK int cgroup_place_choose(const struct cgroup_location *location, bool dry,
	unsigned need, unsigned want, struct cgroup_place *ret);

/* cgroup_place_find - the same for where this process is. As above, also with CGROUP_LACK_MOUNT. */
MUST_CHECK int cgroup_place_find(
	bool dry, unsigned need, unsigned want, struct cgroup_place *ret);

/*
 * cgroup_enable - have the controllers @need in the groups below @dir, and in its ancestors first
 * where they are not handed down yet. 0, -ENOENT (this machine, or the one that delegated, does not
 * have one),
 * -EBUSY (the group has processes), -EACCES, or another -errno.
 */
MUST_CHECK int cgroup_enable(int dir, unsigned need);

/* cgroup_controllers - bits of the controllers named in @file of the group @dir; 0 where unreadable. */
unsigned cgroup_controllers(int dir, const char *file);

/* cgroup_write_file - one value into one file of a group. 0 or -errno. */
MUST_CHECK int cgroup_write_file(int dir, const char *file, const char *text);

/* cgroup_read_file - a small file of a group, NUL-terminated. Its length or -errno. */
MUST_CHECK ssize_t cgroup_read_file(int dir, const char *file, char *ret_text, size_t size);

/* cgroup_name_controllers - "memory and pids", for people. */
void cgroup_name_controllers(unsigned controllers, char *ret_text, size_t size);

/*
 * cgroup_explain - ERROR_UNAVAILABLE, with the command that would give what is lacking on this machine.
 * @place: from a choice that failed, or with the lack that making the group showed. Returns -errno.
 */
int cgroup_explain(
	const struct cgroup_place *place, unsigned need, int errnum, struct error *e);

/* cgroup_lack_text - a lack in words, for people. */
const char *cgroup_lack_text(enum cgroup_lack lack);

/* cgroup_remedy - that command alone. */
void cgroup_remedy(const struct cgroup_place *place, char *ret_text, size_t size);

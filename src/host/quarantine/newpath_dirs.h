/*
 * newpath_dirs.h - the directories in which a protected path can come into being, watched with inotify(7).
 *
 * Runs in: S. Used by newpath_watch.c only. May not: follow a link, watch more than is listed at the start.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "host/quarantine/quarantine.h"

enum {
	NEWPATH_DIRS = 1024,
	NEWPATH_BITS = 4096,
};

/* A set of names, by hash: it may seem to hold a name that it does not hold. */
struct newpath_names {
	uint64_t bits[NEWPATH_BITS / 64];
};

/* One directory, which may be absent, or another than before. */
struct newpath_dir {
	int root_fd;
	int wd; /* -1: not watched */
	const char *path;
	bool whole; /* it is the protected thing itself: every event in it counts */
};

struct newpath_dirs {
	int fd; /* inotify; -1 */
	struct newpath_dir *dirs;
	size_t count;
	struct newpath_names names;  /* of all components */
	struct newpath_names leaves; /* of the items that newpath_judge.h judges */
	bool partial;                /* not all could be watched the last time */
};

/* newpath_dirs_add - add the directories on the way to @item; @judged: and @item itself. 0 or -ENOMEM. */
MUST_CHECK int newpath_dirs_add(struct newpath_dirs *d, struct arena *arena,
	const struct quarantine_item *item, bool judged);

/* newpath_dirs_open - get inotify; the caller closes d->fd. 0 or -errno. */
MUST_CHECK int newpath_dirs_open(struct newpath_dirs *d);

/* newpath_dirs_watch - watch the directories that exist now; call it again whenever newpath_dirs_drain() returns true. */
void newpath_dirs_watch(struct newpath_dirs *d);

/*
 * newpath_dirs_drain - read the events. Returns whether a name of a protected path came into being.
 * @ret_changed: whether a judged item may have changed.
 */
MUST_CHECK bool newpath_dirs_drain(struct newpath_dirs *d, bool *ret_changed);

/*
 * appear_dirs.h - the directories in which a protected path can come into being, watched with inotify(7).
 *
 * Runs in: S. Used by appear_watch.c only. May not: follow a link, watch more than is listed at the start.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "host/quarantine/quarantine.h"

enum {
	APPEAR_DIRS = 1024,
	APPEAR_BITS = 4096,
};

/* A set of names, in which some may seem to be that are not. */
struct appear_names {
	uint64_t bits[APPEAR_BITS / 64];
};

/* One directory, which may be absent, or another than before. */
struct appear_dir {
	int root_fd;
	int wd; /* -1: not watched */
	const char *path;
	bool whole; /* whatever happens in it counts: it is the protected thing itself */
};

struct appear_dirs {
	int fd; /* inotify; -1 */
	struct appear_dir *dirs;
	size_t count;
	struct appear_names names;  /* of all components */
	struct appear_names leaves; /* of what is judged: appear_judge.h */
	bool partial;               /* something could not be watched the last time */
};

/* appear_dirs_add - the directories on the way to @item; @judged: itself as well. 0 or -ENOMEM. */
MUST_CHECK int appear_dirs_add(struct appear_dirs *d, struct arena *arena,
	const struct quarantine_item *item, bool judged);

/* appear_dirs_open - 0, or -errno where there is no inotify. d->fd is the caller's. */
MUST_CHECK int appear_dirs_open(struct appear_dirs *d);

/* appear_dirs_watch - watch what is there now; call it again whenever appear_dirs_drain() says so. */
void appear_dirs_watch(struct appear_dirs *d);

/*
 * appear_dirs_drain - read what happened. Returns whether a name of a protected path came into being.
 * @ret_changed: whether something that is judged may have changed.
 */
MUST_CHECK bool appear_dirs_drain(struct appear_dirs *d, bool *ret_changed);

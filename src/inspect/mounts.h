/*
 * mounts.h - reads the kernel's mount table, and finds the mount that is seen at a path.
 *
 * Runs in: carrel-inspect, outside. It reads with libmount, not with the code that makes mounts.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"

enum mount_flag {
	MOUNT_RDONLY = 1 << 0, /* of this mount; the file system's own is MOUNT_FS_RDONLY */
	MOUNT_NOSUID = 1 << 1,
	MOUNT_NODEV = 1 << 2,
	MOUNT_NOEXEC = 1 << 3,
	MOUNT_IDMAPPED = 1 << 4,
	MOUNT_SHARED = 1 << 5, /* propagates to or from another namespace */
	MOUNT_FS_RDONLY = 1 << 6,
};

struct mount {
	int id;
	int parent;
	dev_t dev;
	const char *root;   /* which part of the file system it shows */
	const char *target; /* where, as its namespace's root sees it */
	const char *type;
	unsigned flags; /* MOUNT_* */
};

struct mount_table {
	struct arena *arena; /* owns the texts */
	struct mount *items;
	size_t count;
};

/*
 * mount_table_read - append the mounts of @path (/proc/PID/mountinfo) to @t. 0, or -errno with @e.
 * See: proc(5).
 */
MUST_CHECK int mount_table_read(struct mount_table *t, const char *path, struct error *e);

/*
 * mount_table_at - the mount that is seen at @path (absolute, canonical): the last one that a walk
 * from the root steps onto. NULL: the table has no root.
 */
const struct mount *mount_table_at(const struct mount_table *t, const char *path);

/* mount_table_parent - the mount that @m stands on, or NULL. */
const struct mount *mount_table_parent(const struct mount_table *t, const struct mount *m);

/* mount_flags_text - those of the words "ro nosuid nodev noexec idmapped shared" that @flags have. */
void mount_flags_text(unsigned flags, char *ret_text, size_t size);

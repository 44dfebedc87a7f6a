/*
 * mountinfo.h - the mounts of this process, and on which of them a path lies.
 *
 * Runs in: the launcher and carrel-policy, outside. May not: change anything, or believe a line that
 * is damaged. Paths are compared byte for byte: nothing is looked up in a file system.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * The first bytes of a path. Most of thousands of paths differ there, and then their texts need not
 * be fetched.
 */
struct mount_head {
	uint64_t bytes, mask; /* 0 behind the end of a shorter path */
};

struct mount_entry {
	unsigned id, parent;
	uint64_t device;   /* major << 32 | minor: the same for all mounts of one file system */
	const char *root;  /* what of the file system is mounted */
	const char *point; /* where it is, seen from this process's root */
	struct mount_head root_head;
	bool is_proc; /* a procfs, whichever */
};

/* A directory that an overlay is made of, as it was named when that was mounted. */
struct mount_layer {
	size_t overlay; /* index of the mount */
	const char *path;
};

/* The strings point into the text that was read. */
struct mountinfo {
	struct mount_entry *mounts; /* in the order of the kernel's list */
	size_t count;
	struct mount_layer *layers; /* with an absolute path */
	size_t layer_count;
	const struct mount_entry *root; /* what "/" was before anything was mounted over it */
	uint32_t *slots;                /* hash table by point: 1 + index of a mount; 0: free */
	size_t slot_mask;
};

/*
 * mountinfo_parse - parse the table in @text: @size bytes, and a NUL behind them. The text is
 * changed and kept.
 * Returns 0, -EBADMSG (a line is damaged or cut) or -ENOMEM. See: proc(5).
 */
MUST_CHECK int mountinfo_parse(struct mountinfo *ret, struct arena *a, char *text, size_t size);

/*
 * mountinfo_read - read the table of this process. @a: a large one of its own. 0, -EFBIG, or -errno
 * of the above.
 */
MUST_CHECK int mountinfo_read(struct mountinfo *ret, struct arena *a);

/*
 * mountinfo_find - the mount that holds what is seen at @path; a mount that another one covers is
 * passed over. @path: canonical. NULL: that mount is not in the table.
 */
const struct mount_entry *mountinfo_find(const struct mountinfo *t, const char *path);

/* mountinfo_head - the first bytes of @path. */
struct mount_head mountinfo_head(const char *path);

/* mountinfo_may_lead - false where a path that begins with @dir is surely not above one that begins with @path. */
static inline bool mountinfo_may_lead(struct mount_head dir, struct mount_head path)
{
	return (path.bytes & dir.mask) == dir.bytes;
}

/*
 * scaffold.c - see scaffold.h.
 *
 * Runs in: init. No heap, no stdio.
 */
#include "box/scaffold.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mount.h>
#include <unistd.h>

#include "box/number.h"
#include "box/sys.h"

static int clone_of(int mount, const char *path)
{
	return sys_open_tree(mount, path,
		OPEN_TREE_CLONE | AT_SYMLINK_NOFOLLOW | (*path ? 0 : AT_EMPTY_PATH));
}

/* Where the mount of @slot is attached, or -ENOENT. */
static int find_slot(const struct scaffold *s, uint16_t slot)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->slots[i] == slot)
			return s->mounts[i];
	return -ENOENT;
}

/* The mounts are made private first: as root they are still peers of the host's
 * (mount_namespaces(7)). */
static int attach_to_root(int mount)
{
	struct mount_attr attr = { .propagation = MS_PRIVATE };
	int r = sys_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr);

	if (r < 0)
		return r;
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	r = sys_move_mount(mount, root);
	(void)close(root);
	return r;
}

int scaffold_attach(struct scaffold *s, uint16_t slot, int *slot_fd)
{
	int mount = find_slot(s, slot);

	if (mount >= 0)
		return mount;
	if (s->count == SCAFFOLD_MAX)
		return -ENOSPC;
	int r = attach_to_root(*slot_fd);
	if (r < 0)
		return r;
	mount = *slot_fd;
	int copy = clone_of(mount, "");

	s->slots[s->count] = slot;
	s->mounts[s->count++] = mount;
	*slot_fd = copy;
	return copy < 0 ? copy : mount;
}

int scaffold_pick(struct scaffold *s, uint16_t slot, int *slot_fd, const char *path)
{
	int mount = find_slot(s, slot);

	if (mount >= 0)
		return clone_of(mount, path);
	int tree = clone_of(*slot_fd, path);
	if (tree != -EINVAL)
		return tree;
	mount = scaffold_attach(s, slot, slot_fd);
	return mount < 0 ? mount : clone_of(mount, path);
}

int scaffold_remove(struct scaffold *s)
{
	char path[64];
	int r = 0;

	/* The last lies on top of the others. */
	while (s->count && r >= 0) {
		int mount = s->mounts[--s->count];

		number_path(path, "/proc/self/fd/", (unsigned)mount, "");
		r = umount2(path, MNT_DETACH) < 0 ? -errno : 0;
		(void)close(mount);
	}
	return r;
}

/*
 * clone.c - see clone.h.
 *
 * Runs in: init. No heap, no stdio.
 */
#include "box/clone.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "box/channel.h"
#include "box/sys.h"

int clone_with(
	bool *two_steps, int dirfd, const char *path, unsigned flags, struct mount_attr *attr)
{
	if (*two_steps)
		return -ENOSYS;
	int tree = sys_open_tree_attr(dirfd, path, flags | OPEN_TREE_CLONE, attr);
	/* The filter of a container that does not know the call answers EPERM. */
	*two_steps = tree == -ENOSYS || tree == -EPERM;
	return *two_steps ? -ENOSYS : tree;
}

int clone_set_attr(int tree, unsigned recursive, struct mount_attr *attr)
{
	if (tree < 0)
		return tree;
	int r = sys_mount_setattr(tree, "", AT_EMPTY_PATH | recursive, attr);
	if (r < 0) {
		(void)close(tree);
		return r;
	}
	return tree;
}

int clone_share(int mount, int channel)
{
	const struct channel_record record = { .kind = CHANNEL_SCRATCH };
	int tree = sys_open_tree(mount, "", AT_EMPTY_PATH | OPEN_TREE_CLONE);
	int r = tree < 0 ? tree : channel_send(channel, &record, &tree, 1);

	if (tree >= 0)
		(void)close(tree);
	return r;
}

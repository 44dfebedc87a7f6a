/*
 * clone.h - a detached copy of a mount, with its attributes: in one call where the kernel has it
 * (open_tree_attr(2), Linux 6.15), else in two.
 *
 * Runs in: init.
 */
#pragma once

#include <linux/mount.h>
#include <stdbool.h>

/*
 * clone_with - clone what is seen at @path below @dirfd, with @attr. *@two_steps: kept by the
 * caller, set once the kernel has said that it cannot do both in one call. Returns the descriptor;
 * -ENOSYS: it takes two steps; or -errno.
 */
__attribute__((warn_unused_result)) int clone_with(
	bool *two_steps, int dirfd, const char *path, unsigned flags, struct mount_attr *attr);

/*
 * clone_set_attr - the second step. @tree: a descriptor, which is closed on failure, or -errno, which is
 * returned. @recursive: 0 or AT_RECURSIVE.
 */
__attribute__((warn_unused_result)) int clone_set_attr(
	int tree, unsigned recursive, struct mount_attr *attr);

/*
 * clone_share - send the supervisor a clone of @mount, the scratch that has just been attached
 * (kernels before 6.15 clone only what is attached), as CHANNEL_SCRATCH. The clone has nothing of
 * what is mounted on the original later, is no part of the session's tree, and so stays what it is
 * when that tree goes. 0 or -errno.
 */
__attribute__((warn_unused_result)) int clone_share(int mount, int channel);

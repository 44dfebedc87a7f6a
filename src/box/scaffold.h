/*
 * scaffold.h - use of mounts that are not attached, on kernels before 6.15.
 *
 * Those clone only what is attached in the caller's mount namespace, and overlayfs takes its layers
 * from nothing else (EINVAL). There the slot's mount is attached on top of the namespace's own root
 * for a while, where no path leads to it (a walk from / begins below what is stacked on it), and a
 * clone of it takes its slot.
 *
 * Runs in: init, in its own mount namespace, before the root is sealed.
 */
#pragma once

#include <stdint.h>

enum { SCAFFOLD_MAX = 4 }; /* the skeleton, the scratch, the two layers of an overlay */

struct scaffold {
	unsigned count;
	uint16_t slots[SCAFFOLD_MAX];
	int mounts[SCAFFOLD_MAX]; /* attached, and owned */
};

/*
 * scaffold_attach - attach the mount of @slot, whose descriptor is *@slot_fd, to the scaffold.
 * *@slot_fd becomes the descriptor of a clone that is not attached; the old one belongs to the
 * scaffold, is returned, and is valid until scaffold_remove. After a failure (-errno, -ENOSPC where
 * there are too many) the caller must end.
 */
__attribute__((warn_unused_result)) int scaffold_attach(
	struct scaffold *s, uint16_t slot, int *slot_fd);

/*
 * scaffold_pick - a clone of the directory or file @path of the mount of @slot: as it is where the
 * kernel can, else from the scaffold. Returns a descriptor that the caller owns, or -errno.
 */
__attribute__((warn_unused_result)) int scaffold_pick(
	struct scaffold *s, uint16_t slot, int *slot_fd, const char *path);

/*
 * scaffold_remove - detach what is on the scaffold; before anything is done to the root as a whole, so that it is
 * neither copied nor sealed with it. Needs the host's /proc. Returns 0 or -errno.
 */
__attribute__((warn_unused_result)) int scaffold_remove(struct scaffold *s);

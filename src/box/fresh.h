/*
 * fresh.h - new file systems: /proc, /dev/pts, tmpfs, overlay.
 *
 * Runs in: init. A descriptor of a mount that is attached nowhere, or -errno. See: fsopen(2), fsmount(2).
 */
#pragma once

#include "box/box.h"

/*
 * fresh_ahead - make the file systems that nearly every plan asks for, before it is known.
 * What could not be made is negative, and is tried again by the operation that asks for it.
 */
void fresh_ahead(struct box_made *ret);

/* fresh_proc - /proc, that of this pid namespace; what was made ahead is taken out of @made. */
__attribute__((warn_unused_result)) int fresh_proc(struct box_made *made);

/* fresh_devpts - terminals of its own; from @made where it is there. */
__attribute__((warn_unused_result)) int fresh_devpts(struct box_made *made);

/* fresh_skeleton - the tmpfs of mount points and of /dev/shm; from @made where it is there. */
__attribute__((warn_unused_result)) int fresh_skeleton(struct box_made *made);

/*
 * fresh_tmpfs - a tmpfs of @size bytes at most (0: the kernel's default). @uid, @gid: its owner;
 * NULL: the process that makes it.
 */
__attribute__((warn_unused_result)) int fresh_tmpfs(
	uint64_t size, const uint32_t *uid, const uint32_t *gid);

/*
 * fresh_overlay - an overlay: @lower_fd is read-only below, what is written is in @store_fd/upper.
 * See: overlayfs(5).
 */
__attribute__((warn_unused_result)) int fresh_overlay(int lower_fd, int store_fd);

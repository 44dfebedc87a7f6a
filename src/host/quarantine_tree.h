/*
 * quarantine_tree.h - copying and disarming what goes to quarantine.
 *
 * Runs in: the supervisor (host side). Used by quarantine.c only.
 * May not: follow a link on either side, recurse, change an inode that has names elsewhere.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * quarantine_copy - copy @name below @from_fd to @new_name below @to_fd, and fsync(2) it.
 * Regular files with their holes and time stamps, mode & 0600; directories as 0700; links as
 * links. Devices, FIFOs and sockets are not copied but counted.
 * @ret_dropped: how many; set on success. Returns 0 or -errno; a failed copy is left for the
 * caller to remove. -ELOOP: deeper than 24 directories. -EEXIST: @new_name is taken.
 */
MUST_CHECK int quarantine_copy(
	int from_fd, const char *name, int to_fd, const char *new_name, uint64_t *ret_dropped);

/*
 * quarantine_disarm - take execute and set-id bits from all regular files in @name below @fd.
 * A file with further names is replaced by a copy. Returns 0 or -errno of the first that failed;
 * all others were gone over. -ELOOP: deeper than 24 directories; -E2BIG: over 100,000 entries.
 */
MUST_CHECK int quarantine_disarm(int fd, const char *name);

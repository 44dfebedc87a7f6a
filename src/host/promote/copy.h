/*
 * copy.h - the bytes of one regular file into another: shared, or copied without its holes.
 *
 * Runs in: the supervisor and the client (host side), on files that tools wrote.
 * May not: open anything, use heap.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "host/promote/until.h"

enum copy_how { COPY_REFLINKED, COPY_COPIED };

/*
 * copy_contents - give the empty file @to_fd the first @size bytes of @from_fd.
 * The two share their blocks where the file system can do that (FICLONE); otherwise data is copied
 * inside the kernel and holes are left out: a sparse terabyte stays one. Nothing is synced.
 * @until: asked between two pieces of 64 MiB; NULL: as long as it takes. @ret_how: which of the two; NULL allowed.
 * Returns 0 or -errno; -EIO where the file became shorter meanwhile, -ETIME, -EINTR as until_is_over() says.
 * See: ioctl_ficlonerange(2), copy_file_range(2), lseek(2) SEEK_DATA.
 */
MUST_CHECK int copy_contents(
	int from_fd, int to_fd, off_t size, struct until *until, enum copy_how *ret_how);

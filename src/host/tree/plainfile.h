/*
 * plainfile.h - a file that tools may have put there, opened for reading only once it is known to be a file.
 *
 * Runs in: every process outside. May not: open a device, a FIFO or a socket, wait, write. Opening is an act:
 * it starts a watchdog, rewinds a tape, wakes whoever waits at the other end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * plainfile_open - look first (O_PATH, fstat), then open the very thing that was looked at.
 * @dirfd, @path: as of openat2(2). @resolve: RESOLVE_* flags; magic links are never followed, and a link as the last
 * component is -ELOOP unless @follow.
 * Returns a descriptor, -EINVAL for what is no regular file, or -errno. Needs /proc.
 */
MUST_CHECK int plainfile_open(int dirfd, const char *path, uint64_t resolve, bool follow);

/* plainfile_reopen - the same for what @place (O_PATH; borrowed) refers to. */
MUST_CHECK int plainfile_reopen(int place);

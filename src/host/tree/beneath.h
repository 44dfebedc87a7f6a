/*
 * beneath.h - directories and files of hostile trees: opened, read and made accessible by descriptor.
 *
 * Runs in: the supervisor (host side), on trees that tools wrote.
 * May not: follow a symbolic link, cross a mount unless told to, use an absolute path, keep state.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* One record of getdents64(2), as the kernel writes it. */
struct beneath_entry {
	uint64_t ino;
	int64_t off;
	uint16_t length; /* of the whole record, bytes */
	uint8_t type;    /* DT_*; DT_UNKNOWN on some file systems */
	char name[];     /* NUL-terminated, any bytes but '/' and NUL */
};

enum beneath_mounts { BENEATH_SAME_MOUNT, BENEATH_ANY_MOUNT };

/*
 * beneath_open - openat2(2) that stays below @dirfd and follows no link.
 * @path: relative; @flags: O_*, O_CLOEXEC is added.
 * @mounts: BENEATH_SAME_MOUNT refuses to step onto another mount (-EXDEV).
 * Returns the descriptor (the caller's) or -errno. A final link is opened only with
 * O_PATH | O_NOFOLLOW, and then is the link itself. See: openat2(2).
 */
MUST_CHECK int beneath_open(int dirfd, const char *path, int flags, enum beneath_mounts mounts);

/*
 * beneath_open_dir - open the directory @name for reading, whatever its mode is.
 * A directory that its owner locked (mode 000) is given 0700 through an O_PATH descriptor that is
 * known to be a directory: never through the name, which could have become a link to elsewhere.
 * Returns the descriptor or -errno: -ENOTDIR or -ELOOP where it is no directory, -EXDEV where
 * something is mounted on it, -EACCES or -EPERM where it is somebody else's.
 */
MUST_CHECK int beneath_open_dir(int dirfd, const char *name);

/*
 * beneath_open_file - open the regular file @name for reading, whatever its mode is.
 * A file that its owner locked (mode 000) is given 0600 through an O_PATH descriptor that is known to
 * be a regular file, and only where it has no other name. A device or a FIFO is not opened (plainfile.h).
 * Returns the descriptor or -errno: -EINVAL for what is no regular file, -EACCES also where it has other names.
 */
MUST_CHECK int beneath_open_file(int dirfd, const char *name);

/* beneath_unlock_dir - give the directory @name mode 0700, as above, without opening it. */
MUST_CHECK int beneath_unlock_dir(int dirfd, const char *name);

/*
 * beneath_chmod - change the mode of what @fd (O_PATH is enough) refers to. 0 or -errno.
 * fchmodat2(2) with AT_EMPTY_PATH, and before Linux 6.6 the magic link in /proc/self/fd.
 */
MUST_CHECK int beneath_chmod(int fd, unsigned mode);

/* beneath_read - getdents64(2): bytes of records in @buffer, 0 at the end, or -errno. */
MUST_CHECK ssize_t beneath_read(int fd, void *buffer, size_t size);

/* A directory that is being read. It begins with `at` and `end` 0; fd and buffer are the caller's. */
struct beneath_list {
	int fd;
	uint32_t size;    /* of buffer: 280 bytes at least, for the longest record */
	uint32_t at, end; /* unread records in it */
	char *buffer;     /* aligned as struct beneath_entry */
};

/*
 * beneath_next - the next entry, which is neither "." nor "..".
 * @ret: in the buffer, until the next call. Returns 1, 0 at the end, or -errno.
 */
MUST_CHECK int beneath_next(struct beneath_list *list, struct beneath_entry **ret);

/*
 * beneath_read_already - the same for a caller that fills the buffer itself; NULL: nothing is left
 * in it.
 */
struct beneath_entry *beneath_read_already(char *buffer, uint32_t *at, uint32_t end);

/* beneath_is_dots - whether a directory entry is "." or "..". */
static inline int beneath_is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* beneath_is_name - whether @name is one component: not empty, no '/', neither "." nor "..". */
int beneath_is_name(const char *name);

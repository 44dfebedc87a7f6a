/*
 * known_dirs.h - directories in which several paths are looked for: each is opened once.
 *
 * Runs in: the launcher and carrel-policy, outside, with the caller's rights. May not: change
 * anything. The shipped lists name some hundred paths in a handful of directories, and most are not
 * there: a directory that is asked often is listed, so that a name that is not in it costs no
 * system call. The cost has a bound that no directory's size changes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/error.h"
#include "host/facts/name_set.h"

enum { KNOWN_DIRS_MAX = 48, KNOWN_PATH_MAX = 2048 };

struct known_dir {
	const char *path; /* borrowed: its leading `length` bytes */
	size_t length;
	int fd;           /* O_PATH, or why it could not be opened: -errno */
	size_t existing;  /* where it is not there: the leading bytes of `path` that are */
	unsigned lookups; /* how often */
	struct name_set names;
};

/* Zeroed but for arena. */
struct known_dirs {
	struct arena *arena;
	struct known_dir dirs[KNOWN_DIRS_MAX];
	size_t count;
	size_t next; /* the one that gives way when all are taken */
	size_t last; /* the one that was asked last: those of a list follow one another */
};

/*
 * known_dirs_stat - lstat(2) of @path, none of whose directories may be a symbolic link.
 * @path: absolute, without "//", "." and "..", shorter than KNOWN_PATH_MAX; kept. @parent: the
 * length of the path of its directory. @ret_existing: if the path does not exist, how many of its
 * leading bytes do.
 * Returns 0, -ENOENT or -ENOTDIR (@ret_existing is set), -ELOOP (a link on the way) or another -errno.
 */
MUST_CHECK int known_dirs_stat(struct known_dirs *k, const char *path, size_t parent,
	struct stat *ret, size_t *ret_existing);

/* known_dirs_close - close what was opened. It can be used again. */
void known_dirs_close(struct known_dirs *k);

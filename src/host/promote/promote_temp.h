/*
 * promote_temp.h - names of carrel's own beside a destination, while a copy is being made.
 *
 * Runs in: as promote.h; for promote.c and what calls promote().
 *
 * ".carrel-promote-" and 16 hexadecimal digits, with flock(2) held from the beginning to the end: one
 * that is not locked was left by a crash.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct promote_temp {
	int dir; /* the destination directory; the caller's */
	int fd;  /* the new file, open for writing, or the new directory, for reading */
	bool is_dir;
	char name[40];
};

/* promote_temp_make - an empty file (0600) or directory (0700), locked. 0 or -errno. */
MUST_CHECK int promote_temp_make(int dir, bool is_dir, struct promote_temp *ret);

/*
 * promote_temp_place - give it its name. @force: replace the file or link that has it. After
 * success @t is used up; after failure it must be dropped. 0 or -errno (-EEXIST, -EISDIR, ...).
 */
MUST_CHECK int promote_temp_place(struct promote_temp *t, const char *name, bool force);

/*
 * promote_temp_drop - remove what was made; nothing happens after promote_temp_place(). @deadline_ns: of
 * CLOCK_MONOTONIC; what is left by then is a stray, which the next sweep removes; 0: none.
 */
void promote_temp_drop(struct promote_temp *t, int64_t deadline_ns);

/*
 * promote_temp_sweep - remove what a crash left in the directory @dir (open for reading): the caller's
 * own, unlocked, at most 64 of the first 100,000 entries, for 0.1 s. Failures are left to the next sweep.
 */
void promote_temp_sweep(int dir);

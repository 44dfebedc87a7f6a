/*
 * slice.h - a part of a file, by lines, characters or bytes, without holding more than a block of it.
 *
 * Runs in: whoever was given the descriptor: S, a client, a process inside that opened it. May not:
 * open anything, move the descriptor's offset, trust that the file stays as it is.
 *
 * Units are counted from 1, and a range has both of its ends: 1200:1500 is 301 lines. Either end can be
 * left out (the file's own), and a negative one is counted from the file's end: -1 is the last,
 * -100: the last hundred. Beyond the end there is nothing, and that is no error.
 *
 * A line ends with its newline, the last one perhaps without. A character is a valid UTF-8 sequence, or
 * one byte that belongs to none (base/chars.h). What is counted from the end is sought from
 * the end: the last lines of a large file cost no more than those of a small one. Its size is looked at
 * once; what is appended later is not part of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum slice_unit { SLICE_LINES, SLICE_CHARS, SLICE_BYTES };

struct slice {
	enum slice_unit unit;
	int64_t first, last; /* as written; both ends included. 0: left out */
};

/* A slice as it was found. */
struct slice_found {
	uint64_t start,
		end; /* bytes of the file, from 0; start == end: there is nothing in it */
	bool more;   /* there is something behind it */
};

/*
 * slice_parse - FIRST:LAST, FIRST:, :LAST, ":" (all of it), or one number N for N:N.
 * Returns 0, -EINVAL (no number, a zero, anything else in it) or -ERANGE (63 bits are too few).
 */
MUST_CHECK int slice_parse(enum slice_unit unit, const char *text, struct slice *ret);

/*
 * slice_find - where @s is in the file @fd.
 * @fd: open for reading, a regular file. Returns 0 or -errno: -EISDIR, -ESPIPE for what is no file,
 * -EFBIG for one that says no size and has more than 64 MiB, -ENOMEM, or what pread(2) says.
 */
MUST_CHECK int slice_find(int fd, const struct slice *s, struct slice_found *ret);

/*
 * slice_copy - write what was found to @out, which may make the caller wait; less where the file has
 * become shorter. @ret_bytes: how many were written, also on failure. Returns 0 or -errno.
 */
MUST_CHECK int slice_copy(
	int fd, const struct slice_found *found, int out, uint64_t *ret_bytes);

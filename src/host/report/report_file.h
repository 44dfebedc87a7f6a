/*
 * report_file.h - where a report goes: a file that appears whole or not at all, or an open stream.
 *
 * Runs in: the launcher, outside, with the caller's rights. May not: follow a symbolic link at the
 * end of the path, touch an existing file before the whole report is on the disk.
 *
 * report_open() is called before anything is started, so that a report that cannot be opened means
 * that the command does not run. The directory is held open from then on: what happens to the
 * path meanwhile does not matter. Directories on the way are followed as a shell's `>` would.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "host/report/toolplace.h"

enum report_file_kind {
	REPORT_FILE_NONE,    /* no report was asked for; a zeroed struct is this */
	REPORT_FILE_STREAM,  /* fd:N, a FIFO or a character device: written as it is */
	REPORT_FILE_UNNAMED, /* O_TMPFILE: no name until it is whole */
	REPORT_FILE_NAMED, /* no O_TMPFILE (or no /proc) here: a hidden name while it is written */
};

enum { REPORT_TEMP_SIZE = 32 };

struct report_file {
	enum report_file_kind kind;
	bool dry;      /* open and make nothing: report_check() */
	bool of_tools; /* tools may have made what lies beside it */
	int fd;        /* the descriptor to write to; -1 for NAMED until report_file_begin() */
	int dirfd;     /* O_PATH; -1 for STREAM */
	int patience_ms; /* how long to wait for a STREAM that is full; -1: for ever, since the caller gave it */
	const char *target; /* as it was asked for; borrowed */
	char name[256];     /* the last component of target */
	char temp
		[REPORT_TEMP_SIZE]; /* a name that exists beside it now; empty where there is none */
};

/*
 * report_open - acquire everything that writing needs, without a visible change.
 * @target: a path, or "fd:N" with N >= 2 (also as /dev/fd/N, /dev/stderr, /proc/self/fd/N).
 *          Borrowed until report_write() or report_discard().
 * @place:  where tools can write: there no link on the way is followed and no FIFO is opened. NULL: nowhere.
 *
 * A path that does not exist or is a regular file is written to an unnamed file in the same
 * directory and put in place at the end, with the permissions an ordinary new file gets (0666 less
 * the umask). A FIFO or a character device is opened and written directly, and neither
 * opening nor writing waits for ever: a FIFO that nobody reads is refused. fd:N is made close-on-exec and belongs to
 * @ret from here on (fd:2 is duplicated). Descriptors with close-on-exec set were not given by
 * the caller and are refused: call this before inherited descriptors are closed.
 *
 * Returns 0, or -errno with @e (ERROR_REPORT): EINVAL (empty, fd:0, fd:1, not a number, a block
 * device or a socket), ENXIO (a FIFO without a reader), EBADF (not open for writing), EISDIR, ELOOP (a symbolic link), EACCES, ...
 * See: open(2) O_TMPFILE, path_resolution(7).
 */
MUST_CHECK int report_open(const char *target, const struct toolplace *place,
	struct report_file *ret, struct error *e);

/*
 * report_check - predict the result of report_open(), as far as that is possible without opening or making anything.
 * 0 or -errno with @e, as there.
 */
MUST_CHECK int report_check(const char *target, struct error *e);

/* report_discard - leave nothing behind. Idempotent; nothing happens after report_write(). */
void report_discard(struct report_file *f);

/* --- for report.c ----------------------------------------------------------------------------- */

/* report_file_begin - make f->fd ready for the first byte. 0 or -errno. */
MUST_CHECK int report_file_begin(struct report_file *f);

/*
 * report_file_write - a `write` for json_init(), @context is the struct report_file. If a
 * non-blocking stream is full, it waits, at most patience_ms each time. 0 or -errno (EPIPE, ENOSPC, ETIMEDOUT, ...; the caller blocks SIGPIPE, SIGXFSZ).
 */
int report_file_write(void *context, const void *data, size_t size);

/*
 * report_file_commit - put a file in place: data to the disk first, so that a crash leaves the old
 * file or the new one, never an empty one. Streams: nothing to do. 0 or -errno; on failure the
 * target is as it was.
 */
MUST_CHECK int report_file_commit(struct report_file *f);

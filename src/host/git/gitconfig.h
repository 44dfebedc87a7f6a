/*
 * gitconfig.h - read a git configuration file entry by entry.
 *
 * Runs in: the launcher, outside. May not: follow includes, trust what it reads, read without a
 * bound, wait (a FIFO is refused). The grammar is that of git-config(1), and anything that git
 * itself would refuse ends the reading with -EBADMSG.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct gitconfig {
	/* One entry: */
	char name[512];   /* "core.worktree", "remote.NAME.url": section and key in lower case.
			      Empty where it did not fit: then it is none that anyone looks for */
	char value[4096]; /* NUL-terminated; empty for a key without "=" */
	size_t value_length;
	bool cut;          /* the value did not fit: do not use it */
	size_t start, end; /* where it is in the file: from the key to behind its line */

	/* The reader's own: */
	int fd; /* borrowed */
	size_t at, length, total;
	size_t section_length;
	bool broken;
	char buffer[4096];
};

/* gitconfig_start - begin reading @fd (a regular file, at its start; borrowed). */
void gitconfig_start(struct gitconfig *c, int fd);

/*
 * gitconfig_next - the next entry, into @c->name and @c->value.
 * Returns 1 for an entry, 0 at the end, -EBADMSG where git would refuse the file (or it has NUL
 * bytes), -EFBIG after 1 MiB, or what read(2) failed with.
 */
MUST_CHECK int gitconfig_next(struct gitconfig *c);

/*
 * gitplain_config.h - a git configuration that names neither a program nor a path. For gitplain.c only.
 *
 * Runs in: the child that gitplain.c starts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "host/git/gitconfig.h"

#define GITPLAIN_REMOTES_MAX 8
#define GITPLAIN_REMOTE_SIZE 64

/* Zeroed memory, to be used once. */
struct gitplain_config {
	bool sha256; /* after a look: names of objects are 32 bytes long */
	/* The reader's own: */
	struct gitconfig reader;
	char with_url[GITPLAIN_REMOTES_MAX][GITPLAIN_REMOTE_SIZE];
	size_t with_url_count;
	char tracked[GITPLAIN_REMOTES_MAX][GITPLAIN_REMOTE_SIZE]; /* that branches name */
	size_t tracked_count;
};

/*
 * gitplain_config - is @path below @dirfd such a file? A regular one, of one name: a second name (a hard link)
 * would stay writable where this one is protected later.
 */
bool gitplain_config(struct gitplain_config *c, int dirfd, const char *path);

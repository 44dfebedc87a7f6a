/*
 * scratch_file.c - see scratch_file.h.
 *
 * Runs in: the client.
 */
#include "client/scratch_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/promote/promote_temp.h"
#include "host/tree/beneath.h"
#include "host/tree/plainfile.h"
#include "host/tree/remove.h"

enum { CHUNK = 256 << 10 };

static int file_error(int errnum, const char *on, const char *what, struct error *e)
{
	int result = error_set(e, ERROR_SCRATCH, "session", errnum, on, "%s", what);

	if (errnum == ENOSPC || errnum == EDQUOT)
		error_hint(e, "the scratch is full; `carrel scratch list` shows by what");
	return result;
}

/* Copy up to the end, or @most bytes. 0 or -errno. */
static int pour(int from, int to, off_t most)
{
	char *buffer = malloc(CHUNK);
	int r = buffer ? 0 : -ENOMEM;

	while (r == 0 && most > 0) {
		ssize_t n = read(from, buffer, most < CHUNK ? (size_t)most : CHUNK);

		if (n < 0 && errno == EINTR)
			continue;
		r = n < 0 ? -errno : fd_write_all(to, buffer, (size_t)n);
		if (n == 0)
			break;
		most -= n;
	}
	free(buffer);
	return r;
}

/* --- put --------------------------------------------------------------------------------------- */

/* The last component; NULL: it cannot be the name of a file. */
static const char *last_component(struct arena *a, const char *name)
{
	size_t length = strlen(name);

	while (length > 0 && name[length - 1] == '/')
		length--;
	size_t at = length;
	while (at > 0 && name[at - 1] != '/')
		at--;
	const char *last = arena_copy(a, name + at, length - at);
	return last && beneath_is_name(last) && length - at <= NAME_MAX ? last : NULL;
}

/* Give the file the mode of any new file, and the owner of the scratch, which is the tools' user. */
static int set_owner(int scratch, int fd)
{
	struct stat st;
	mode_t mask = umask(077);

	(void)umask(mask);
	if (fstat(scratch, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() && fchown(fd, st.st_uid, st.st_gid) < 0)
		return -errno;
	return fchmod(fd, 0666 & ~mask) < 0 ? -errno : 0;
}

static int check_taken(int scratch, const char *name, bool force, struct error *e)
{
	struct stat st;

	if (fstatat(scratch, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return file_error(ERROR_OWN(EISDIR), name, "a directory has this name", e);
	if (!force) {
		int r = file_error(
			ERROR_OWN(EEXIST), name, "a file in the scratch has this name", e);

		error_hint(e, "--force replaces it");
		return r;
	}
	return 0;
}

int scratch_put(int scratch, const char *name, int from, bool force, struct arena *a,
	const char **ret_name, struct error *e)
{
	struct promote_temp temp;
	struct stat st;
	const char *last = last_component(a, name);

	if (!last)
		return file_error(ERROR_OWN(EINVAL), name, "this is not a file name", e);
	if (fstat(from, &st) == 0 && S_ISDIR(st.st_mode))
		return file_error(ERROR_OWN(EISDIR), last, "the source is not a file", e);
	int r = check_taken(scratch, last, force, e);
	if (r < 0)
		return r;
	promote_temp_sweep(scratch);
	r = promote_temp_make(scratch, false, &temp);
	if (r < 0)
		return file_error(-r, last, "cannot write to the scratch", e);
	r = pour(from, temp.fd, INT64_MAX);
	if (r == 0)
		r = set_owner(scratch, temp.fd);
	if (r == 0)
		r = promote_temp_place(&temp, last, force);
	promote_temp_drop(&temp, 0);
	if (r < 0)
		return r == -EBUSY ? file_error(ERROR_OWN(EBUSY), last,
					     "the file was replaced while it was written", e)
				   : file_error(-r, last, "cannot write to the scratch", e);
	*ret_name = last;
	return 0;
}

/* --- get --------------------------------------------------------------------------------------- */

int scratch_get(int scratch, const char *below, int to, struct error *e)
{
	struct stat st;
	autofd int place =
		beneath_open(scratch, below, O_PATH | O_NOFOLLOW, BENEATH_SAME_MOUNT);
	autofd int fd = place < 0 ? place : plainfile_reopen(place);

	if (fd == -ELOOP)
		return file_error(
			ERROR_OWN(ELOOP), below, "a symbolic link is not followed", e);
	if (fd == -EINVAL)
		return file_error(ERROR_OWN(EINVAL), below, "this is not a file", e);
	if (fd < 0 || fstat(fd, &st) < 0)
		return file_error(
			fd < 0 ? -fd : errno, below, "cannot read from the scratch", e);
	int r = pour(fd, to, st.st_size);
	return r < 0 ? file_error(-r, below, "cannot write the file to standard output", e) : 0;
}

/* --- remove ------------------------------------------------------------------------------------ */

/* Remove it, also out of a directory that its owner made read-only. */
static int remove_from(int dir, const char *name, struct error *e)
{
	struct remove_result gone;
	struct stat st;
	int r = remove_tree(dir, name, &gone, NULL);

	if (r == -EACCES && fstat(dir, &st) == 0 &&
		beneath_chmod(dir, (st.st_mode & 0777) | 0700) == 0) {
		r = remove_tree(dir, name, &gone, NULL);
		/* The request was carried out, or its failure was reported. */
		(void)!beneath_chmod(dir, st.st_mode & 0777);
	}
	return r < 0 ? file_error(-r, gone.first, "cannot remove from the scratch", e) : 0;
}

int scratch_remove(int scratch, const char *below, struct arena *a, struct error *e)
{
	const char *slash = strrchr(below, '/');
	const char *name = slash ? slash + 1 : below;
	const char *above = slash ? arena_copy(a, below, (size_t)(slash - below)) : ".";
	struct stat st;
	autofd int dir = above ? beneath_open(scratch, above, O_PATH | O_DIRECTORY | O_NOFOLLOW,
					 BENEATH_SAME_MOUNT)
			       : -ENOMEM;

	if (dir < 0)
		return file_error(-dir, below, "cannot remove from the scratch", e);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return file_error(errno, below, "cannot remove from the scratch", e);
	return remove_from(dir, name, e);
}

/*
 * promote.c - see promote.h.
 *
 * Runs in: the supervisor and the client (host side), on what tools wrote and may still change.
 */
#include "host/promote/promote.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/promote/promote_temp.h"
#include "host/promote/promote_tree.h"
#include "host/tree/beneath.h"
#include "host/tree/plainfile.h"
#include "host/tree/remove.h"

enum { REMOVAL_NS = 250000000 };

struct promotion {
	const struct promote_options *o;
	const char *source;      /* as it was asked for */
	int from;                /* the directory it is in, O_PATH */
	char name[NAME_MAX + 1]; /* its name there */
	struct stat st;          /* what it was when it was opened */
	const struct promote_place *to;
	bool replaces;
	struct promote_result *ret;
	struct error *e;
};

const char *promote_how_name(enum promote_how how)
{
	switch (how) {
	case PROMOTE_RENAMED:
		return "renamed";
	case PROMOTE_REFLINKED:
		return "reflinked";
	case PROMOTE_COPIED:
		return "copied";
	case PROMOTE_NOT:
		break;
	}
	return NULL;
}

static int fail_source(struct promotion *p, int errnum, const char *what)
{
	return error_set(p->e, ERROR_PROMOTE, "promote", errnum, p->source, "%s", what);
}

static int fail_dest(struct promotion *p, int errnum, const char *what)
{
	char on[1024];

	(void)snprintf(on, sizeof(on), "%s/%s", p->to->path, p->to->name);
	int r = error_set(p->e, ERROR_PROMOTE, "promote", errnum, on, "%s", what);
	if (errnum == ENOSPC || errnum == EDQUOT)
		error_hint(
			p->e, "free some space there; %s is still in the scratch", p->source);
	return r;
}

/* --- the two ends ------------------------------------------------------------------------------ */

/* Splits @source into the directory, opened, and the name in it. */
static int open_source_dir(struct promotion *p, int scratch_fd)
{
	char dir[PATH_MAX / 2];
	size_t length = strlen(p->source);

	while (length > 0 && p->source[length - 1] == '/')
		length--;
	size_t leaf = length;
	while (leaf > 0 && p->source[leaf - 1] != '/')
		leaf--;
	if (length - leaf > NAME_MAX || leaf >= sizeof(dir))
		return fail_source(p, ENAMETOOLONG, "cannot find the artifact");
	memcpy(p->name, p->source + leaf, length - leaf);
	p->name[length - leaf] = '\0';
	if (!beneath_is_name(p->name))
		return fail_source(
			p, ERROR_OWN(EINVAL), "this does not name an artifact in the scratch");
	memcpy(dir, p->source, leaf);
	dir[leaf] = '\0';
	p->from = beneath_open(scratch_fd, leaf ? dir : ".", O_PATH | O_DIRECTORY | O_NOFOLLOW,
		BENEATH_SAME_MOUNT);
	if (p->from < 0)
		return p->from == -ELOOP ? fail_source(p, ERROR_OWN(ELOOP),
						   "the path leads through a symbolic link")
					 : fail_source(p, -p->from, "cannot find the artifact");
	return 0;
}

static int look_at_source(struct promotion *p)
{
	if (fstatat(p->from, p->name, &p->st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail_source(p, errno, "cannot find the artifact");
	return 0;
}

static int look_at_dest(struct promotion *p)
{
	struct stat st;

	if (!beneath_is_name(p->to->name))
		return fail_dest(p, ERROR_OWN(EINVAL), "this is not a file name");
	if (fstatat(p->to->fd, p->to->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0
				       : fail_dest(p, errno, "cannot look at the destination");
	if (S_ISDIR(st.st_mode))
		return fail_dest(p, ERROR_OWN(EISDIR), "a directory is in the way");
	if (!p->o->force)
		return fail_dest(p, ERROR_OWN(EEXIST), "the destination exists");
	if (S_ISDIR(p->st.st_mode))
		return fail_dest(p, ERROR_OWN(ENOTDIR), "a directory does not replace a file");
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return fail_dest(p, ERROR_OWN(EINVAL), "the destination is not a file");
	p->replaces = true;
	return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Flush the destination's directory, which has the new entry, to the disk. */
static int sync_dest(struct promotion *p)
{
	if (fsync(p->to->fd) < 0 && errno != EINVAL)
		return fail_dest(p, errno, "cannot flush the destination to the disk");
	return 0;
}

/* --- removing the source ------------------------------------------------------------------------ */

/*
 * When the removal of a failed copy must end: behind the deadline of the copy, since the rest of
 * the session's end has its own time. 0: no limit.
 */
static int64_t last_moment(const struct promotion *p)
{
	const struct until *until = p->o->until;

	if (until && until->over == -EINTR)
		return clock_now_ns() + REMOVAL_NS;
	return until && until->deadline_ns ? until->deadline_ns + REMOVAL_NS : 0;
}

static int remove_named(struct promotion *p)
{
	const struct remove_options options = { .deadline_ns = last_moment(p) };
	struct remove_result gone;

	return remove_tree_with(p->from, p->name, &options, &gone, NULL);
}

/* The copy is complete: the original goes, unless a tool has put something else in its place. */
static void remove_source(struct promotion *p)
{
	struct stat st;

	if (fstatat(p->from, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		p->ret->source_left = errno != ENOENT;
		return;
	}
	p->ret->source_left = true;
	if (!is_same(&st, &p->st) || st.st_size != p->st.st_size)
		return;
	int r = remove_named(p);
	if (r == -EACCES && fstat(p->from, &st) == 0) {
		/* A directory that its owner made read-only. */
		if (beneath_chmod(p->from, (st.st_mode & 0777) | 0700) == 0) {
			r = remove_named(p);
			/* It is in a scratch: what matters is that nothing is lost. */
			(void)!beneath_chmod(p->from, st.st_mode & 0777);
		}
	}
	p->ret->source_left = r < 0;
}

/* --- copying ----------------------------------------------------------------------------------- */

/* Copies @name in @from to a temporary name at the destination and puts it in place. */
static int copy_from(struct promotion *p, int from, const char *name, bool replaces)
{
	struct promote_temp temp;
	struct promote_tree tree;
	bool is_dir = S_ISDIR(p->st.st_mode);
	int r = promote_temp_make(p->to->fd, is_dir, &temp);

	if (r < 0)
		return fail_dest(p, -r, "cannot write to the destination");
	r = promote_tree_copy(from, name, temp.fd, p->source, p->o->until, &tree, p->e);
	if (r == 0 && is_dir && syncfs(temp.fd) < 0)
		r = fail_dest(p, errno, "cannot flush the copy to the disk");
	if (r == 0) {
		r = promote_temp_place(&temp, p->to->name, replaces);
		if (r == -EBUSY)
			r = fail_dest(
				p, ERROR_OWN(EBUSY), "the copy was replaced while it was made");
		else if (r < 0)
			r = fail_dest(p, -r, "cannot put the copy in place");
	}
	promote_temp_drop(&temp, last_moment(p));
	if (r < 0)
		return r;
	p->ret->how = tree.any_copied || !tree.files ? PROMOTE_COPIED : PROMOTE_REFLINKED;
	p->ret->files = tree.files;
	p->ret->bytes = tree.bytes;
	return sync_dest(p);
}

static int promote_by_copy(struct promotion *p)
{
	int r = copy_from(p, p->from, p->name, p->replaces);

	if (r == 0 && !p->o->copy)
		remove_source(p);
	return r;
}

/* --- renaming ---------------------------------------------------------------------------------- */

/*
 * Flush the source to the disk, so that after a crash the name never stands for less than it did
 * before.
 */
static int sync_source(struct promotion *p)
{
	struct stat st;
	bool is_dir = S_ISDIR(p->st.st_mode);
	autofd int place = beneath_open(p->from, p->name,
		O_PATH | O_NOFOLLOW | (is_dir ? O_DIRECTORY : 0), BENEATH_SAME_MOUNT);

	if (place < 0)
		return place;
	if (fstat(place, &st) < 0)
		return -errno;
	if (!is_same(&st, &p->st))
		return -EBUSY;
	autofd int fd = is_dir
		? beneath_open(place, ".", O_RDONLY | O_DIRECTORY, BENEATH_SAME_MOUNT)
		: plainfile_reopen(place);
	if (fd < 0)
		return fd;
	return (is_dir ? syncfs(fd) : fsync(fd)) < 0 ? -errno : 0;
}

/* Something else was renamed than what was looked at: it goes back where it came from. */
static int undo_rename(struct promotion *p)
{
	long r = syscall(
		SYS_renameat2, p->to->fd, p->to->name, p->from, p->name, RENAME_NOREPLACE);

	return fail_source(p, ERROR_OWN(EBUSY),
		r < 0 ? "the artifact was replaced while it was promoted; the destination has what replaced it"
		      : "the artifact was replaced while it was promoted");
}

/*
 * Check that the name now stands for what was looked at. A file that got a second name in the last
 * moment is replaced by a copy: whoever has the other name has no part in the copy.
 */
static int verify_rename(struct promotion *p)
{
	struct stat st;

	if (fstatat(p->to->fd, p->to->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail_dest(p, errno, "cannot look at the destination");
	if (!is_same(&st, &p->st) || (S_ISREG(st.st_mode) && (st.st_mode & 06000)))
		return undo_rename(p);
	if (S_ISREG(st.st_mode) && st.st_nlink > 1)
		return copy_from(p, p->to->fd, p->to->name, true);
	return sync_dest(p);
}

/* 1: cannot be renamed, is to be copied. */
static int promote_by_rename(struct promotion *p)
{
	int r = sync_source(p);

	if (r == -EBUSY)
		return fail_source(
			p, ERROR_OWN(EBUSY), "the artifact was replaced while it was promoted");
	if (r == -EACCES)
		return 1;
	if (r < 0)
		return fail_source(p, -r, "cannot flush the artifact to the disk");
	if (syscall(SYS_renameat2, p->from, p->name, p->to->fd, p->to->name,
		    RENAME_NOREPLACE) == 0) {
		p->ret->how = PROMOTE_RENAMED;
		return verify_rename(p);
	}
	switch (errno) {
	case EXDEV:  /* another file system, or another mount of the same */
	case EINVAL: /* a file system without RENAME_NOREPLACE */
	case EACCES: /* out of a directory, or of one, that its owner made read-only */
	case EPERM:
		return 1;
	default:
		return fail_dest(p, errno, "cannot move the artifact there");
	}
}

/* --- the whole --------------------------------------------------------------------------------- */

static int run_promotion(struct promotion *p)
{
	struct promote_tree tree;
	struct stat dest;
	int r = promote_tree_inspect(p->from, p->name, p->source, p->o->until, &tree, p->e);

	if (r < 0)
		return r;
	if (fstat(p->to->fd, &dest) < 0)
		return fail_dest(p, errno, "cannot look at the destination");
	p->ret->files = tree.files;
	p->ret->bytes = tree.bytes;
	bool copy = p->o->copy || p->o->apart || p->replaces || tree.copy_only ||
		dest.st_dev != p->st.st_dev;
	if (p->o->dry_run) {
		p->ret->how = copy ? PROMOTE_COPIED : PROMOTE_RENAMED;
		return 0;
	}
	r = copy ? 1 : promote_by_rename(p);
	return r > 0 ? promote_by_copy(p) : r;
}

int promote(int scratch_fd, const char *source, const struct promote_place *to,
	const struct promote_options *o, struct promote_result *ret, struct error *e)
{
	struct promote_result result = { .how = PROMOTE_NOT };
	struct promotion p = {
		.o = o, .source = source, .from = -1, .to = to, .ret = &result, .e = e
	};
	int r = open_source_dir(&p, scratch_fd);

	if (r == 0)
		r = look_at_source(&p);
	if (r == 0)
		r = look_at_dest(&p);
	if (r == 0)
		r = run_promotion(&p);
	fd_close(&p.from);
	if (r == 0)
		*ret = result;
	return r;
}

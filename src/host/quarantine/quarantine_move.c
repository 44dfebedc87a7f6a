/*
 * quarantine_move.c - see quarantine_move.h.
 *
 * Runs in: the supervisor (host side), also while tools live: they may rename, replace and remove everything here at
 * any moment. Each step works on descriptors that were opened beneath the root. A tool that wins a race gets
 * another of its own files renamed, or delays the rename until the next look.
 */
#include "host/quarantine/quarantine_move.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/tree/beneath.h"
#include "host/tree/remove.h"

enum {
	NAME_ATTEMPTS = 8,
	NAMES_NUMBERED = 4, /* later names are random */
	ENTRY = 280,        /* quarantine_name() and a suffix that makes it unique */
	SHORT_NAME = 20,
};

/* --- names ----------------------------------------------------------------------------------- */

/* Hexadecimal digits that nobody could foresee, @size - 1 of them, 16 at most. */
static int put_random(char *ret, size_t size)
{
	static const char hex[] = "0123456789abcdef";
	uint64_t random;
	size_t at = 0;
	int r = fd_random(&random, sizeof(random));

	if (r < 0)
		return r;
	for (; at + 1 < size && at < 16; random >>= 4)
		ret[at++] = hex[random & 15];
	ret[at] = '\0';
	return 0;
}

static int rename_once(int from_fd, const char *name, int to_fd, const char *new_name)
{
	struct stat st;

	if (syscall(SYS_renameat2, from_fd, name, to_fd, new_name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL)
		return -errno;
	/* The file system does not support RENAME_NOREPLACE. */
	if (fstatat(to_fd, new_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(from_fd, name, to_fd, new_name) < 0 ? -errno : 0;
}

/* Gives the directory @fd the owner's rights to change it; @ret_mode: what it had. */
static int open_for_change(int fd, unsigned *ret_mode)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	/* S's filter forbids it to set setuid and setgid bits: a directory that a tool made with one loses it. */
	*ret_mode = st.st_mode & 01777;
	return beneath_chmod(fd, *ret_mode | 0700);
}

/* Rename, even if the owner made read-only the directory that it is in, or the directory that it is. */
static int rename_unlocked(int from_fd, const char *name, int to_fd, const char *new_name)
{
	unsigned mode;
	int r = rename_once(from_fd, name, to_fd, new_name);

	if (r != -EACCES)
		return r;
	if (beneath_unlock_dir(from_fd, name) == 0) {
		r = rename_once(from_fd, name, to_fd, new_name);
		if (r != -EACCES)
			return r;
	}
	int changed = open_for_change(from_fd, &mode);
	if (changed < 0)
		return changed;
	r = rename_once(from_fd, name, to_fd, new_name);
	changed = beneath_chmod(from_fd, mode);
	return r < 0 ? r : changed;
}

/* --- where to -------------------------------------------------------------------------------- */

int quarantine_prefix(int root_fd, const char *path, size_t length, int flags)
{
	char prefix[QUARANTINE_TO / 2];

	if (length >= sizeof(prefix))
		return -ENAMETOOLONG;
	memcpy(prefix, path, length);
	prefix[length] = '\0';
	return beneath_open(
		root_fd, length ? prefix : ".", flags | O_PATH | O_NOFOLLOW, BENEATH_ANY_MOUNT);
}

static int mount_of(int fd, uint64_t *ret)
{
	struct statx st;

	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0)
		return -errno;
	*ret = st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : 0;
	return 0;
}

/* The length of the path without its last component: 0 for a name. */
static size_t parent_length(const char *path, size_t length)
{
	while (length > 0 && path[length - 1] != '/')
		length--;
	return length ? length - 1 : 0;
}

/* The length of the path that leads to the top of the mount that its leading @length bytes lie on. */
static int find_top(const struct quarantine_item *item, size_t length, size_t *ret_top)
{
	uint64_t here, above;
	autofd int fd = quarantine_prefix(item->root_fd, item->path, length, O_DIRECTORY);
	int r = fd < 0 ? fd : mount_of(fd, &here);

	for (size_t top = length; r >= 0 && top > 0; top = length) {
		length = parent_length(item->path, top);
		autofd int up =
			quarantine_prefix(item->root_fd, item->path, length, O_DIRECTORY);
		r = up < 0 ? up : mount_of(up, &above);
		if (r >= 0 && above != here) {
			length = top;
			break;
		}
	}
	*ret_top = length;
	return r;
}

/* Whether the name still leads to the directory: tools may have renamed or removed it. */
static bool is_in_place(const struct quarantine_place *p)
{
	struct stat own, there;

	return fstat(p->fd, &own) == 0 &&
		fstatat(p->top, p->name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		own.st_ino == there.st_ino && own.st_dev == there.st_dev;
}

static int make_unlocked(int top, const char *name)
{
	unsigned mode;

	if (mkdirat(top, name, 0700) == 0)
		return 0;
	if (errno != EACCES)
		return -errno;
	int r = open_for_change(top, &mode);
	if (r < 0)
		return r;
	r = mkdirat(top, name, 0700) < 0 ? -errno : 0;
	int changed = beneath_chmod(top, mode);
	return r < 0 ? r : changed;
}

/* Makes `git status` and `git add` ignore the directory. On a full disk it is missing, and they do not. */
static void ignore_for_git(int fd)
{
	autofd int file =
		fd_open_at(fd, ".gitignore", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);

	if (file >= 0)
		(void)!fd_write_all(file, "*\n", 2);
}

/* Makes the directory, or opens the one of this session; -EEXIST: the name leads to something else. */
static int make_place(int top, const char *name)
{
	struct stat st;
	int made = make_unlocked(top, name);

	if (made < 0 && made != -EEXIST)
		return made;
	autofd int fd = beneath_open(
		top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, BENEATH_SAME_MOUNT);
	if (fd < 0)
		return fd == -ENOTDIR || fd == -ELOOP || fd == -EXDEV || fd == -EACCES ? -EEXIST
										       : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & 077))
		return -EEXIST;
	ignore_for_git(fd);
	return take_fd(&fd);
}

static void close_place(struct quarantine_place *p)
{
	fd_close(&p->fd);
	fd_close(&p->top);
}

/* The entry for this root and mount: the existing one, or a free one, or else the first one, reused. */
static struct quarantine_place *find_place(struct quarantine *q, int root_fd, uint64_t mount)
{
	for (unsigned i = 0; i < q->place_count; i++) {
		struct quarantine_place *p = &q->places[i];

		if (p->root_fd != root_fd || p->mount != mount)
			continue;
		if (p->fd >= 0 && !is_in_place(p))
			close_place(p);
		return p;
	}
	bool full = q->place_count == QUARANTINE_PLACES;
	struct quarantine_place *p = &q->places[full ? 0 : q->place_count];
	if (full)
		close_place(p);
	else
		q->place_count++;
	*p = (struct quarantine_place){
		.root_fd = root_fd, .mount = mount, .top = -1, .fd = -1
	};
	return p;
}

/* The quarantine directory at the leading @top bytes of the item's path. */
static int open_place(struct quarantine *q, const struct quarantine_item *item, size_t top,
	struct quarantine_place **ret)
{
	uint64_t mount;
	char random[9];
	autofd int fd = quarantine_prefix(item->root_fd, item->path, top, O_DIRECTORY);
	int r = fd < 0 ? fd : mount_of(fd, &mount);

	if (r < 0)
		return r;
	struct quarantine_place *p = find_place(q, item->root_fd, mount);
	*ret = p;
	if (p->fd >= 0)
		return 0;
	(void)snprintf(p->name, sizeof(p->name), "%s", q->name);
	r = make_place(fd, p->name);
	/* A tool made that name first. */
	for (int attempt = 0; r == -EEXIST && attempt < NAME_ATTEMPTS; attempt++) {
		int drawn = put_random(random, sizeof(random));
		if (drawn < 0)
			return drawn;
		(void)snprintf(p->name, sizeof(p->name), "%.50s-%s", q->name, random);
		r = make_place(fd, p->name);
	}
	if (r < 0)
		return r;
	p->fd = r;
	p->top = take_fd(&fd);
	return 0;
}

/* --- moving ---------------------------------------------------------------------------------- */

/* Sets q->to: the leading @length bytes of the item's path, and @directory and @name below that. */
static void record_place(struct quarantine *q, const struct quarantine_item *item,
	size_t length, const char *directory, const char *name)
{
	(void)snprintf(q->to, sizeof(q->to), "%.*s%s%s%s%s", (int)length, item->path,
		length ? "/" : "", directory, *directory ? "/" : "", name);
}

/*
 * The name for an attempt. If a tool makes the thing again and again, carrel keeps the first few and the last one, which
 * replaces the one before under one name (*@ret_over). A directory can replace only an empty one, and gets another name.
 */
static int entry_name(const struct quarantine *q, const char *base, unsigned attempt,
	char ret_entry[ENTRY], bool *ret_over)
{
	char random[9];
	int r = 0;

	*ret_over = q->live && attempt == NAMES_NUMBERED + 1;
	if (*ret_over) {
		(void)snprintf(ret_entry, ENTRY, "%s~last", base);
	} else if (attempt > NAMES_NUMBERED) {
		r = put_random(random, sizeof(random));
		(void)snprintf(ret_entry, ENTRY, "%s~%s", base, random);
	} else {
		(void)snprintf(ret_entry, ENTRY, attempt > 1 ? "%s~%u" : "%s", base, attempt);
	}
	return r;
}

/* Move it into the quarantine directory at the leading @top bytes of the path, under the first free name. */
static int move_to_place(struct quarantine *q, const struct quarantine_item *item, size_t top,
	int from_fd, const char *name, size_t length)
{
	struct quarantine_place *p;
	char base[256], entry[ENTRY];
	bool over = false;
	struct stat st;
	int r = open_place(q, item, top, &p);

	if (r < 0)
		return r;
	quarantine_name(item->path, length, base);
	for (unsigned attempt = 1; attempt <= NAME_ATTEMPTS + 1; attempt++) {
		int named = entry_name(q, base, attempt, entry, &over);

		if (named < 0)
			return named;
		/* The thing that already has this name has a record of its own, which this one must not replace. */
		if (!over && fstatat(p->fd, entry, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			r = -EEXIST;
			continue;
		}
		record_place(q, item, top, p->name, entry);
		if (!over)
			quarantine_note(q, item, length, false);
		r = over ? (renameat(from_fd, name, p->fd, entry) < 0 ? -errno : 0)
			 : rename_unlocked(from_fd, name, p->fd, entry);
		if (r >= 0)
			break;
		if (!over)
			quarantine_record_cancel(&q->log, q->id);
		if (!over && r != -EEXIST)
			break;
	}
	return r;
}

/* Rename it where it is, to a name that nobody obeys or could foresee. @longest: the length that the name may have. */
static int move_beside(struct quarantine *q, const struct quarantine_item *item, int from_fd,
	const char *name, size_t length, size_t longest)
{
	char entry[QUARANTINE_NAME], random[SHORT_NAME];
	int r = -EEXIST;

	for (int attempt = 0; r == -EEXIST && attempt < NAME_ATTEMPTS; attempt++) {
		r = put_random(random, longest < sizeof(random) ? longest : sizeof(random));
		if (r < 0)
			return r;
		if (longest < sizeof(entry))
			(void)snprintf(entry, sizeof(entry), "~%s", random);
		else
			(void)snprintf(entry, sizeof(entry), "%.40s-%.16s", q->name, random);
		r = rename_unlocked(from_fd, name, from_fd, entry);
	}
	if (r >= 0)
		record_place(q, item, parent_length(item->path, length), "", entry);
	return r;
}

static bool is_full(int r)
{
	return r == -ENOSPC || r == -EDQUOT;
}

/* Remove it, even if the owner made its directory read-only. */
static int remove_unlocked(int from_fd, const char *name)
{
	struct remove_result removed;
	unsigned mode;
	int r = remove_tree(from_fd, name, &removed, NULL);

	if (r != -EACCES)
		return r;
	int changed = open_for_change(from_fd, &mode);
	if (changed < 0)
		return changed;
	r = remove_tree(from_fd, name, &removed, NULL);
	changed = beneath_chmod(from_fd, mode);
	return r < 0 ? r : changed;
}

static int move_from(struct quarantine *q, const struct quarantine_item *item, int from_fd,
	const char *name, size_t length)
{
	size_t parent = parent_length(item->path, length), top = 0;
	int r = move_to_place(q, item, 0, from_fd, name, length);

	if (r == -EXDEV && find_top(item, parent, &top) == 0)
		r = move_to_place(q, item, top, from_fd, name, length);
	/* Whatever the failure was, a rename where the thing is needs no quarantine directory. */
	if (r < 0)
		r = move_beside(q, item, from_fd, name, length, sizeof(q->name));
	/* A directory that cannot grow may still have room for a name that is no longer than the old one. */
	if (is_full(r) && strlen(name) > 3)
		r = move_beside(q, item, from_fd, name, length, strlen(name));
	if (is_full(r) && !q->live) {
		q->to[0] = '\0';
		r = remove_unlocked(from_fd, name);
	}
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

int quarantine_move(struct quarantine *q, const struct quarantine_item *item, size_t length)
{
	char name[256];
	size_t parent = parent_length(item->path, length);
	size_t leaf = parent ? parent + 1 : 0;

	if (length - leaf >= sizeof(name))
		return -ENAMETOOLONG;
	memcpy(name, item->path + leaf, length - leaf);
	name[length - leaf] = '\0';
	autofd int fd = quarantine_prefix(item->root_fd, item->path, parent, O_DIRECTORY);
	return fd < 0 ? fd : move_from(q, item, fd, name, length);
}

void quarantine_end(struct quarantine *q)
{
	for (unsigned i = 0; i < q->place_count; i++)
		close_place(&q->places[i]);
	q->place_count = 0;
}

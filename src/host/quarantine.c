/*
 * quarantine.c - see quarantine.h.
 *
 * Runs in: the supervisor (host side), after the last process of the session died.
 */
#include "host/quarantine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/beneath.h"
#include "host/name_set.h"
#include "host/quarantine_tree.h"
#include "host/remove.h"

enum {
	NAME_ATTEMPTS = 1000,
	LIST_FROM = 16, /* items below one root that make it worth listing */
	ASIDE_NAME = 40,
	LOCKED_DIRS = 8, /* directories without search permission on the way to one item */
};

/* One check: the items share the quarantine directory, made when the first thing needs it. */
struct check {
	int base_fd;
	int fd; /* the quarantine directory, -1 until then */
	const char *session_name;
	struct quarantine_result *ret;
	int listed_fd; /* the root whose names are known, -1: none */
	struct name_set names;
};

/* A directory on the way that was made passable for the time of the check. */
struct locked_dir {
	int fd;
	unsigned mode;
};

struct passage {
	struct locked_dir dirs[LOCKED_DIRS];
	unsigned count;
};

/* --- the quarantine directory -------------------------------------------------------------- */

/* Makes or opens it; what is there must be ours alone. */
static int open_directory(struct check *c)
{
	struct stat st;

	if (c->fd >= 0)
		return 0;
	const char *name = arena_format(c->ret->arena, "%s.quarantine", c->session_name);
	if (!name)
		return -ENOMEM;
	if (mkdirat(c->base_fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	autofd int fd = beneath_open(
		c->base_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, BENEATH_SAME_MOUNT);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & 077))
		return -EPERM;
	c->fd = take_fd(&fd);
	c->ret->directory = name;
	return 0;
}

/* --- moving -------------------------------------------------------------------------------- */

static int rename_once(int from_fd, const char *name, int to_fd, const char *new_name)
{
	if (syscall(SYS_renameat2, from_fd, name, to_fd, new_name, RENAME_NOREPLACE) == 0)
		return 0;
	return -errno;
}

/* Gives the directory @fd the owner's rights to change it; @ret_mode: what it had. */
static int open_for_change(int fd, unsigned *ret_mode)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_mode = st.st_mode & 07777;
	return beneath_chmod(fd, *ret_mode | 0700);
}

/* The rename, also out of a directory, or of one, that its owner made read-only. */
static int rename_unlocked(int from_fd, const char *name, int to_fd, const char *new_name)
{
	unsigned mode;
	int result = rename_once(from_fd, name, to_fd, new_name);

	if (result != -EACCES)
		return result;
	if (beneath_unlock_dir(from_fd, name) == 0) {
		result = rename_once(from_fd, name, to_fd, new_name);
		if (result != -EACCES)
			return result;
	}
	int changed = open_for_change(from_fd, &mode);
	if (changed < 0)
		return changed;
	result = rename_once(from_fd, name, to_fd, new_name);
	changed = beneath_chmod(from_fd, mode);
	return result < 0 ? result : changed;
}

/* The removal, also out of a directory that its owner made read-only. */
static int remove_unlocked(int from_fd, const char *name)
{
	struct remove_result removed;
	unsigned mode;
	int result = remove_tree(from_fd, name, &removed, NULL);

	if (result != -EACCES)
		return result;
	int changed = open_for_change(from_fd, &mode);
	if (changed < 0)
		return changed;
	result = remove_tree(from_fd, name, &removed, NULL);
	changed = beneath_chmod(from_fd, mode);
	return result < 0 ? result : changed;
}

/* The base is another file system: a copy, on the disk before the original goes. */
static int move_by_copy(struct check *c, int from_fd, const char *name, const char *new_name,
	struct quarantine_move *m)
{
	struct remove_result removed;
	int result = quarantine_copy(from_fd, name, c->fd, new_name, &m->dropped);

	if (result < 0 && result != -EEXIST) {
		/* A half copy is no evidence, and the original is still there. */
		int dropped = remove_tree(c->fd, new_name, &removed, NULL);

		return dropped < 0 ? dropped : result;
	}
	if (result < 0)
		return result;
	if (fsync(c->fd) < 0)
		return -errno;
	m->copied = true;
	return remove_unlocked(from_fd, name);
}

static int move_as(struct check *c, int from_fd, const char *name, const char *new_name,
	struct quarantine_move *m)
{
	int result = rename_unlocked(from_fd, name, c->fd, new_name);

	/* EINVAL: a file system without RENAME_NOREPLACE. */
	if (result == -EXDEV || result == -EINVAL)
		return move_by_copy(c, from_fd, name, new_name, m);
	if (result == 0)
		m->armed = quarantine_disarm(c->fd, new_name) < 0;
	return result;
}

/* Under a name that nobody obeys or could foresee, in @to_fd. */
static int set_aside_in(int from_fd, const char *name, int to_fd, char ret_name[ASIDE_NAME])
{
	uint64_t random;
	int result = fd_random(&random, sizeof(random));

	if (result < 0)
		return result;
	(void)snprintf(ret_name, ASIDE_NAME, ".carrel-quarantined-%016llx",
		(unsigned long long)random);
	result = rename_unlocked(from_fd, name, to_fd, ret_name);
	/* A file system that knows no RENAME_NOREPLACE. */
	if (result == -EINVAL && renameat(from_fd, name, to_fd, ret_name) == 0)
		result = 0;
	return result;
}

/*
 * Where the base is another file system the tools have a say in whether a copy can be made: they make it too
 * deep, or larger than the base. What cannot be copied is renamed where it is, which nothing of theirs prevents.
 */
static int set_aside(struct check *c, int from_fd, const char *name, struct quarantine_move *m)
{
	const char *slash = strrchr(m->from, '/');
	char aside[ASIDE_NAME];
	int to_fd = m->item->root_fd;
	int result = set_aside_in(from_fd, name, to_fd, aside);

	if (result == -EXDEV) { /* a mount below the root */
		to_fd = from_fd;
		result = set_aside_in(from_fd, name, to_fd, aside);
	}
	if (result < 0)
		return result;
	m->aside = true;
	m->armed = quarantine_disarm(to_fd, aside) < 0;
	m->to = to_fd == from_fd && slash
		? arena_format(c->ret->arena, "%.*s/%s", (int)(slash - m->from), m->from, aside)
		: arena_copy(c->ret->arena, aside, strlen(aside));
	return m->to ? 0 : -ENOMEM;
}

/* Moves @name, known as m->from, under the first free name. */
static int move_to_base(
	struct check *c, int from_fd, const char *name, struct quarantine_move *m)
{
	char base[256], new_name[256];
	int result = open_directory(c);

	if (result < 0)
		return result;
	quarantine_name(m->from, strlen(m->from), base);
	for (unsigned attempt = 1; attempt <= NAME_ATTEMPTS; attempt++) {
		(void)snprintf(new_name, sizeof(new_name), attempt > 1 ? "%.230s~%u" : "%.230s",
			base, attempt);
		result = move_as(c, from_fd, name, new_name, m);
		if (result != -EEXIST)
			break;
	}
	struct stat st;
	bool kept = fstatat(c->fd, new_name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (kept && result != -EEXIST)
		m->to = arena_format(c->ret->arena, "%s/%s", c->ret->directory, new_name);
	return result == 0 && kept && !m->to ? -ENOMEM : result;
}

static int move_anywhere(
	struct check *c, int from_fd, const char *name, struct quarantine_move *m)
{
	int result = move_to_base(c, from_fd, name, m);

	return result < 0 && set_aside(c, from_fd, name, m) == 0 ? 0 : result;
}

/* The scratch would go a moment later: a disk that it is on has room then, for a directory and some names. */
static bool make_room(struct check *c)
{
	struct remove_result gone;
	int session = c->ret->session_fd;

	c->ret->session_fd = -1;
	/* What stays of it is told when the whole directory is removed. */
	return session >= 0 &&
		(remove_tree(session, "scratch", &gone, NULL) == 0 || gone.removed > 0);
}

static int move_entry(struct check *c, int from_fd, const char *name, struct quarantine_move *m)
{
	int result = move_anywhere(c, from_fd, name, m);

	return (result == -ENOSPC || result == -EDQUOT) && make_room(c)
		? move_anywhere(c, from_fd, name, m)
		: result;
}

/* --- looking ------------------------------------------------------------------------------- */

/* The length of @path up to the end of the component that starts at @at. */
static size_t component_end(const char *path, size_t at)
{
	return at + strcspn(path + at, "/");
}

/* Opens the leading @length bytes of @path (0: the root itself) without following a link. */
static int open_prefix(int root_fd, const char *path, size_t length, int flags)
{
	char prefix[PATH_MAX / 2];

	if (length >= sizeof(prefix))
		return -ENAMETOOLONG;
	memcpy(prefix, path, length);
	prefix[length] = '\0';
	return beneath_open(
		root_fd, length ? prefix : ".", flags | O_PATH | O_NOFOLLOW, BENEATH_ANY_MOUNT);
}

/* Where the last component of the leading @length bytes starts. */
static size_t leaf_start(const char *path, size_t length)
{
	while (length > 0 && path[length - 1] != '/')
		length--;
	return length;
}

/*
 * Something on the way is no directory: find it. Returns the length of the path up to it, 0 where
 * all is well by now, or -errno.
 */
static ssize_t find_obstacle(int root_fd, const char *path)
{
	struct stat st;

	for (size_t end = component_end(path, 0);; end = component_end(path, end + 1)) {
		autofd int fd = open_prefix(root_fd, path, end, 0);

		if (fd < 0)
			return fd == -ENOENT ? 0 : fd;
		if (fstat(fd, &st) < 0)
			return -errno;
		if (!S_ISDIR(st.st_mode) || !path[end])
			return (ssize_t)end;
	}
}

/*
 * A directory without search permission is on the way (a way to hide what is in it until later):
 * make the deepest one that can be opened passable until close_passage().
 */
static int open_passage(int root_fd, const char *path, struct passage *p)
{
	struct stat st;
	autofd int last = open_prefix(root_fd, path, 0, O_DIRECTORY);

	if (last < 0)
		return last;
	for (size_t end = component_end(path, 0); path[end];
		end = component_end(path, end + 1)) {
		int fd = open_prefix(root_fd, path, end, O_DIRECTORY);

		if (fd == -EACCES)
			break;
		if (fd < 0)
			return fd;
		fd_close(&last);
		last = fd;
	}
	if (fstat(last, &st) < 0)
		return -errno;
	if (p->count >= LOCKED_DIRS || (st.st_mode & 0100))
		return -EACCES; /* too many, or not the owner's bits are in the way */
	int result = beneath_chmod(last, (st.st_mode & 07777) | 0700);
	if (result < 0)
		return result;
	p->dirs[p->count++] = (struct locked_dir){ take_fd(&last), st.st_mode & 07777 };
	return 0;
}

/* Gives the directories their modes back. 0 or the first -errno. */
static int close_passage(struct passage *p)
{
	int result = 0;

	while (p->count > 0) {
		struct locked_dir *dir = &p->dirs[--p->count];
		int changed = beneath_chmod(dir->fd, dir->mode);

		if (changed < 0 && result == 0)
			result = changed;
		fd_close(&dir->fd);
	}
	return result;
}

/*
 * What stands at the item's path or in its way. Returns the length of the path up to it, 0 where
 * nothing appeared, or -errno.
 */
static ssize_t find_appeared(const struct quarantine_item *item, struct passage *p)
{
	for (;;) {
		int fd = beneath_open(
			item->root_fd, item->path, O_PATH | O_NOFOLLOW, BENEATH_ANY_MOUNT);

		if (fd >= 0) {
			fd_close(&fd);
			return (ssize_t)strlen(item->path);
		}
		if (fd == -ENOENT || fd == -ENAMETOOLONG)
			return 0;
		if (fd == -ELOOP || fd == -ENOTDIR)
			break;
		int result = fd == -EACCES ? open_passage(item->root_fd, item->path, p) : fd;
		if (result < 0)
			return result;
	}
	return find_obstacle(item->root_fd, item->path);
}

/*
 * Whether what stands at the leading @length bytes is to go: 1, 0 or -errno. In the part that existed only a
 * link: see existing_prefix_len.
 */
static int is_to_go(const struct quarantine_item *item, size_t length)
{
	struct stat st;

	if (length > item->existing_prefix_len)
		return 1;
	autofd int fd = open_prefix(item->root_fd, item->path, length, 0);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISLNK(st.st_mode);
}

/* Moves the leading @length bytes of the item's path away. */
static int move_appeared(struct check *c, size_t length, struct quarantine_move *m)
{
	const char *path = m->item->path;
	size_t leaf = leaf_start(path, length);

	m->from = arena_copy(c->ret->arena, path, length);
	if (!m->from)
		return -ENOMEM;
	autofd int fd = open_prefix(m->item->root_fd, path, leaf ? leaf - 1 : 0, O_DIRECTORY);
	return fd < 0 ? fd : move_entry(c, fd, m->from + leaf, m);
}

/* Notes what happened to an item at which something was found or which could not be looked at. */
static int note_move(struct check *c, struct quarantine_move *m, int result, struct error *e)
{
	struct quarantine_result *ret = c->ret;
	struct quarantine_move *moves =
		arena_push(ret->arena, ret->moves, ret->count, sizeof(*moves));
	char on[1024];

	(void)snprintf(on, sizeof(on), "%s/%s", m->item->root, m->from);
	m->errnum = result < 0 ? -result : 0;
	ret->failed += result < 0;
	if (moves) {
		ret->moves = moves;
		moves[ret->count++] = *m;
	} else if (result == 0) {
		result = -ENOMEM;
	}
	if (result < 0)
		return error_set(e, ERROR_TEARDOWN, "close", -result, on,
			"cannot move to quarantine what appeared at a protected path");
	return 0;
}

static int check_item(struct check *c, const struct quarantine_item *item, struct error *e)
{
	struct passage passage = { .count = 0 };
	struct quarantine_move m = { .item = item, .from = item->path };
	ssize_t found = find_appeared(item, &passage);
	int result = found > 0 ? is_to_go(item, (size_t)found) : (int)found;
	bool moved = result > 0;

	if (moved)
		result = move_appeared(c, (size_t)found, &m);
	int closed = close_passage(&passage);
	if (result == 0)
		result = closed;
	if (!m.from)
		m.from = item->path;
	return moved || result < 0 ? note_move(c, &m, result, e) : 0;
}

/* Whether a listing of the root settles that nothing is there, nor in the way. */
static bool is_surely_absent(struct check *c, const struct quarantine_item *item, size_t left)
{
	if (item->root_fd != c->listed_fd && left >= LIST_FROM) {
		c->listed_fd = item->root_fd;
		c->names = (struct name_set){ 0 };
		name_set_read(&c->names, c->ret->arena, item->root_fd);
	}
	return item->root_fd == c->listed_fd &&
		name_set_lacks(&c->names, item->path, component_end(item->path, 0));
}

int quarantine_check(const struct quarantine_item *items, size_t count, int session_base_fd,
	const char *session_name, struct quarantine_result *ret, struct error *e)
{
	struct check c = {
		.base_fd = session_base_fd,
		.fd = -1,
		.session_name = session_name,
		.ret = ret,
		.listed_fd = -1,
	};
	int first = 0;

	*ret = (struct quarantine_result){ .arena = ret->arena, .session_fd = ret->session_fd };
	for (size_t i = 0; i < count; i++) {
		if (is_surely_absent(&c, &items[i], count - i))
			continue;
		int result = check_item(&c, &items[i], e);
		if (result < 0 && first == 0)
			first = result;
	}
	fd_close(&c.fd);
	return first;
}

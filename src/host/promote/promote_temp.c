/*
 * promote_temp.c - see promote_temp.h.
 *
 * Runs in: the supervisor and the client (host side).
 */
#include "host/promote/promote_temp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/tree/beneath.h"
#include "host/tree/plainfile.h"
#include "host/tree/remove.h"

#define PREFIX ".carrel-promote-"
enum {
	PREFIX_LENGTH = sizeof(PREFIX) - 1,
	NAME_LENGTH = PREFIX_LENGTH + 16,
	ATTEMPTS = 16,
	SWEEP_READ = 100000,
	SWEEP_REMOVED = 64,
	SWEEP_NS = 100000000,
};

/* Whether @name in @dir is what @fd has open. */
static bool is_named(int dir, const char *name, int fd)
{
	struct stat there, open;

	return fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &open) == 0 &&
		there.st_dev == open.st_dev && there.st_ino == open.st_ino;
}

/* 0: locked, or the file system has no locks; -EAGAIN: somebody else holds it. */
static int lock(int fd)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : 0;
}

static int make_once(int dir, bool is_dir, struct promote_temp *t)
{
	uint64_t random;
	int r = fd_random(&random, sizeof(random));

	if (r < 0)
		return r;
	(void)snprintf(t->name, sizeof(t->name), PREFIX "%016llx", (unsigned long long)random);
	if (is_dir && mkdirat(dir, t->name, 0700) < 0)
		return -errno;
	autofd int fd = is_dir
		? beneath_open(
			  dir, t->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, BENEATH_SAME_MOUNT)
		: fd_open_at(dir, t->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fd == -ENOENT ? -EEXIST : fd; /* a sweep was faster */
	/* A sweep may have looked in the moment before the lock: then the name is gone. */
	if (lock(fd) < 0 || !is_named(dir, t->name, fd))
		return -EEXIST;
	t->fd = take_fd(&fd);
	return 0;
}

int promote_temp_make(int dir, bool is_dir, struct promote_temp *ret)
{
	struct promote_temp t = { .dir = dir, .fd = -1, .is_dir = is_dir };
	int r = -EEXIST;

	for (int i = 0; i < ATTEMPTS && r == -EEXIST; i++)
		r = make_once(dir, is_dir, &t);
	if (r == 0)
		*ret = t;
	return r;
}

/* For a file system that has no RENAME_NOREPLACE: linkat(2) does not replace a file either. */
static int place_plainly(const struct promote_temp *t, const char *name)
{
	struct stat st;

	if (!t->is_dir) {
		if (linkat(t->dir, t->name, t->dir, name, 0) < 0)
			return -errno;
		return unlinkat(t->dir, t->name, 0) < 0 ? -errno : 0;
	}
	if (fstatat(t->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(t->dir, t->name, t->dir, name) < 0 ? -errno : 0;
}

int promote_temp_place(struct promote_temp *t, const char *name, bool force)
{
	int r = 0;

	if (!is_named(t->dir, t->name, t->fd))
		return -EBUSY;
	if (syscall(SYS_renameat2, t->dir, t->name, t->dir, name,
		    force && !t->is_dir ? 0 : RENAME_NOREPLACE) < 0)
		r = errno == EINVAL ? place_plainly(t, name) : -errno;
	if (r < 0)
		return r;
	t->name[0] = '\0';
	/* Between the look and the rename somebody may have put something else under the name. */
	if (!is_named(t->dir, name, t->fd))
		r = -EBUSY;
	fd_close(&t->fd);
	return r;
}

void promote_temp_drop(struct promote_temp *t, int64_t deadline_ns)
{
	const struct remove_options options = { .deadline_ns = deadline_ns };
	struct remove_result gone;

	if (t->name[0]) {
		/* The error that made us drop it is the one that counts. If this fails, the next sweep removes the tree. */
		(void)!remove_tree_with(t->dir, t->name, &options, &gone, NULL);
	}
	t->name[0] = '\0';
	fd_close(&t->fd);
}

static bool is_temp_name(const char *name)
{
	return strlen(name) == NAME_LENGTH && !strncmp(name, PREFIX, PREFIX_LENGTH) &&
		strspn(name + PREFIX_LENGTH, "0123456789abcdef") == 16;
}

/* 1 where it was a stray of ours and is gone. */
static unsigned sweep_one(int dir, const char *name, int64_t deadline_ns)
{
	const struct remove_options options = { .workers = 1, .deadline_ns = deadline_ns };
	struct remove_result gone;
	struct stat st;
	autofd int place = beneath_open(dir, name, O_PATH | O_NOFOLLOW, BENEATH_SAME_MOUNT);

	if (place < 0 || fstat(place, &st) < 0 || st.st_uid != geteuid())
		return 0;
	autofd int fd = S_ISDIR(st.st_mode)
		? beneath_open(place, ".", O_RDONLY | O_DIRECTORY, BENEATH_SAME_MOUNT)
		: plainfile_reopen(place);
	if (fd < 0)
		return 0;
	/*
	 * On a file system without locks a stray cannot be told from one that another process is
	 * writing: it stays.
	 */
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || !is_named(dir, name, fd))
		return 0;
	return remove_tree_with(dir, name, &options, &gone, NULL) == 0;
}

void promote_temp_sweep(int dir)
{
	_Alignas(struct beneath_entry) char buffer[2048];
	unsigned read = 0, removed = 0;
	int64_t deadline = clock_now_ns() + SWEEP_NS;
	/* A position of its own; a removal while reading may only make it miss one. */
	autofd int fd = fd_open_at(dir, ".", O_RDONLY | O_DIRECTORY, 0);

	struct beneath_list list = { .fd = fd, .buffer = buffer, .size = sizeof(buffer) };
	struct beneath_entry *entry;

	while (fd >= 0 && read++ < SWEEP_READ && removed < SWEEP_REMOVED &&
		beneath_next(&list, &entry) > 0) {
		if (!is_temp_name(entry->name))
			continue;
		/* Tools can make such names, as many and as large as they like. */
		if (clock_now_ns() >= deadline)
			return;
		removed += sweep_one(dir, entry->name, deadline);
	}
}

/*
 * tree_fixture.h - a directory of a test's own, and what one puts into it.
 *
 * Runs in: the tests of removal, census and quarantine, as root and as an ordinary user.
 * Everything is made relative to a descriptor, so that trees may be as deep as they like.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/tree/remove.h"

struct tree {
	char path[64];
	int fd;
};

/* tree_make - a fresh directory below @where ("/tmp", "/dev/shm"). */
static inline void tree_make(struct tree *t, const char *where)
{
	(void)snprintf(t->path, sizeof(t->path), "%s/carrel-test-XXXXXX", where);
	assert_non_null(mkdtemp(t->path));
	t->fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(t->fd >= 0);
}

/* tree_drop - remove it; by then nothing unusual is in it. */
static inline void tree_drop(struct tree *t)
{
	struct remove_result result;

	assert_int_equal(close(t->fd), 0);
	assert_int_equal(remove_tree(AT_FDCWD, t->path, &result, NULL), -EINVAL);
	int tmp = open(t->path, O_PATH | O_CLOEXEC);
	assert_true(tmp >= 0);
	int parent = openat(tmp, "..", O_PATH | O_CLOEXEC);
	assert_true(parent >= 0);
	assert_int_equal(remove_tree(parent, strrchr(t->path, '/') + 1, &result, NULL), 0);
	assert_int_equal(close(tmp) | close(parent), 0);
}

static inline int tree_setup(void **state)
{
	static struct tree t;

	tree_make(&t, "/tmp");
	*state = &t;
	return 0;
}

/* The same in memory, where thousands of files cost nothing; on disk where there is none. */
static inline int tree_setup_memory(void **state)
{
	static struct tree t;

	tree_make(&t, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	*state = &t;
	return 0;
}

static inline int tree_teardown(void **state)
{
	tree_drop(*state);
	return 0;
}

static inline void make_dir(int at, const char *name)
{
	assert_int_equal(mkdirat(at, name, 0755), 0);
}

static inline int open_dir(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static inline void make_file(int at, const char *name, const char *text, unsigned mode)
{
	int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

static inline bool exists(int at, const char *name)
{
	struct stat st;

	return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline struct stat stat_of(int at, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st;
}

/* assert_text - @name is a file with exactly this in it. */
static inline void assert_text(int at, const char *name, const char *text)
{
	char got[512];
	int fd = openat(at, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	assert_true(fd >= 0);
	ssize_t n = fd_read_file(fd, got, sizeof(got) - 1);
	assert_true(n >= 0);
	assert_string_equal(got, text);
	assert_int_equal(close(fd), 0);
}

/* count_entries - how many entries a directory has, dots aside. */
static inline size_t count_entries(int at, const char *name)
{
	DIR *dir = fdopendir(open_dir(at, name));
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	assert_int_equal(closedir(dir), 0);
	return count - 2;
}

/* make_chain - @levels directories, each in the one before; every seventh has @mode. */
static inline void make_chain(int at, const char *name, unsigned levels, unsigned mode)
{
	int fd;

	make_dir(at, name);
	fd = open_dir(at, name);
	for (unsigned i = 1; i < levels; i++) {
		make_dir(fd, "deeper");
		int next = open_dir(fd, "deeper");
		if (i % 7 == 0)
			assert_int_equal(fchmod(fd, mode), 0);
		assert_int_equal(close(fd), 0);
		fd = next;
	}
	make_file(fd, "bottom", "x", 0600);
	assert_int_equal(close(fd), 0);
}

/* make_wide - @dirs directories (1: none, the files are in @name itself) of @files files each. */
static inline void make_wide(int at, const char *name, unsigned dirs, unsigned files)
{
	char text[32];

	make_dir(at, name);
	int top = open_dir(at, name);
	for (unsigned i = 0; i < dirs; i++) {
		int fd = top;

		if (dirs > 1) {
			(void)snprintf(text, sizeof(text), "dir-%u", i);
			make_dir(top, text);
			fd = open_dir(top, text);
		}
		for (unsigned j = 0; j < files; j++) {
			(void)snprintf(text, sizeof(text), "file-%u", j);
			make_file(fd, text, "12345", 0600);
		}
		if (fd != top)
			assert_int_equal(close(fd), 0);
	}
	assert_int_equal(close(top), 0);
}

/* end_child - wait for a forked child; its exit status must be @status. */
static inline void end_child(pid_t pid, int status)
{
	int got;

	assert_int_equal(waitpid(pid, &got, 0), pid);
	assert_true(WIFEXITED(got));
	assert_int_equal(WEXITSTATUS(got), status);
}

/* kill_child - end a forked child that would not end by itself. */
static inline void kill_child(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

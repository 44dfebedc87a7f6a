/*
 * sys.h - system calls that libcs do not wrap (or not all of them).
 *
 * Runs in: the box, and the host side for clone3 and pidfds. Thin: each returns what the kernel
 * says, 0 or positive, or -errno. No allocation, no state.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline long sys_result(long r)
{
	return r < 0 ? -errno : r;
}

/* See: clone(2). @args: with exit_signal; the child returns 0 in a copy of the caller. */
static inline long sys_clone3(struct clone_args *args)
{
	return sys_result(syscall(SYS_clone3, args, sizeof(*args)));
}

/* See: openat2(2). */
static inline int sys_openat2(int dirfd, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = resolve };

	return (int)sys_result(syscall(SYS_openat2, dirfd, path, &how, sizeof(how)));
}

/* See: open_tree(2), move_mount(2), mount_setattr(2), fsopen(2), fsconfig(2), fsmount(2). */
static inline int sys_open_tree(int dirfd, const char *path, unsigned flags)
{
	return (int)sys_result(syscall(SYS_open_tree, dirfd, path, flags | OPEN_TREE_CLOEXEC));
}

static inline int sys_move_mount(int from, int to)
{
	return (int)sys_result(syscall(SYS_move_mount, from, "", to, "",
		MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
}

static inline int sys_mount_setattr(
	int dirfd, const char *path, unsigned flags, struct mount_attr *attr)
{
	return (int)sys_result(
		syscall(SYS_mount_setattr, dirfd, path, flags, attr, sizeof(*attr)));
}

#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467 /* Linux 6.15; one number on every machine */
#endif

/* open_tree(2) and mount_setattr(2) in one. */
static inline int sys_open_tree_attr(
	int dirfd, const char *path, unsigned flags, struct mount_attr *attr)
{
	return (int)sys_result(syscall(SYS_open_tree_attr, dirfd, path,
		flags | OPEN_TREE_CLOEXEC, attr, sizeof(*attr)));
}

/* @name: below @to; a link at its end is not followed, those on the way are. */
static inline int sys_move_mount_into(int from, int to, const char *name)
{
	return (int)sys_result(
		syscall(SYS_move_mount, from, "", to, name, MOVE_MOUNT_F_EMPTY_PATH));
}

static inline int sys_fsopen(const char *type)
{
	return (int)sys_result(syscall(SYS_fsopen, type, FSOPEN_CLOEXEC));
}

static inline int sys_fsconfig_string(int fs, const char *key, const char *value)
{
	return (int)sys_result(syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, value, 0));
}

static inline int sys_fsconfig_flag(int fs, const char *key)
{
	return (int)sys_result(syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, key, NULL, 0));
}

static inline int sys_fsconfig_create(int fs)
{
	return (int)sys_result(syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
}

static inline int sys_fsmount(int fs, unsigned attrs)
{
	return (int)sys_result(syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attrs));
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
	return (int)sys_result(syscall(SYS_pivot_root, new_root, put_old));
}

static inline int sys_close_range(unsigned first, unsigned last)
{
	return first > last ? 0 : (int)sys_result(syscall(SYS_close_range, first, last, 0));
}

/* See: pidfd_send_signal(2), waitid(2) with P_PIDFD. */
static inline int sys_pidfd_send_signal(int pidfd, int signal)
{
	return (int)sys_result(syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0));
}

/*
 * fresh.c - see fresh.h.
 *
 * Runs in: init. No heap, no stdio.
 */
#include "box/fresh.h"

#include <stddef.h>
#include <sys/mount.h>
#include <unistd.h>

#include "box/number.h"
#include "box/sys.h"

/* @options: key, value pairs, ended by NULL. */
static int make(const char *type, const char *const *options, unsigned attrs)
{
	int fs = sys_fsopen(type);

	if (fs < 0)
		return fs;
	int r = 0;
	for (; *options && r >= 0; options += 2)
		r = options[1] ? sys_fsconfig_string(fs, options[0], options[1])
			       : sys_fsconfig_flag(fs, options[0]);
	if (r >= 0)
		r = sys_fsconfig_create(fs);
	if (r >= 0)
		r = sys_fsmount(fs, attrs);
	(void)close(fs);
	return r;
}

static int make_tmpfs(const char *const *options)
{
	return make("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

/* A fraction of the machine's memory, and few inodes: no limit counts the memory that an inode
 * takes. */
static int make_skeleton(void)
{
	const char *const options[] = { "mode", "0755", "size", "10%", "nr_inodes", "65536",
		NULL };

	return make_tmpfs(options);
}

static int make_proc(void)
{
	const char *const options[] = { NULL };

	return make("proc", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

static int make_devpts(void)
{
	const char *const options[] = { "ptmxmode", "0666", "mode", "0620", NULL };

	return make("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
}

void fresh_ahead(struct box_made *ret)
{
	ret->proc = make_proc();
	ret->devpts = make_devpts();
	ret->tmpfs = make_skeleton();
}

/* Returns what was made ahead, the first time; otherwise what @make_now makes. */
static int take_made(int *made, int (*make_now)(void))
{
	int fd = *made;

	*made = -1;
	return fd >= 0 ? fd : make_now();
}

int fresh_proc(struct box_made *made)
{
	return take_made(&made->proc, make_proc);
}

int fresh_devpts(struct box_made *made)
{
	return take_made(&made->devpts, make_devpts);
}

int fresh_skeleton(struct box_made *made)
{
	return take_made(&made->tmpfs, make_skeleton);
}

int fresh_tmpfs(uint64_t size, const uint32_t *uid, const uint32_t *gid)
{
	char size_text[NUMBER_TEXT], uid_text[NUMBER_TEXT], gid_text[NUMBER_TEXT];
	const char *options[9] = { "mode", "0700" };
	size_t n = 2;

	if (size) {
		options[n++] = "size";
		options[n++] = number_text(size_text, size);
	}
	if (uid && gid) {
		options[n++] = "uid";
		options[n++] = number_text(uid_text, *uid);
		options[n++] = "gid";
		options[n++] = number_text(gid_text, *gid);
	}
	options[n] = NULL;
	return make_tmpfs(options);
}

/* The layers are given as descriptors, so that no character of a path can be read as overlayfs's
 * own syntax. */
int fresh_overlay(int lower_fd, int store_fd)
{
	char lower[64], upper[64], work[64];

	number_path(lower, "/proc/self/fd/", (unsigned)lower_fd, "");
	number_path(upper, "/proc/self/fd/", (unsigned)store_fd, "/upper");
	number_path(work, "/proc/self/fd/", (unsigned)store_fd, "/work");
	const char *const options[] = { "lowerdir", lower, "upperdir", upper, "workdir", work,
		"userxattr", NULL, NULL };

	return make("overlay", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

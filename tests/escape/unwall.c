/*
 * unwall.c - takes the wall of mounts away from a session that runs, and nothing else of it.
 *
 *     unwall PID rw MOUNT-POINT...      these mounts are writable from now on
 *     unwall PID bare MOUNT-POINT       what lies below this mount is seen
 *     unwall PID show DIRECTORY PLACE   DIRECTORY of the host is seen at PLACE, writable; as root
 *
 * Runs in: the tests, outside; with every right that whoever started the session has over it. PID is
 * the session's command. What is left between it and the files is then Landlock, and who owns them.
 * Status 0: done; 1: not, and why.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fail(const char *what, const char *on)
{
	(void)fprintf(stderr, "unwall: %s: %s: %s\n", what, on, strerror(errno));
	return 1;
}

static int open_namespace(const char *pid, const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%s/ns/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool is_own(int ns, const char *name)
{
	struct stat theirs, ours;
	int own = open_namespace("self", name);
	bool same = own >= 0 && fstat(own, &ours) == 0 && fstat(ns, &theirs) == 0 &&
		ours.st_ino == theirs.st_ino;

	if (own >= 0)
		(void)close(own);
	return same;
}

/*
 * The mounts of a session that root started belong to root's own user namespace; those of another's
 * to the session's, in which the owner has every capability.
 */
static int enter(const char *pid)
{
	int user = open_namespace(pid, "user"), mnt = open_namespace(pid, "mnt");

	if (user < 0 || mnt < 0)
		return -1;
	if (geteuid() != 0 && !is_own(user, "user") && setns(user, CLONE_NEWUSER) < 0)
		return -1;
	int r = setns(mnt, CLONE_NEWNS);
	(void)close(user);
	(void)close(mnt);
	return r;
}

static int set_writable(int fd, const char *path)
{
	struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };

	return (int)syscall(
		SYS_mount_setattr, fd, path, fd >= 0 ? AT_EMPTY_PATH : 0, &attr, sizeof(attr));
}

static int show(const char *pid, const char *directory, const char *place)
{
	int tree = (int)syscall(
		SYS_open_tree, AT_FDCWD, directory, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree < 0 || set_writable(tree, "") < 0)
		return fail("clone", directory);
	if (enter(pid) < 0)
		return fail("enter", pid);
	if (syscall(SYS_move_mount, tree, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return fail("attach", place);
	return 0;
}

static int make_writable(char *const *mounts)
{
	for (; *mounts; mounts++)
		if (set_writable(AT_FDCWD, *mounts) < 0)
			return fail("make writable", *mounts);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[2], "show"))
		return show(argv[1], argv[3], argv[4]);
	if (argc < 4) {
		(void)fputs("usage: unwall PID rw|bare|show ...\n", stderr);
		return 1;
	}
	if (enter(argv[1]) < 0)
		return fail("enter", argv[1]);
	if (!strcmp(argv[2], "rw"))
		return make_writable(argv + 3);
	return umount2(argv[3], MNT_DETACH) < 0 ? fail("unmount", argv[3]) : 0;
}

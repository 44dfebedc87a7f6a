/*
 * machine_probe.c - see machine_probe.h.
 *
 * Runs in: a child of the launcher. No heap, no stdio.
 */
#include "box/machine_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "box/fresh.h"
#include "box/sys.h"

static int try_tree(void)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID };
	int tree = sys_open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | AT_RECURSIVE);

	return tree < 0 ? tree
			: sys_mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr);
}

static int try_move(int tmpfs)
{
	struct mount_attr attr = { .propagation = MS_PRIVATE };
	int r = sys_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr);
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (r < 0 || root < 0)
		return r < 0 ? r : -errno;
	return sys_move_mount(tmpfs, root);
}

/* Each step in turn; ret->step: the one that failed, if any. */
static int try_all(struct machine_probe *ret, unsigned long flags)
{
	struct box_made made = { .proc = -1, .devpts = -1, .tmpfs = -1 };

	if (unshare((int)flags) < 0)
		return -errno;
	ret->step = MACHINE_PROBE_TREE;
	int r = try_tree();
	if (r < 0)
		return r;
	ret->step = MACHINE_PROBE_TMPFS;
	fresh_ahead(&made);
	ret->proc = made.proc < 0 ? made.proc : 0;
	if (made.tmpfs < 0)
		return made.tmpfs;
	ret->step = MACHINE_PROBE_MOVE;
	return try_move(made.tmpfs);
}

_Noreturn void machine_probe_main(
	struct machine_probe *ret, unsigned long flags, const int go[2])
{
	char byte;
	int r = prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);

	/* The launcher maps the ids meanwhile, which it cannot do for a process that has ended. */
	(void)close(go[1]);
	while (read(go[0], &byte, 1) < 0 && errno == EINTR)
		;
	ret->step = MACHINE_PROBE_NAMESPACES;
	if (r >= 0)
		r = try_all(ret, flags);
	ret->error = r < 0 ? r : 0;
	if (r >= 0)
		ret->step = MACHINE_PROBE_DONE;
	_exit(0);
}

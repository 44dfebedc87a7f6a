/*
 * view.c - see view.h.
 *
 * Runs in: init, and a child of it. No heap, no stdio.
 */
#include "box/view.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "box/channel.h"
#include "box/confine.h"
#include "box/sys.h"

unsigned view_bits(const struct plan *plan)
{
	unsigned views = 0;

	if (plan->policy->workspace_mode != WORKSPACE_RO)
		views |= 1u << VIEW_WORKSPACE_RO;
	if (plan->policy->net != NET_NONE)
		views |= 1u << VIEW_NET_NONE;
	if (views == ((1u << VIEW_WORKSPACE_RO) | (1u << VIEW_NET_NONE)))
		views |= 1u << (VIEW_WORKSPACE_RO | VIEW_NET_NONE);
	return views;
}

static int set_read_only(const char *path, unsigned flags, bool on)
{
	struct mount_attr attr = { .attr_set = on ? MOUNT_ATTR_RDONLY : 0,
		.attr_clr = on ? 0 : MOUNT_ATTR_RDONLY };

	return sys_mount_setattr(AT_FDCWD, path, flags | AT_SYMLINK_NOFOLLOW, &attr);
}

static bool is_below(const char *dir, const char *path)
{
	size_t length = strlen(dir);

	return !strncmp(path, dir, length) && path[length] == '/';
}

/* What is writable for the workspace's git lies outside the workspace, but counts as part of it. */
static int close_workspace(const struct plan *plan)
{
	const struct facts *f = plan->facts;
	int r = set_read_only(f->workspace, AT_RECURSIVE, true);

	for (size_t i = 0; r >= 0 && i < f->path_count; i++) {
		const struct path_rule *rule = f->paths[i].rule;

		if (rule->kind == PATH_WRITE && rule->source.layer == LAYER_DEFAULT &&
			f->paths[i].exists && !strcmp(rule->source.file, "git"))
			r = set_read_only(f->paths[i].path, AT_RECURSIVE, true);
	}
	/* The scratch base may be a directory of the workspace: the scratch itself stays writable. */
	if (r >= 0 && is_below(f->workspace, f->scratch_dir))
		r = set_read_only(f->scratch_dir, 0, false);
	return r;
}

static int become_view(const struct box *box, unsigned view, int channel)
{
	int flags = CLONE_NEWNS | (view & VIEW_NET_NONE ? CLONE_NEWNET : 0);

	if (dup3(channel, BOX_CHANNEL, O_CLOEXEC) < 0 || close(channel) < 0)
		return -errno;
	/* Processes of a killed monitor become children of this init: Landlock does not let the
	 * session's init signal them. */
	if (unshare(flags) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return -errno;
	int r = view & VIEW_NET_NONE ? confine_loopback() : 0;
	if (r >= 0 && (view & VIEW_WORKSPACE_RO))
		r = close_workspace(box->plan);
	return r < 0 ? r : 1;
}

int view_fork(const struct box *box, unsigned view, int channel)
{
	long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		return become_view(box, view, channel);
	if (pid > 0 && box->view_inits)
		box->view_inits[view] = (pid_t)pid;
	if (close(channel) < 0 || pid < 0)
		return -errno;
	return 0;
}

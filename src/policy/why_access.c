/*
 * why_access.c - what a file's owner, mode and access control list let the payload do.
 *
 * Runs in: carrel-policy, outside, as the caller; and in a child of it that has the payload's ids and no capability.
 * The child asks the kernel and ends: whatever it finds, it changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "plan/seen.h"
#include "policy/why.h"

/* Whose ids the payload has where this node is seen: an idmapped mount shows files of one owner as its own. */
struct ids {
	bool change; /* the payload is somebody else than the caller */
	bool mapped; /* through an idmapped mount: all other owners are nobody there */
	uid_t uid;
	gid_t gid;
};

/* What a redundant node stands on is what is really mounted there. */
static const struct node *mounted(const struct plan *plan, const struct node *n)
{
	while (n->redundant && n->up != NODE_NO_UP)
		n = &plan->nodes[n->up];
	return n;
}

static struct ids ids_at(const struct plan *plan, const struct seen *seen)
{
	const struct node *n = mounted(plan, seen->node);
	struct ids ids = { .change = plan->facts->privileged,
		.uid = plan->facts->kernel_uid,
		.gid = plan->facts->kernel_gid };

	if (ids.change && n->idmapped) {
		ids.mapped = true;
		ids.uid = plan->idmaps[n->idmap].disk_uid;
		ids.gid = plan->idmaps[n->idmap].disk_gid;
	}
	return ids;
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

/* In the child. An errno of the kernel's, or 255: it could not become the payload. */
static int ask(const struct ids *ids, int fd, int mode)
{
	if (ids->change &&
		(setgroups(0, NULL) < 0 || setresgid(ids->gid, ids->gid, ids->gid) < 0 ||
			setresuid(ids->uid, ids->uid, ids->uid) < 0))
		return 255;
	if (drop_capabilities() < 0)
		return 255;
	if (syscall(SYS_faccessat2, fd, "", mode, AT_EACCESS | AT_EMPTY_PATH) == 0)
		return 0;
	return errno < 255 ? errno : 255;
}

static int ask_child(const struct ids *ids, int fd, int mode)
{
	siginfo_t info = { 0 };
	pid_t child = fork();

	if (child < 0)
		return -errno;
	if (child == 0)
		_exit(ask(ids, fd, mode));
	while (waitid(P_PID, (id_t)child, &info, WEXITED) < 0)
		if (errno != EINTR)
			return -errno;
	return info.si_code != CLD_EXITED || info.si_status == 255 ? -ECHILD : info.si_status;
}

int why_access(const struct plan *plan, const struct seen *seen, int mode)
{
	const struct ids ids = ids_at(plan, seen);
	struct stat st;
	autofd int fd = fd_open_at(AT_FDCWD, seen->host, O_PATH | O_NOFOLLOW, 0);

	if (fd < 0)
		/* What the session makes itself is its own, and not there yet. */
		return fd == -ENOENT && seen->exact ? 0 : fd == -EACCES ? EACCES : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (ids.mapped && (mode & W_OK) && (st.st_uid != ids.uid || st.st_gid != ids.gid))
		return EACCES; /* inode_permission(): an owner that the mount does not map */
	return ask_child(&ids, fd, mode);
}

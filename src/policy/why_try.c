/*
 * why_try.c - what the payload may do with a file: its owner, mode and access control list, the mount that it is
 * seen on, and Landlock.
 *
 * Runs in: carrel-policy, outside, as the caller; and in children of it that have the payload's ids and no capability.
 * They ask the kernel and end; nothing is opened for more than a look.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policy/why.h"

/* --- the kernel's word ------------------------------------------------------------------------ */

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

/* In the child. An errno of the kernel's, or 255: it could not become the payload. */
static int ask(const struct why_ids *ids, int fd, int mode)
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

/*
 * An owner that the mount does not map: nothing of it is written, see inode_permission(); and in an overlay whoever
 * mounted it, root, has no more right there than others have: capable_wrt_inode_uidgid(), ovl_permission().
 */
static bool is_strangers(const struct why_thing *t, int mode)
{
	const mode_t bits = t->st.st_mode;

	if (!t->ids.mapped || (t->st.st_uid == t->ids.uid && t->st.st_gid == t->ids.gid))
		return false;
	return (mode & W_OK) ||
		(t->ids.overlay &&
			(((mode & R_OK) && !(bits & S_IROTH)) ||
				((mode & X_OK) && !(bits & S_IXOTH))));
}

int why_access(const struct why_thing *t, int mode)
{
	siginfo_t info = { 0 };

	if (t->fd < 0)
		return t->refused;
	if (is_strangers(t, mode))
		return EACCES;
	pid_t child = fork();
	if (child < 0)
		return -errno;
	if (child == 0)
		_exit(ask(&t->ids, t->fd, mode));
	while (waitid(P_PID, (id_t)child, &info, WEXITED) < 0)
		if (errno != EINTR)
			return -errno;
	return info.si_code != CLD_EXITED || info.si_status == 255 ? -ECHILD : info.si_status;
}

/* --- what is there ---------------------------------------------------------------------------- */

/* Opening it for writing; in a directory, making something. */
static int try_write(const struct why_thing *t)
{
	mode_t mode = t->st.st_mode;
	int r = why_access(t, S_ISDIR(mode) ? X_OK : W_OK);

	if (r || t->device)
		return r;
	if (S_ISFIFO(mode)) /* no mount keeps them read-only, only Landlock does */
		return t->write || !t->landlock ? 0 : EACCES;
	if (!t->write) /* a mode that refuses it was looked at first: open(2) */
		return t->mounts ? EROFS : EACCES;
	return S_ISDIR(mode) ? why_access(t, W_OK) : 0;
}

static int try_connect(const struct why_thing *t)
{
	int r = why_access(t, W_OK); /* a read-only mount does not matter: unix(7) */

	return r == 0 && !t->write && t->sockets ? EACCES : r;
}

static int try_read(const struct why_thing *t)
{
	/* Without mounts what is not allowed is refused by Landlock. */
	if (!t->mounts && !t->read)
		return EACCES;
	return why_access(t, R_OK);
}

int why_try(const struct why_thing *t, struct why_answer *a)
{
	mode_t mode = t->st.st_mode;
	int read, write;

	if (S_ISSOCK(mode)) {
		int r = try_connect(t);

		a->outcome[TRY_CONNECT] = r;
		a->outcome[TRY_READ] = a->outcome[TRY_WRITE] = ENXIO;
		return r < 0 ? r : 0;
	}
	if ((S_ISCHR(mode) || S_ISBLK(mode)) && !t->device) {
		a->outcome[TRY_READ] = a->outcome[TRY_WRITE] = EACCES; /* nodev */
		return 0;
	}
	if (S_ISCHR(mode) && t->st.st_rdev == makedev(5, 0))
		return 0; /* /dev/tty is whatever terminal the command has: tty(4) */
	read = try_read(t);
	write = read < 0 ? read : try_write(t);
	if (write < 0)
		return write;
	a->outcome[TRY_READ] = read;
	a->outcome[TRY_WRITE] = write;
	return 0;
}

int why_try_make(const struct why_thing *dir)
{
	int r = why_access(dir, X_OK);

	if (r)
		return r;
	if (!dir->write)
		return dir->mounts ? EROFS : EACCES;
	return why_access(dir, W_OK);
}

/* --- the word --------------------------------------------------------------------------------- */

static const char *word_for(
	const struct why_answer *a, enum surface_kind surface, bool quarantined, mode_t mode)
{
	int read = a->outcome[TRY_READ], write = a->outcome[TRY_WRITE];

	if (!a->exists && read == EACCES)
		return "closed";
	if (!a->exists)
		return quarantined && a->outcome[TRY_MAKE] == 0 ? "quarantined" : "absent";
	if (S_ISSOCK(mode))
		return a->outcome[TRY_CONNECT] > 0 ? "closed" : "socket";
	if (read == WHY_UNKNOWN && write == WHY_UNKNOWN)
		return "own";
	if (read && write)
		return "closed";
	if (surface == SURFACE_HIDDEN || surface == SURFACE_OUTSIDE)
		return "empty";
	return write == 0 ? "writable" : "read-only";
}

void why_judge(struct why_answer *a, enum surface_kind surface, bool quarantined, mode_t mode)
{
	a->surface = plan_surface_name(surface);
	a->seen = word_for(a, surface, quarantined, mode);
}

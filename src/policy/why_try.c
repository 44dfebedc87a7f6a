/*
 * why_try.c - what the payload may do with a file: its owner, mode and access control list, the mount that it is
 * seen on, and Landlock.
 *
 * Runs in: carrel-policy, outside, as the caller. For one question at a time it takes the payload's ids for files, and gives up
 * its capabilities. It opens files only to look at them (O_PATH).
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "policy/why.h"

/* --- the kernel's word ------------------------------------------------------------------------ */

enum { GROUPS_MAX = 65536 }; /* NGROUPS_MAX of the kernel */

/* What the caller is, while carrel-policy asks as the payload. */
struct caller {
	struct __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3];
	int group_count;
	gid_t groups[GROUPS_MAX];
};

static int set_capabilities(const struct __user_cap_data_struct *data)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static int note_caller(struct caller *ret)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	ret->group_count = getgroups(GROUPS_MAX, ret->groups);
	if (ret->group_count < 0 || syscall(SYS_capget, &header, ret->capabilities) < 0)
		return -errno;
	return 0;
}

/* The permitted capabilities stay, for become_caller(); the kernel asks for the effective ones. See: setfsuid(2). */
static int become_payload(const struct caller *c, const struct why_ids *ids)
{
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

	memcpy(none, c->capabilities, sizeof(none));
	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		none[i].effective = 0;
	if (ids->change) {
		if (setgroups(0, NULL) < 0)
			return -errno;
		(void)setfsgid(ids->gid);
		(void)setfsuid(ids->uid);
		/* setfsuid(2) and setfsgid(2) report no failure. */
		if ((gid_t)setfsgid((gid_t)-1) != ids->gid ||
			(uid_t)setfsuid((uid_t)-1) != ids->uid)
			return -EPERM;
	}
	return set_capabilities(none);
}

/* A failure leaves the process with fewer rights than the caller, and the next question fails. */
static int become_caller(const struct caller *c, const struct why_ids *ids)
{
	int r = set_capabilities(c->capabilities);

	if (r < 0 || !ids->change)
		return r;
	(void)setfsuid(geteuid());
	(void)setfsgid(getegid());
	r = setgroups((size_t)c->group_count, c->groups) < 0 ? -errno : 0;
	/* setfsuid(2) takes capabilities out of the effective set, and puts them back. */
	return r < 0 ? r : set_capabilities(c->capabilities);
}

/* An errno of the kernel's or 0; or -errno: it could not become the payload. */
static int ask(const struct why_ids *ids, int fd, int mode)
{
	static struct caller caller; /* one thread, and no room for it on the stack */
	int r = note_caller(&caller), answer = 0;

	if (r < 0)
		return r;
	r = become_payload(&caller, ids);
	if (r >= 0 && syscall(SYS_faccessat2, fd, "", mode, AT_EACCESS | AT_EMPTY_PATH) < 0)
		answer = errno;
	int restored = become_caller(&caller, ids);
	return r < 0 ? r : restored < 0 ? restored : answer;
}

/*
 * The mount does not map the owner: then the file cannot be written, see inode_permission(). And in an overlay root, who
 * mounted it, has no more right there than others have: capable_wrt_inode_uidgid(), ovl_permission().
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
	if (t->fd < 0)
		return t->refused;
	if (is_strangers(t, mode))
		return EACCES;
	return ask(&t->ids, t->fd, mode);
}

/* --- what is there ---------------------------------------------------------------------------- */

/* Try to open it for writing; in a directory, to make something. */
static int try_write(const struct why_thing *t)
{
	mode_t mode = t->st.st_mode;
	int r = why_access(t, S_ISDIR(mode) ? X_OK : W_OK);

	if (r || t->device)
		return r;
	if (S_ISFIFO(mode)) /* no mount keeps them read-only, only Landlock does */
		return t->write || !t->landlock ? 0 : EACCES;
	if (!t->write) /* the kernel looks at the mode first: open(2) */
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
	/* Without mounts Landlock refuses what is not allowed. */
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

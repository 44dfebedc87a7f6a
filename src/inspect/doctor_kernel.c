/*
 * doctor_kernel.c - namespaces and mounts, tried as the launcher uses them; see doctor.h.
 *
 * Runs in: carrel-inspect; the tries in forked children.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/confine.h"
#include "box/sys.h"
#include "host/machine/container.h"
#include "host/machine/explain.h"
#include "inspect/doctor.h"

static int try_nothing(const struct probe *p)
{
	(void)p;
	return 0;
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECANCELED;
}

static int try_unshare(int flags)
{
	return unshare(flags) < 0 ? -errno : 0;
}

static int try_pid(const struct probe *p)
{
	int r = try_unshare(CLONE_NEWPID);
	pid_t child = r < 0 ? 0 : fork();

	(void)p;
	if (r < 0)
		return r;
	if (child == 0)
		_exit(getpid() == 1 ? 0 : EIO);
	return child < 0 ? -errno : wait_for(child);
}

static int try_ipc(const struct probe *p)
{
	(void)p;
	return try_unshare(CLONE_NEWIPC);
}

static int try_uts(const struct probe *p)
{
	(void)p;
	return try_unshare(CLONE_NEWUTS);
}

static int try_net(const struct probe *p)
{
	int r = try_unshare(CLONE_NEWNET);

	(void)p;
	return r < 0 ? r : confine_loopback();
}

static int try_cgroup(const struct probe *p)
{
	(void)p;
	return try_unshare(CLONE_NEWCGROUP);
}

/* clone3(2) with everything at once: the filters of container run-times refuse this first. */
static int try_clone3(const struct probe *p)
{
	int pidfd = -1;
	struct clone_args args = {
		.flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			CLONE_NEWNET | CLONE_NEWCGROUP | CLONE_PIDFD |
			(p->privileged ? 0 : CLONE_NEWUSER),
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	long pid = sys_clone3(&args);

	if (pid == 0)
		_exit(0);
	return pid < 0 ? (int)pid : wait_for((pid_t)pid);
}

/* --- mounts ----------------------------------------------------------------------------------- */

static int try_mount_api(const struct probe *p)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		.propagation = MS_PRIVATE,
	};
	autofd int tree = sys_open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | AT_RECURSIVE);

	(void)p;
	if (tree < 0)
		return tree;
	int r = sys_mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr);
	autofd int at = fd_open_at(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY, 0);
	if (r >= 0 && at >= 0)
		r = sys_move_mount(tree, at);
	return r < 0 ? r : at < 0 ? at : sys_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr);
}

static int new_mount(const char *type, unsigned attrs)
{
	autofd int fs = sys_fsopen(type);
	int r = fs < 0 ? fs : sys_fsconfig_create(fs);

	return r < 0 ? r : sys_fsmount(fs, attrs);
}

static int try_tmpfs(const struct probe *p)
{
	autofd int tmpfs = new_mount("tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);

	(void)p;
	return tmpfs < 0 ? tmpfs : 0;
}

static int try_devpts(const struct probe *p)
{
	autofd int devpts = new_mount("devpts", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);

	(void)p;
	return devpts < 0 ? devpts : 0;
}

/*
 * Runs in the first process of a new pid namespace. @seal: forbid further user
 * namespaces in @user, or if that is -1 in its own.
 */
static int use_procfs(bool seal, int user)
{
	autofd int proc =
		new_mount("proc", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);

	if (proc < 0 || !seal)
		return proc < 0 ? proc : 0;
	int r = user < 0 ? 0 : confine_enter_user_ns(user);
	if (r < 0)
		return r;
	r = confine_no_nested(proc);
	if (r < 0)
		return r;
	if (unshare(CLONE_NEWUSER) == 0)
		r = -ECANCELED; /* the kernel accepted it, and did not do it */
	return r;
}

static int with_procfs(const struct probe *p, bool seal)
{
	/* Make it before the pid namespace: its maps are found by a pid in the /proc that is there now. */
	autofd int user = seal && p->privileged ? probe_make_user_ns(p, p->uid, p->gid) : -1;

	if (seal && p->privileged && user < 0)
		return user;
	pid_t child = unshare(CLONE_NEWPID) < 0 ? -1 : fork();
	if (child == 0)
		_exit(-use_procfs(seal, user));
	return child < 0 ? -errno : wait_for(child);
}

static int try_procfs(const struct probe *p)
{
	return with_procfs(p, false);
}

static int try_no_nested(const struct probe *p)
{
	return with_procfs(p, true);
}

static int try_idmap(const struct probe *p)
{
	autofd int user = probe_make_user_ns(p, p->uid, p->gid);
	autofd int tree = sys_open_tree(AT_FDCWD, p->path, OPEN_TREE_CLONE | AT_RECURSIVE);

	if (user < 0 || tree < 0)
		return user < 0 ? user : tree;
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (unsigned)user };
	return sys_mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr);
}

/* --- saying it -------------------------------------------------------------------------------- */

bool doctor_follows(struct doctor *d, const char *check, int r)
{
	if (r >= 0 || !d->cause)
		return false;
	findings_add(&d->findings, VERDICT_NOTE, check, NULL, "cannot be, as long as %s fails",
		d->cause);
	return true;
}

static void report_namespace(struct doctor *d, const char *check, int r)
{
	struct error e = { 0 };

	if (doctor_follows(d, check, r))
		return;
	if (r >= 0) {
		findings_add(&d->findings, VERDICT_OK, check, NULL, "can be made");
		return;
	}
	d->cause = check;
	findings_add(&d->findings, VERDICT_FAIL, check, NULL, "refused: %s", strerror(-r));
	(void)!explain_clone(-r, false, &e);
	if (e.hint[0])
		findings_remedy(&d->findings, "%s", e.hint);
}

void doctor_namespaces(struct doctor *d)
{
	static const struct {
		const char *check;
		enum probe_place place;
		int (*try)(const struct probe *p);
	} tries[] = {
		{ "user-namespace", PROBE_USER, try_nothing },
		{ "mount-namespace", PROBE_MOUNTS, try_nothing },
		{ "pid-namespace", PROBE_MOUNTS, try_pid },
		{ "ipc-namespace", PROBE_MOUNTS, try_ipc },
		{ "uts-namespace", PROBE_MOUNTS, try_uts },
		{ "net-namespace", PROBE_MOUNTS, try_net },
		{ "cgroup-namespace", PROBE_MOUNTS, try_cgroup },
		{ "clone3", PROBE_HERE, try_clone3 },
	};

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
		report_namespace(
			d, tries[i].check, probe_run(&d->probe, tries[i].place, tries[i].try));
}

static void report_mount(
	struct doctor *d, const char *check, int r, const char *good, const char *remedy)
{
	if (doctor_follows(d, check, r))
		return;
	if (r >= 0) {
		findings_add(&d->findings, VERDICT_OK, check, NULL, "%s", good);
		return;
	}
	d->cause = check;
	findings_add(&d->findings, VERDICT_FAIL, check, NULL, "refused: %s", strerror(-r));
	findings_remedy(&d->findings, "%s", remedy);
}

/* @shown: the user's name for @path. */
static void check_idmap(struct doctor *d, const char *path, const char *shown, const char *what)
{
	struct probe probe = d->probe;

	if (!path)
		return;
	probe.path = path;
	int r = probe_run(&probe, PROBE_MOUNTS, try_idmap);
	if (doctor_follows(d, "idmapped-mounts", r))
		return;
	if (r >= 0) {
		findings_add(&d->findings, VERDICT_OK, "idmapped-mounts", shown,
			"the file system of the %s has them", what);
		return;
	}
	findings_add(&d->findings, VERDICT_FAIL, "idmapped-mounts", shown,
		"the file system of the %s has none: %s", what, strerror(-r));
	findings_remedy(&d->findings,
		"run carrel as an ordinary user, or put the %s on ext4, xfs or btrfs (tmpfs since Linux 6.3)",
		what);
}

void doctor_mounts(struct doctor *d)
{
	const char *filter = container_is_one()
		? "in a container, allow the calls open_tree, move_mount, "
		  "mount_setattr, fsopen, fsconfig and fsmount: `--security-opt seccomp=unconfined` "
		  "or a profile with them; the kernel has them since 5.12"
		: "a kernel of 5.12 or later, and no system-call filter over this shell that refuses "
		  "open_tree, move_mount, mount_setattr, fsopen, fsconfig or fsmount";
	const struct probe *p = &d->probe;

	report_mount(d, "mount-api", probe_run(p, PROBE_MOUNTS, try_mount_api),
		"mounts can be cloned, made read-only as a tree, and moved", filter);
	report_mount(
		d, "tmpfs", probe_run(p, PROBE_MOUNTS, try_tmpfs), "can be mounted", filter);
	report_mount(
		d, "devpts", probe_run(p, PROBE_MOUNTS, try_devpts), "can be mounted", filter);
	report_mount(d, "procfs", probe_run(p, PROBE_MOUNTS, try_procfs),
		"a new one can be mounted in a new pid namespace",
		"something is mounted over parts of /proc, and then the kernel refuses a new one; a "
		"container that does so is run with `--security-opt unmask=/proc/*` (podman), "
		"`--security-opt systempaths=unconfined` (docker)");
	report_mount(d, "nested-namespaces", probe_run(p, PROBE_MOUNTS, try_no_nested),
		"can be refused inside",
		"see procfs; a kernel without user.max_user_namespaces "
		"(before 4.9) cannot do it");
	if (!p->privileged) {
		findings_add(&d->findings, VERDICT_OK, "idmapped-mounts", NULL,
			"not needed: the caller's own uid is used inside");
		return;
	}
	if (!d->own_workspace)
		check_idmap(d, d->workspace, d->workspace, "workspace");
	check_idmap(d, d->directory, d->base, "scratch base");
}

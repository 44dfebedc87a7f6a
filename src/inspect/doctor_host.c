/*
 * doctor_host.c - the caller, sysctls, security modules, cgroups and the scratch base; see doctor.h.
 *
 * Runs in: carrel-inspect. It only looks, except for one directory of its own in the scratch base.
 */
#include <errno.h>
#include <fcntl.h>
#include <libmount/libmount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "host/cgroup/cgroup_place.h"
#include "inspect/doctor.h"

/* Read a small file, without its last newline; -errno: it cannot be read. */
static int read_line(const char *path, char *ret_text, size_t size)
{
	autofd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	ssize_t n = fd < 0 ? fd : fd_read_file(fd, ret_text, size - 1);

	if (n < 0)
		return (int)n;
	ret_text[strcspn(ret_text, "\n")] = '\0';
	return 0;
}

/* --- the caller ------------------------------------------------------------------------------- */

/* Names of the capabilities that root needs for sessions and does not have. See identity.c. */
static size_t list_missing(char *ret_text, size_t size)
{
	static const cap_value_t needed[] = { CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID, CAP_CHOWN,
		CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_KILL, CAP_NET_ADMIN, CAP_SETPCAP };
	size_t at = 0;
	cap_t own = cap_get_proc();

	ret_text[0] = '\0';
	for (size_t i = 0; own && i < sizeof(needed) / sizeof(needed[0]) && at < size; i++) {
		cap_flag_value_t set = CAP_CLEAR;

		if (cap_get_flag(own, needed[i], CAP_EFFECTIVE, &set) == 0 && set == CAP_SET)
			continue;
		char *name = cap_to_name(needed[i]);
		int n = snprintf(ret_text + at, size - at, " %s", name ? name : "?");
		at += n > 0 ? (size_t)n : 0;
		(void)cap_free(name);
	}
	(void)cap_free(own);
	return at;
}

static void check_identity(struct doctor *d)
{
	char missing[300];

	if (geteuid() != 0) {
		findings_add(&d->findings, VERDICT_OK, "unprivileged-uid", NULL,
			"the caller is not root: the command runs with the caller's uid %u",
			geteuid());
		return;
	}
	if (d->probe.privileged) {
		findings_add(&d->findings, VERDICT_OK, "unprivileged-uid", NULL,
			"root with all capabilities that are needed: the command gets a kernel uid of its own "
			"(%u this time)",
			d->probe.kernel_uid);
		return;
	}
	size_t n = list_missing(missing, sizeof(missing));
	findings_add(&d->findings, VERDICT_FAIL, "unprivileged-uid", NULL, "%s%s",
		n ? "this root lacks" : "only one uid is mapped in this user namespace",
		missing);
	/* In a container the hint of the plan's error names the options that give them. */
	if (!d->planned && d->error.code == ERROR_UNAVAILABLE && d->error.hint[0])
		findings_remedy(&d->findings, "%s", d->error.hint);
	else
		findings_remedy(&d->findings,
			"run carrel as an ordinary user; or give it these; or accept with "
			"--degraded that commands read what only root can");
}

static void check_limits(struct doctor *d)
{
	struct rlimit files;
	size_t needed = d->planned ? d->p.plan.slot_count + 32 : 128;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	bool enough = files.rlim_cur >= needed;
	findings_add(&d->findings, enough ? VERDICT_OK : VERDICT_FAIL, "open-files", NULL,
		"the limit is %llu, a session here needs about %zu",
		(unsigned long long)files.rlim_cur, needed);
	if (!enough)
		findings_remedy(&d->findings, "raise `ulimit -n`");
}

void doctor_caller(struct doctor *d)
{
	check_identity(d);
	check_limits(d);
}

/* --- the machine ------------------------------------------------------------------------------ */

static void check_sysctl(struct doctor *d, const char *name, const char *path, const char *bad,
	const char *costs, const char *remedy)
{
	char value[64];

	if (read_line(path, value, sizeof(value)) < 0)
		return; /* this kernel has no such switch */
	bool refuses = !strcmp(value, bad);
	/* The switches about unprivileged callers do not bind root in the first user namespace. */
	bool matters = refuses && !(d->probe.privileged && strncmp(name, "user.", 5) != 0);

	/* If this is why a namespace is refused, the refusal has named it already. */
	if (matters && d->cause) {
		findings_add(&d->findings, VERDICT_NOTE, "sysctl", name, "%s: %s: why %s fails",
			value, costs, d->cause);
		return;
	}
	findings_add(&d->findings, matters ? VERDICT_FAIL : VERDICT_OK, "sysctl", name,
		"%s%s%s", value, refuses ? ": " : "", refuses ? costs : "");
	if (matters)
		findings_remedy(&d->findings, "%s", remedy);
}

static void check_modules(struct doctor *d)
{
	char modules[512];
	int r = read_line("/sys/kernel/security/lsm", modules, sizeof(modules));

	if (r < 0)
		findings_add(&d->findings, VERDICT_NOTE, "security-modules", NULL,
			"cannot be listed: /sys/kernel/security/lsm: %s", strerror(-r));
	else
		findings_add(&d->findings, VERDICT_OK, "security-modules", NULL, "%s", modules);
}

/* Which limits a session that is started from here can have, as far as a look can tell. */
static void check_cgroup(struct doctor *d)
{
	struct cgroup_place place;
	char names[64], remedy[384];

	if (cgroup_place_find(true, CGROUP_ALL, 0, &place) >= 0) {
		findings_add(&d->findings, VERDICT_OK, "cgroup", place.path,
			"memory, pids and cpus can be limited here");
		fd_close(&place.dir);
		return;
	}
	cgroup_name_controllers(
		place.lack == CGROUP_LACK_CONTROLLERS ? place.lacking : CGROUP_ALL, names,
		sizeof(names));
	findings_add(&d->findings, VERDICT_NOTE, "cgroup", *place.path ? place.path : NULL,
		"no group can hold %s: %s; pids is held by an rlimit instead", names,
		cgroup_lack_text(place.lack));
	cgroup_remedy(&place, remedy, sizeof(remedy));
	if (*remedy)
		findings_remedy(&d->findings, "%s", remedy);
}

void doctor_machine(struct doctor *d)
{
	check_sysctl(d, "user.max_user_namespaces", "/proc/sys/user/max_user_namespaces", "0",
		"no user namespaces", "as root, `sysctl -w user.max_user_namespaces=15000`");
	check_sysctl(d, "kernel.unprivileged_userns_clone",
		"/proc/sys/kernel/unprivileged_userns_clone", "0",
		"no user namespaces for ordinary users",
		"as root, `sysctl -w kernel.unprivileged_userns_clone=1`");
	check_sysctl(d, "kernel.apparmor_restrict_unprivileged_userns",
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
		"user namespaces of ordinary users have no capabilities",
		"install an AppArmor profile for carrel with `userns,`, or as root "
		"`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`");
	check_modules(d);
	check_cgroup(d);
}

/* --- the scratch base ------------------------------------------------------------------------- */

static void check_mount(struct doctor *d)
{
	struct libmnt_table *mounts = mnt_new_table_from_file("/proc/self/mountinfo");
	struct libmnt_fs *fs =
		mounts ? mnt_table_find_mountpoint(mounts, d->base, MNT_ITER_BACKWARD) : NULL;
	const char *options = fs ? mnt_fs_get_vfs_options(fs) : NULL;
	struct statvfs space;
	char size[32];

	if (!fs || statvfs(d->base, &space) < 0) {
		findings_add(&d->findings, VERDICT_FAIL, "scratch-base", d->base,
			"cannot be looked at: %s", strerror(errno));
		mnt_unref_table(mounts);
		return;
	}
	bool noexec = options && mnt_optstr_get_option(options, "noexec", NULL, NULL) == 0;
	uint64_t free_mib = (uint64_t)space.f_bavail * space.f_frsize >> 20;
	text_format_size(free_mib << 20 ? free_mib << 20 : 1, size, sizeof(size));
	bool tight = free_mib < 256;
	findings_add(&d->findings,
		noexec || tight || mnt_fs_is_netfs(fs) ? VERDICT_WARN : VERDICT_OK,
		"scratch-base", d->base, "%s, %s free%s%s%s", mnt_fs_get_fstype(fs),
		free_mib ? size : "nothing", tight ? ": little for a build" : "",
		noexec ? "; noexec: what tools build in their TMPDIR cannot be executed" : "",
		mnt_fs_is_netfs(fs) ? "; a network file system: slow, and locks may not hold"
				    : "");
	if (noexec || tight || mnt_fs_is_netfs(fs))
		findings_remedy(&d->findings, "name another place with --scratch-base");
	mnt_unref_table(mounts);
}

static void check_use(struct doctor *d)
{
	struct stat st;

	if (d->held < 0) {
		findings_add(&d->findings, VERDICT_FAIL, "scratch-base", d->base,
			"no session directory can be made and locked in it: %s",
			strerror(-d->held));
		findings_remedy(
			&d->findings, "name a directory of your own with --scratch-base");
		return;
	}
	if (stat(d->base, &st) == 0 && (st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX)) {
		findings_add(&d->findings, VERDICT_FAIL, "scratch-base", d->base,
			"everybody can rename what is made in it: it is not sticky");
		findings_remedy(&d->findings,
			"as root, `chmod +t` it, or name another place with "
			"--scratch-base");
		return;
	}
	findings_add(&d->findings, VERDICT_OK, "scratch-base", d->base,
		"session directories can be made and locked");
}

void doctor_scratch(struct doctor *d)
{
	check_mount(d);
	check_use(d);
}

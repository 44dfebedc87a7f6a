/*
 * cgroup_explain.c - why limits cannot be had here, and the command that would give them.
 *
 * Runs in: the launcher and carrel-inspect, outside, once something has failed. What is looked at here
 * chooses words, never what is done.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/cgroup/cgroup_place.h"

static bool exists(const char *path)
{
	return faccessat(AT_FDCWD, path, F_OK, 0) == 0;
}

static bool has_systemd(void)
{
	return exists("/run/systemd/system"); /* sd_booted(3) */
}

/* Whether the user's own service manager, which can delegate to its user, is running. */
static bool has_user_manager(void)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/run/user/%u/systemd", (unsigned)geteuid());
	return exists(path);
}

static bool in_container(void)
{
	return exists("/.dockerenv") || exists("/run/.containerenv") ||
		exists("/run/systemd/container");
}

/* Whether a hierarchy of version 1 holds a controller: it cannot lend it to version 2 then. */
static bool held_by_v1(unsigned lacking)
{
	return ((lacking & CGROUP_MEMORY) && exists("/sys/fs/cgroup/memory/cgroup.procs")) ||
		((lacking & CGROUP_PIDS) && exists("/sys/fs/cgroup/pids/cgroup.procs")) ||
		((lacking & CGROUP_CPU) &&
			(exists("/sys/fs/cgroup/cpu/cgroup.procs") ||
				exists("/sys/fs/cgroup/cpu,cpuacct")));
}

static void remedy_controllers(const struct cgroup_place *place, char *ret_text, size_t size)
{
	if (held_by_v1(place->lacking))
		(void)snprintf(ret_text, size,
			"cgroup v1 holds them on this machine: boot with "
			"`systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all`");
	else if (has_systemd() && !in_container())
		(void)snprintf(ret_text, size,
			"as root, `mkdir -p /etc/systemd/system/user@.service.d && printf "
			"'[Service]\\nDelegate=cpu memory pids\\n' > "
			"/etc/systemd/system/user@.service.d/carrel.conf && systemctl "
			"daemon-reload`, and log in again");
	else
		(void)snprintf(ret_text, size,
			"%.200s must hand them down: as root, `echo +memory +pids +cpu > "
			"cgroup.subtree_control` in each group above it",
			place->path);
}

static void remedy_rights(char *ret_text, size_t size)
{
	if (in_container())
		(void)snprintf(ret_text, size,
			"give the container its cgroup: `podman run --security-opt "
			"unmask=/sys/fs/cgroup`, `docker run --privileged`; or limit the "
			"container itself");
	else if (geteuid() == 0 && has_systemd())
		(void)snprintf(ret_text, size,
			"`systemd-run --scope -p Delegate=yes -- carrel run ...`");
	else if (has_user_manager())
		(void)snprintf(ret_text, size,
			"`systemd-run --user --scope -p Delegate=yes -- carrel run ...`");
	else if (has_systemd())
		(void)snprintf(ret_text, size,
			"as root, `loginctl enable-linger %u`; then `XDG_RUNTIME_DIR=/run/user/%u "
			"systemd-run --user --scope -p Delegate=yes -- carrel run ...`",
			(unsigned)geteuid(), (unsigned)geteuid());
	else
		(void)snprintf(ret_text, size,
			"as root, `d=/sys/fs/cgroup/user-%u; mkdir $d && chown %u $d "
			"$d/cgroup.procs $d/cgroup.subtree_control && echo %d > $d/cgroup.procs`, "
			"where the last number is your shell's",
			(unsigned)geteuid(), (unsigned)geteuid(), (int)getppid());
}

void cgroup_remedy(const struct cgroup_place *place, char *ret_text, size_t size)
{
	ret_text[0] = '\0';
	switch (place->lack) {
	case CGROUP_LACK_NOTHING:
		return;
	case CGROUP_LACK_MOUNT:
		(void)snprintf(ret_text, size,
			"as root, `mount -t cgroup2 none /sys/fs/cgroup`; in a container, run it "
			"with a cgroup namespace of its own (--cgroupns=private)");
		return;
	case CGROUP_LACK_VIEW:
		(void)snprintf(ret_text, size,
			"in a container, run it with a cgroup namespace of its own "
			"(--cgroupns=private)");
		return;
	case CGROUP_LACK_CONTROLLERS:
		remedy_controllers(place, ret_text, size);
		return;
	case CGROUP_LACK_WRITABLE:
	case CGROUP_LACK_RIGHTS:
	case CGROUP_LACK_ROOM:
		remedy_rights(ret_text, size);
		return;
	}
}

const char *cgroup_lack_text(enum cgroup_lack lack)
{
	static const char *const texts[] = {
		[CGROUP_LACK_NOTHING] = "",
		[CGROUP_LACK_MOUNT] = "no cgroup v2 is mounted here",
		[CGROUP_LACK_VIEW] = "the cgroup of this process cannot be seen here",
		[CGROUP_LACK_WRITABLE] = "the cgroups here are mounted read-only",
		[CGROUP_LACK_RIGHTS] = "no cgroup is delegated to this user",
		[CGROUP_LACK_CONTROLLERS] = "the controller is not handed down",
		[CGROUP_LACK_ROOM] = "processes that cannot be moved are in the way",
	};

	return texts[lack];
}

int cgroup_explain(const struct cgroup_place *place, unsigned need, int errnum, struct error *e)
{
	char names[64], remedy[384];
	unsigned lacking = place->lack == CGROUP_LACK_CONTROLLERS && place->lacking
		? place->lacking
		: need;

	cgroup_name_controllers(lacking, names, sizeof(names));
	bool adds_errno =
		place->lack == CGROUP_LACK_WRITABLE || place->lack == CGROUP_LACK_RIGHTS;
	(void)error_set(e, ERROR_UNAVAILABLE, "launch", adds_errno ? errnum : 0,
		*place->path ? place->path : NULL, "%s cannot be limited: %s", names,
		cgroup_lack_text(place->lack));
	cgroup_remedy(place, remedy, sizeof(remedy));
	if (*remedy)
		error_hint(e, "%s", remedy);
	return -errnum;
}

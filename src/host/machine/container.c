/*
 * container.c - see container.h.
 *
 * Runs in: the launcher, outside. The options were found by trying: tests/container.
 */
#include "host/machine/container.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

bool container_is_one(void)
{
	return access("/run/.containerenv", F_OK) == 0 || access("/.dockerenv", F_OK) == 0;
}

/*
 * Whether something is mounted over a part of /proc: then the kernel refuses a new one in a user
 * namespace, which would show that part (mount_too_revealing()).
 */
static bool proc_is_masked(void)
{
	/* "id parent major:minor root mountpoint ...": a mount point is all that follows a space. */
	static const char below[] = " /proc/";
	char buffer[512];
	size_t matched = 0;
	autofd int fd = fd_open_at(AT_FDCWD, "/proc/self/mountinfo", O_RDONLY, 0);

	for (ssize_t n; fd >= 0 && (n = read(fd, buffer, sizeof(buffer))) > 0;)
		for (ssize_t i = 0; i < n; i++) {
			matched = buffer[i] == below[matched] ? matched + 1
							      : buffer[i] == below[0];
			if (!below[matched])
				return true;
		}
	return false;
}

/*
 * Whether AppArmor confines this process: docker's own profile refuses mounts whatever the
 * system-call filter says.
 */
static bool is_apparmor_confined(void)
{
	char text[128];
	autofd int fd = fd_open_at(AT_FDCWD, "/proc/self/attr/apparmor/current", O_RDONLY, 0);
	ssize_t n = fd < 0 ? fd : read(fd, text, sizeof(text));

	return n > 0 && strncmp(text, "unconfined", strlen("unconfined")) != 0;
}

bool container_is_rootless(void)
{
	char text[128];
	uint32_t inside, outside, count;
	autofd int fd = fd_open_at(AT_FDCWD, "/proc/self/uid_map", O_RDONLY, 0);
	ssize_t n = fd < 0 ? fd : fd_read_file(fd, text, sizeof(text) - 1);

	return n > 0 && sscanf(text, "%u %u %u", &inside, &outside, &count) == 3 &&
		count != UINT32_MAX;
}

struct options {
	char text[160];
};

static void add_option(struct options *o, bool wanted, const char *option)
{
	size_t used = strlen(o->text);

	if (wanted)
		(void)snprintf(o->text + used, sizeof(o->text) - used, "%s%s", used ? " " : "",
			option);
}

void container_hint(enum container_need need, bool live, struct error *e)
{
	struct options docker = { "" }, podman;

	if (!container_is_one())
		return;
	bool masked = need == CONTAINER_PROC || proc_is_masked();
	add_option(&docker, need == CONTAINER_UID, "--user 1000:1000");
	podman = docker;
	/* Docker's filter refuses namespaces to all but CAP_SYS_ADMIN; podman's leaves it to the kernel. */
	add_option(&docker, need != CONTAINER_PROC, "--security-opt seccomp=unconfined");
	add_option(&podman, need == CONTAINER_NAMESPACES, "--security-opt seccomp=unconfined");
	add_option(&docker, is_apparmor_confined(), "--security-opt apparmor=unconfined");
	add_option(&podman, is_apparmor_confined(), "--security-opt apparmor=unconfined");
	add_option(&docker, masked, "--security-opt systempaths=unconfined");
	add_option(&podman, masked, "--security-opt unmask=ALL");
	e->hint[0] = '\0';
	error_hint(e, "start the container with `%s` (docker) or `%s` (podman)%s%s",
		docker.text, podman.text,
		need == CONTAINER_UID && !container_is_rootless()
			? ", or root with `--cap-add SYS_ADMIN --cap-add NET_ADMIN`"
			: "",
		!live || (need == CONTAINER_UID && !masked)
			? ", or accept fewer walls with --degraded"
			: "");
}

/*
 * uid_maps.c - see uid_maps.h.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#include "host/process/uid_maps.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"

static int write_text(int dir, const char *name, const char *text)
{
	autofd int fd = fd_open_at(dir, name, O_WRONLY, 0);

	return fd < 0 ? fd : fd_write_all(fd, text, strlen(text));
}

int uid_maps_write(pid_t pid, bool deny_setgroups, uint32_t uid, uint32_t kernel_uid,
	uint32_t gid, uint32_t kernel_gid)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "/proc/%d", (int)pid);
	autofd int dir = fd_open_at(AT_FDCWD, text, O_PATH | O_DIRECTORY, 0);
	if (dir < 0)
		return dir;
	int r = deny_setgroups ? write_text(dir, "setgroups", "deny") : 0;
	(void)snprintf(text, sizeof(text), "%u %u 1\n", gid, kernel_gid);
	if (r >= 0)
		r = write_text(dir, "gid_map", text);
	(void)snprintf(text, sizeof(text), "%u %u 1\n", uid, kernel_uid);
	return r < 0 ? r : write_text(dir, "uid_map", text);
}

/*
 * cgroup_locate.c - where the hierarchy of cgroup v2 is mounted, and where in it this process is.
 *
 * Runs in: the launcher and carrel-inspect, outside. Reads two files of /proc, changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "host/cgroup/cgroup_place.h"
#include "plan/path.h"

#define SELF_MAX ((size_t)8192)
#define MOUNTINFO_MAX ((size_t)16 << 20)

/* Octal escapes of proc(5) (\040 is a space), in place. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		bool escaped = from[0] == '\\' && from[1] >= '0' && from[1] <= '3' &&
			from[2] >= '0' && from[2] <= '7' && from[3] >= '0' && from[3] <= '7';

		*to = escaped
			? (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'))
			: *from;
		from += escaped ? 4 : 1;
	}
	*to = '\0';
}

/* The next word of a line, terminated; NULL at its end. */
static char *next_word(char **at)
{
	char *word = *at;

	if (!word || !*word)
		return NULL;
	char *end = strchr(word, ' ');
	if (end)
		*end++ = '\0';
	*at = end;
	return word;
}

/* One line of mountinfo: where it is mounted and which part of the tree, if it is cgroup v2. */
static bool read_mount(char *line, char **ret_root, char **ret_mount)
{
	char *at = line, *word;

	for (int i = 0; i < 3; i++)
		if (!next_word(&at))
			return false;
	*ret_root = next_word(&at);
	*ret_mount = next_word(&at);
	do
		word = next_word(&at);
	while (word && strcmp(word, "-") != 0);
	word = next_word(&at);
	if (!word || strcmp(word, "cgroup2") != 0)
		return false;
	unescape(*ret_root);
	unescape(*ret_mount);
	return true;
}

/* "0::/a/b" in /proc/self/cgroup. */
static bool read_own(const char *self_cgroup, char *ret, size_t size)
{
	const char *line = self_cgroup;

	while (line && strncmp(line, "0::", 3) != 0) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (!line)
		return false;
	size_t length = strcspn(line + 3, "\n");
	if (length >= size || line[3] != '/')
		return false;
	memcpy(ret, line + 3, length);
	ret[length] = '\0';
	return true;
}

int cgroup_locate(char *mountinfo, const char *self_cgroup, struct cgroup_location *ret)
{
	char own[CGROUP_PATH_MAX], *root, *mount;
	int r = -ENODEV;

	if (!read_own(self_cgroup, own, sizeof(own)))
		return -ENODEV;
	for (char *line = mountinfo; *line;) {
		size_t length = strcspn(line, "\n");
		char *next = line + length + (line[length] == '\n');

		line[length] = '\0';
		if (read_mount(line, &root, &mount) && strlen(mount) < sizeof(ret->mount)) {
			/* A path outside of this namespace's part of the tree begins with "/..". */
			const char *below = strncmp(root, "/..", 3) && strncmp(own, "/..", 3)
				? path_below(root, own)
				: NULL;

			r = -EXDEV;
			if (below) {
				(void)snprintf(ret->mount, sizeof(ret->mount), "%s", mount);
				(void)snprintf(ret->own, sizeof(ret->own), "%s%s",
					*below ? "/" : "", below);
				return 0;
			}
		}
		line = next;
	}
	return r;
}

/* A file of /proc into @text. Its length or -errno. */
static ssize_t read_whole(const char *path, char *ret_text, size_t size)
{
	autofd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);

	return fd < 0 ? fd : fd_read_file(fd, ret_text, size - 1);
}

int cgroup_location_read(struct cgroup_location *ret)
{
	char *text = malloc(SELF_MAX + MOUNTINFO_MAX); /* pages are taken as they are touched */

	if (!text)
		return -ENOMEM;
	ssize_t n = read_whole("/proc/self/cgroup", text, SELF_MAX);
	if (n == -ENOENT)
		n = -ENODEV; /* a kernel without cgroups */
	if (n >= 0)
		n = read_whole("/proc/self/mountinfo", text + SELF_MAX, MOUNTINFO_MAX);
	int r = n < 0 ? (int)n : cgroup_locate(text + SELF_MAX, text, ret);
	free(text);
	return r;
}

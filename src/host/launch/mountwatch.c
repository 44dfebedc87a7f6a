/*
 * mountwatch.c - see mountwatch.h.
 *
 * Runs in: S.
 */
#include "host/launch/mountwatch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

enum { MOUNTINFO_MAX = 8 << 20 }; /* thousands of mounts of the host are in it as well */

int mountwatch_open(pid_t init)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)init);
	int fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	return fd == -EINVAL || fd == -EACCES ? -ENOENT : fd;
}

/* Whether the escaped field (space, tab, newline, backslash as \ooo: proc(5)) is @path. */
static bool field_is(const char *field, size_t size, const char *path)
{
	size_t i = 0;

	for (; *path && i < size; path++) {
		unsigned char c = (unsigned char)field[i];

		if (c == '\\' && i + 3 < size) {
			c = (unsigned char)((field[i + 1] - '0') << 6 |
				(field[i + 2] - '0') << 3 | (field[i + 3] - '0'));
			i += 3;
		}
		if (c != (unsigned char)*path)
			return false;
		i++;
	}
	return !*path && i == size;
}

static bool is_mounted(const char *text, const char *path)
{
	for (const char *line = text; *line;) {
		const char *field = line;
		const char *end = strchrnul(line, '\n');

		/* id, parent, device, root, then the mount point */
		for (int i = 0; i < 4 && field; i++) {
			field = memchr(field, ' ', (size_t)(end - field));
			field = field ? field + 1 : NULL;
		}
		if (field && field_is(field, strcspn(field, " \n"), path))
			return true;
		line = *end ? end + 1 : end;
	}
	return false;
}

/* *@ret_path: the first place where nothing is mounted any more, or NULL. 0 or -errno. */
static int find_missing(int fd, const struct plan *plan, const char **ret_path)
{
	char *text = mmap(NULL, MOUNTINFO_MAX + 1, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (text == MAP_FAILED)
		return -errno;
	int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
	ssize_t n = r < 0 ? r : fd_read_file(fd, text, MOUNTINFO_MAX);
	const char *missing = NULL;
	for (size_t i = 0; n >= 0 && i < plan->op_count && !missing; i++)
		if (plan->ops[i].kind == OP_ATTACH && !is_mounted(text, plan->ops[i].path))
			missing = plan->ops[i].path;
	(void)munmap(text, MOUNTINFO_MAX + 1);
	if (n < 0)
		return (int)n;
	*ret_path = missing;
	return 0;
}

bool mountwatch_lost(int fd, const struct plan *plan, struct error *e)
{
	const char *missing = NULL;
	int r = find_missing(fd, plan, &missing);

	/* EINVAL: init has ended; its last record says more. */
	if (r == -EINVAL || (r >= 0 && !missing))
		return false;
	if (r < 0) {
		(void)error_set(e, ERROR_LAYER, "supervise", -r, NULL,
			"the session was ended: its mounts cannot be read");
		return true;
	}
	(void)error_set(e, ERROR_LAYER, "supervise", 0, missing,
		"the session was ended: a mount of it was removed from outside");
	error_hint(e, "this path was replaced on the host while the session ran");
	return true;
}

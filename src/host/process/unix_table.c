/*
 * unix_table.c - see unix_table.h.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#include "host/process/unix_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

enum {
	BLOCK = 2048,
	TABLE_MAX = 64 << 20
}; /* bytes: read at once, and of all: some 600,000 sockets */

/*
 * "Num: RefCount Protocol Flags Type St Inode Path": a path of the file system begins with '/'. A stream (type 1, 5)
 * that does not listen (flag __SO_ACCEPTCON) takes no connection; a datagram socket (2) takes what is sent.
 * Returns the path, which ends with the line, or NULL.
 */
static char *path_of(char *line)
{
	unsigned long flags = 0, type = 0;
	char *at = line;

	for (unsigned column = 0; column < 7; column++) {
		at += strcspn(at, " ");
		at += strspn(at, " ");
		if (column == 2)
			flags = strtoul(at, NULL, 16);
		else if (column == 3)
			type = strtoul(at, NULL, 16);
	}
	return *at == '/' && ((flags & 0x10000) || type == 2) ? at : NULL;
}

/* Take the whole lines of @text[0..*used). The rest of the last one is moved to the front. */
static int take_lines(char *text, size_t *used, unix_table_fn take, void *context)
{
	char *line = text, *end;
	int r = 0;

	while (r >= 0 && (end = memchr(line, '\n', *used - (size_t)(line - text)))) {
		*end = '\0';
		char *path = path_of(line);

		if (path)
			r = take(context, path);
		line = end + 1;
	}
	*used -= (size_t)(line - text);
	memmove(text, line, *used);
	return r;
}

int unix_table_read(unix_table_fn take, void *context)
{
	autofd int fd = fd_open_at(AT_FDCWD, "/proc/self/net/unix", O_RDONLY, 0);
	char text[BLOCK];
	size_t used = 0, all = 0;

	if (fd < 0)
		return fd;
	for (;;) {
		ssize_t n = read(fd, text + used, sizeof(text) - used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		used += (size_t)n;
		all += (size_t)n;
		int r = take_lines(text, &used, take, context);
		if (r < 0)
			return r;
		if (all > TABLE_MAX || used == sizeof(text))
			return -EFBIG;
	}
}

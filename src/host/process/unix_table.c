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

#include "base/fd.h"

enum { TABLE_MAX = 4 << 20 }; /* bytes of it that are read: some 40,000 sockets */

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

static int take_lines(char *text, unix_table_fn take, void *context)
{
	int r = 0;

	for (char *line = text, *end; r >= 0 && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		char *path = path_of(line);

		if (path)
			r = take(context, path);
	}
	return r;
}

int unix_table_read(unix_table_fn take, void *context)
{
	autofd int fd = fd_open_at(AT_FDCWD, "/proc/self/net/unix", O_RDONLY, 0);
	char *text = fd < 0 ? NULL : malloc(TABLE_MAX + 1);
	ssize_t n = fd < 0 ? fd : text ? fd_read_file(fd, text, TABLE_MAX) : -ENOMEM;
	int r = n < 0 ? (int)n : take_lines(text, take, context);

	free(text);
	return r;
}

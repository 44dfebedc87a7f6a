/*
 * proc_text.c - see proc_text.h.
 *
 * Runs in: the coverer's child.
 */
#include "host/cover/proc_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

enum { TEXT_MAX = 64 << 20 }; /* address space: only the pages that are read into use memory */

static int open_file(int proc, pid_t pid, const char *name, int flags)
{
	char path[96];

	if (snprintf(path, sizeof(path), "%d/%s", (int)pid, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return fd_open_at(proc, path, flags, 0);
}

ssize_t proc_read(int proc, pid_t pid, const char *name, char *ret, size_t size)
{
	autofd int fd = open_file(proc, pid, name, O_RDONLY);
	ssize_t n = fd < 0 ? fd : fd_read_up_to(fd, ret, size - 1);

	if (n >= 0)
		ret[n] = '\0';
	return n;
}

int proc_read_all(int proc, pid_t pid, const char *name, char **ret_text)
{
	autofd int fd = open_file(proc, pid, name, O_RDONLY);

	*ret_text = NULL;
	if (fd < 0)
		return fd;
	char *text = mmap(NULL, TEXT_MAX, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (text == MAP_FAILED)
		return -errno;
	ssize_t n = fd_read_up_to(fd, text, TEXT_MAX);
	if (n < 0 || n == TEXT_MAX) {
		(void)munmap(text, TEXT_MAX);
		return n < 0 ? (int)n : -EFBIG;
	}
	*ret_text = text; /* the mapping is zero behind what was read */
	return 0;
}

void proc_text_free(char *text)
{
	if (text)
		(void)munmap(text, TEXT_MAX);
}

int proc_stat_read(int proc, pid_t pid, struct proc_stat *ret)
{
	char text[PROC_TEXT_MAX];
	ssize_t n = proc_read(proc, pid, "stat", text, sizeof(text));

	if (n < 0)
		return (int)n;
	/* pid (name) state ppid pgrp session tty tpgid flags; the name may hold parentheses */
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	if (!open || !close || close < open)
		return -EPROTO;
	size_t length = (size_t)(close - open - 1);
	if (length >= sizeof(ret->name))
		length = sizeof(ret->name) - 1;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->name, open + 1, length);
	if (sscanf(close + 1, " %c %*d %*d %*d %*d %*d %u", &ret->state, &ret->flags) != 2)
		return -EPROTO;
	n = proc_read(proc, pid, "status", text, sizeof(text));
	const char *line = n < 0 ? NULL : strstr(text, "\nTgid:");
	ret->process = line ? (pid_t)strtol(line + sizeof("\nTgid:") - 1, NULL, 10) : pid;
	return n < 0 ? (int)n : 0;
}

int proc_each(int proc, pid_t pid, const char *name, int (*call)(void *context, pid_t number),
	void *context)
{
	int fd = open_file(proc, pid, name, O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		int fault = fd < 0 ? fd : -errno;

		fd_close(&fd);
		return fault;
	}
	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		char *end;
		long number = strtol(entry->d_name, &end, 10);

		if (!*end && end != entry->d_name)
			r = call(context, (pid_t)number);
	}
	if (r == 0 && errno)
		r = -errno;
	(void)closedir(dir);
	return r;
}

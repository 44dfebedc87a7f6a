/*
 * mountwatch.c - see mountwatch.h.
 *
 * Runs in: S, and the coverer's child.
 */
#include "host/cover/mountwatch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

enum { FIRST_SIZE = 64 << 10 };

int mountwatch_open(pid_t init)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)init);
	int fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	return fd == -EINVAL || fd == -EACCES ? -ENOENT : fd;
}

/* Is the escaped field (space, tab, newline and backslash as \ooo: proc(5)) @path? */
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

bool mountwatch_table_has(const struct mountwatch_table *table, const char *path)
{
	for (const char *line = table->text; *line;) {
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

void mountwatch_table_free(struct mountwatch_table *table)
{
	if (table->text)
		(void)munmap(table->text, table->size);
	table->text = NULL;
}

/* Read the whole file. Its bytes; -EFBIG: @size has no room for it and a NUL; or -errno. */
static ssize_t read_into(int fd, char *text, size_t size)
{
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	ssize_t n = fd_read_up_to(fd, text, size);
	return n == (ssize_t)size ? -EFBIG : n;
}

int mountwatch_table_read(int fd, struct mountwatch_table *ret)
{
	*ret = (struct mountwatch_table){ .size = FIRST_SIZE };
	for (;;) {
		ret->text = mmap(NULL, ret->size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (ret->text == MAP_FAILED) {
			ret->text = NULL;
			return -errno;
		}
		ssize_t n = read_into(fd, ret->text, ret->size);
		if (n >= 0)
			return 0;
		mountwatch_table_free(ret);
		if (n != -EFBIG)
			return (int)n;
		ret->size *= 4;
	}
}

int mountwatch_missing(int fd, const struct plan *plan, const char **ret_path)
{
	struct mountwatch_table table;
	int r = mountwatch_table_read(fd, &table);

	*ret_path = NULL;
	if (r < 0)
		return r;
	for (size_t i = 0; i < plan->op_count && !*ret_path; i++)
		if (plan->ops[i].kind == OP_ATTACH &&
			!mountwatch_table_has(&table, plan->ops[i].path))
			*ret_path = plan->ops[i].path;
	mountwatch_table_free(&table);
	return 0;
}

bool mountwatch_lost(int fd, const struct plan *plan, struct error *e)
{
	const char *missing = NULL;
	int r = mountwatch_missing(fd, plan, &missing);

	/* EINVAL: init has ended; its last record says more. */
	if (r == -EINVAL || (r >= 0 && !missing))
		return false;
	if (r < 0) {
		(void)error_set(e, ERROR_UNAVAILABLE, "supervise", -r, NULL,
			"the session was ended: its mounts cannot be read");
		return true;
	}
	(void)error_set(e, ERROR_UNAVAILABLE, "supervise", 0, missing,
		"the session was ended: a mount of it was removed from outside");
	error_hint(e, "this path was replaced on the host while the session ran");
	return true;
}

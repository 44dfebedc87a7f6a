/*
 * census.c - see census.h.
 *
 * Runs in: the supervisor (host side), on trees that tools wrote.
 */
#include "host/tree/census.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fd.h"
#include "host/tree/beneath.h"

enum {
	BUFFER_BYTES = 8 << 10,
	CLOCK_EVERY = 256, /* entries between two looks at the clock */
};

struct walk {
	struct census found;
	uint64_t entries;
	int64_t until_ms;
	int depth;
	struct beneath_list levels[CENSUS_MAX_DEPTH];
	char (*buffers)
		[BUFFER_BYTES]; /* one for each level; pages are taken as they are touched */
};

static int64_t now_ms(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* exists on every Linux */
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_over(struct walk *w)
{
	w->entries++;
	if (w->entries > CENSUS_MAX_ENTRIES ||
		(w->entries % CLOCK_EVERY == 0 && now_ms() > w->until_ms))
		w->found.truncated = true;
	else
		return false;
	return true;
}

static void push_level(struct walk *w, int fd)
{
	w->depth++;
	w->levels[w->depth] = (struct beneath_list){
		.fd = fd, .buffer = w->buffers[w->depth], .size = BUFFER_BYTES
	};
}

static void descend(struct walk *w, const char *name)
{
	int fd = -ELOOP;

	if (w->depth + 1 < CENSUS_MAX_DEPTH)
		fd = beneath_open(w->levels[w->depth].fd, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW, BENEATH_SAME_MOUNT);
	if (fd < 0)
		w->found.truncated =
			true; /* too deep, locked, a mount, gone: all not counted */
	else
		push_level(w, fd);
}

static void count_entry(struct walk *w, const struct beneath_entry *entry)
{
	int dirfd = w->levels[w->depth].fd;
	struct stat st;

	if (entry->type == DT_DIR) {
		descend(w, entry->name);
		return;
	}
	if (entry->type != DT_REG && entry->type != DT_UNKNOWN)
		return;
	if (fstatat(dirfd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		w->found.truncated = true;
	} else if (S_ISREG(st.st_mode)) {
		w->found.files++;
		w->found.bytes += (uint64_t)st.st_size;
	} else if (S_ISDIR(st.st_mode)) {
		descend(w, entry->name);
	}
}

static void count_all(struct walk *w)
{
	while (w->depth >= 0) {
		struct beneath_entry *entry;
		int r = beneath_next(&w->levels[w->depth], &entry);

		w->found.truncated = w->found.truncated || r < 0;
		if (r <= 0)
			fd_close(&w->levels[w->depth--].fd);
		else if (is_over(w))
			break;
		else
			count_entry(w, entry);
	}
	while (w->depth >= 0)
		fd_close(&w->levels[w->depth--].fd);
}

int census_tree(int parent_fd, const char *name, int max_ms, struct census *ret)
{
	const size_t size = (size_t)CENSUS_MAX_DEPTH * BUFFER_BYTES;
	struct walk w = { .until_ms = now_ms() + max_ms, .depth = -1 };

	if (!beneath_is_name(name) && strcmp(name, ".") != 0)
		return -EINVAL;
	autofd int fd = beneath_open(
		parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, BENEATH_SAME_MOUNT);
	if (fd < 0)
		return fd;
	w.buffers = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w.buffers == MAP_FAILED)
		return -ENOMEM;
	push_level(&w, take_fd(&fd));
	count_all(&w);
	(void)munmap(w.buffers, size);
	*ret = w.found;
	return 0;
}

/*
 * quarantine_tree.c - see quarantine_tree.h.
 *
 * Runs in: the supervisor (host side), on what tools left at protected paths.
 */
#include "host/quarantine_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/beneath.h"
#include "host/copy.h"

enum {
	LEVELS = 24,
	BUFFER_BYTES = 8 << 10,
	MAX_ENTRIES = 100000, /* of one disarming; a copy has no such bound */
};

struct level {
	int from_fd;
	int to_fd; /* -1 when disarming */
	uint32_t at, end;
};

/* Memory of one walk; mapped, because it is too much for the stack. */
struct space {
	char buffers[LEVELS][BUFFER_BYTES];
	char link[PATH_MAX + 1];
};

struct walk {
	bool copying;
	int depth;
	int error; /* disarming goes on after the first */
	uint64_t entries;
	uint64_t dropped;
	struct space *space;
	struct level levels[LEVELS];
};

/* --- files --------------------------------------------------------------------------------- */

static int copy_file(int from_fd, const char *name, int to_fd, const char *new_name)
{
	struct stat st;
	autofd int from = beneath_open_file(from_fd, name);

	if (from < 0)
		return from;
	if (fstat(from, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ESTALE; /* it was one a moment ago */
	autofd int to =
		fd_open_at(to_fd, new_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (to < 0)
		return to;
	int result = copy_contents(from, to, st.st_size, NULL);
	if (result < 0)
		return result;
	const struct timespec times[2] = { st.st_atim, st.st_mtim };
	if (fchmod(to, st.st_mode & 0600) < 0 || futimens(to, times) < 0 || fsync(to) < 0)
		return -errno;
	return 0;
}

static int copy_link(
	struct walk *w, int from_fd, const char *name, int to_fd, const char *new_name)
{
	ssize_t n = readlinkat(from_fd, name, w->space->link, PATH_MAX);

	if (n < 0)
		return -errno;
	w->space->link[n] = '\0';
	return symlinkat(w->space->link, to_fd, new_name) < 0 ? -errno : 0;
}

/* Puts a copy, which has no other name, in the place of the file @name. */
static int replace_by_copy(int dirfd, const char *name)
{
	uint64_t random;
	char fresh[32];
	int result = fd_random(&random, sizeof(random));

	if (result < 0)
		return result;
	(void)snprintf(fresh, sizeof(fresh), ".carrel-%016llx", (unsigned long long)random);
	result = copy_file(dirfd, name, dirfd, fresh);
	if (result == 0 && renameat(dirfd, fresh, dirfd, name) < 0)
		result = -errno;
	if (result < 0)
		(void)unlinkat(dirfd, fresh, 0); /* the failure above is what counts */
	return result;
}

static int disarm_file(int dirfd, const char *name)
{
	struct stat st;
	autofd int fd = beneath_open(dirfd, name, O_PATH | O_NOFOLLOW, BENEATH_SAME_MOUNT);

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || !(st.st_mode & 07177))
		return 0;
	if (st.st_nlink > 1)
		return replace_by_copy(dirfd, name);
	return beneath_chmod(fd, st.st_mode & 0600);
}

/* --- directories --------------------------------------------------------------------------- */

static int push_dir(
	struct walk *w, int from_fd, const char *name, int to_fd, const char *new_name)
{
	autofd int from = -1;
	autofd int to = -1;

	if (w->depth + 1 >= LEVELS)
		return -ELOOP;
	from = beneath_open_dir(from_fd, name);
	if (from < 0)
		return from;
	if (w->copying) {
		if (mkdirat(to_fd, new_name, 0700) < 0)
			return -errno;
		to = beneath_open_dir(to_fd, new_name);
		if (to < 0)
			return to;
	}
	struct level *l = &w->levels[++w->depth];
	*l = (struct level){ .from_fd = take_fd(&from), .to_fd = take_fd(&to) };
	return 0;
}

static int visit(struct walk *w, int from_fd, const char *name, int to_fd, const char *new_name)
{
	struct stat st;

	if (fstatat(from_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return push_dir(w, from_fd, name, to_fd, new_name);
	if (S_ISREG(st.st_mode))
		return w->copying ? copy_file(from_fd, name, to_fd, new_name)
				  : disarm_file(from_fd, name);
	if (S_ISLNK(st.st_mode))
		return w->copying ? copy_link(w, from_fd, name, to_fd, new_name) : 0;
	w->dropped++;
	return 0;
}

static void close_level(struct walk *w)
{
	struct level *l = &w->levels[w->depth--];

	fd_close(&l->from_fd);
	fd_close(&l->to_fd);
}

/* One step: the next entry of the deepest directory, or one level up. */
static int step(struct walk *w)
{
	struct level *l = &w->levels[w->depth];
	char *buffer = w->space->buffers[w->depth];

	if (l->at >= l->end) {
		ssize_t n = beneath_read(l->from_fd, buffer, BUFFER_BYTES);

		if (n == 0 && w->copying && fsync(l->to_fd) < 0)
			n = -errno;
		if (n <= 0) {
			close_level(w);
			return (int)n;
		}
		l->at = 0;
		l->end = (uint32_t)n;
	}
	const struct beneath_entry *entry = (void *)(buffer + l->at);
	l->at += entry->length;
	if (beneath_is_dots(entry->name))
		return 0;
	w->entries++;
	return visit(w, l->from_fd, entry->name, l->to_fd, entry->name);
}

static int walk_all(struct walk *w)
{
	int result = 0;

	while (w->depth >= 0) {
		result = step(w);
		if (result < 0 && !w->error)
			w->error = result;
		if (w->copying && w->error)
			break;
		if (!w->copying && w->entries > MAX_ENTRIES) {
			w->error = -E2BIG;
			break;
		}
	}
	while (w->depth >= 0)
		close_level(w);
	return w->error;
}

static int walk_from(
	struct walk *w, int from_fd, const char *name, int to_fd, const char *new_name)
{
	w->depth = -1;
	w->space = mmap(NULL, sizeof(*w->space), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w->space == MAP_FAILED)
		return -ENOMEM;
	int result = visit(w, from_fd, name, to_fd, new_name);
	if (result == 0)
		result = walk_all(w);
	(void)munmap(w->space, sizeof(*w->space));
	return result;
}

int quarantine_copy(
	int from_fd, const char *name, int to_fd, const char *new_name, uint64_t *ret_dropped)
{
	struct walk w = { .copying = true };
	int result = walk_from(&w, from_fd, name, to_fd, new_name);

	if (result == 0)
		*ret_dropped = w.dropped;
	return result;
}

int quarantine_disarm(int fd, const char *name)
{
	struct walk w = { .copying = false };

	return walk_from(&w, fd, name, -1, NULL);
}

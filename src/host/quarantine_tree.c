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
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/beneath.h"

enum {
	LEVELS = 24,
	BUFFER_BYTES = 8 << 10,
	MAX_ENTRIES = 100000, /* of one disarming; a copy has no such bound */
	CHUNK_BYTES = 1 << 30,
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

/* Copies the bytes from @at to @end. */
static int copy_range(int from_fd, int to_fd, off_t at, off_t end)
{
	if (lseek(to_fd, at, SEEK_SET) < 0)
		return -errno;
	while (at < end) {
		size_t want = end - at < CHUNK_BYTES ? (size_t)(end - at) : CHUNK_BYTES;
		ssize_t n = sendfile(to_fd, from_fd, &at, want);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO; /* it became shorter: somebody still writes to it */
	}
	return 0;
}

/* Copies data and leaves out holes: a sparse terabyte stays one. */
static int copy_data(int from_fd, int to_fd, off_t size)
{
	off_t at = 0;

	if (ftruncate(to_fd, size) < 0)
		return -errno;
	while (at < size) {
		off_t data = lseek(from_fd, at, SEEK_DATA);

		if (data < 0 && errno == ENXIO)
			return 0; /* only a hole is left */
		if (data < 0)
			return -errno;
		off_t hole = lseek(from_fd, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		at = hole < size ? hole : size;
		int result = copy_range(from_fd, to_fd, data, at);
		if (result < 0)
			return result;
	}
	return 0;
}

/*
 * Opens a regular file for reading. One that its owner locked (mode 000) is unlocked first, by
 * descriptor, and only where it has no other name: a mode belongs to all names of a file.
 */
static int open_file(int dirfd, const char *name)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	int opened = beneath_open(dirfd, name, flags, BENEATH_SAME_MOUNT);
	struct stat st;

	if (opened != -EACCES)
		return opened;
	autofd int fd = beneath_open(dirfd, name, O_PATH | O_NOFOLLOW, BENEATH_SAME_MOUNT);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return -EACCES;
	int result = beneath_chmod(fd, 0600);
	return result < 0 ? result : beneath_open(dirfd, name, flags, BENEATH_SAME_MOUNT);
}

static int copy_file(int from_fd, const char *name, int to_fd, const char *new_name)
{
	struct stat st;
	autofd int from = open_file(from_fd, name);

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
	int result = copy_data(from, to, st.st_size);
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

/*
 * newpath_dirs.c - see newpath_dirs.h.
 *
 * Runs in: S.
 */
#include "host/quarantine/newpath_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/tree/beneath.h"

enum {
	EVENTS_SIZE = 2048,
	READS = 16, /* in one wake-up; the next one reads the rest */
	MADE = IN_CREATE | IN_MOVED_TO,
	CHANGED = IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB,
};

/* Ignore case: some file systems find `.ENVRC` under the name `.envrc`. */
static unsigned name_bit(const char *name, size_t length)
{
	uint32_t hash = 0x811c9dc5u; /* FNV-1a */

	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)name[i];

		/* Treat all letters that a file system may fold as one. */
		c = c >= 0x80 ? 0x80 : c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
		if (c != 0x80 || i == 0 || !((unsigned char)name[i - 1] & 0x80))
			hash = (hash ^ c) * 0x01000193u;
	}
	return (hash ^ hash >> 16) % NEWPATH_BITS;
}

static void add_name(struct newpath_names *names, const char *name, size_t length)
{
	unsigned bit = name_bit(name, length);

	names->bits[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static bool has_name(const struct newpath_names *names, const char *name)
{
	unsigned bit = name_bit(name, strlen(name));

	return names->bits[bit / 64] >> (bit % 64) & 1;
}

static int add_dir(struct newpath_dirs *d, struct arena *arena,
	const struct quarantine_item *item, size_t length, bool whole)
{
	/* Search backwards: the rules of one place stand together, so that its directory was mostly added recently. */
	for (size_t i = d->count; i-- > 0 && i + 64 > d->count;)
		if (d->dirs[i].root_fd == item->root_fd &&
			!strncmp(d->dirs[i].path, item->path, length) &&
			!d->dirs[i].path[length]) {
			d->dirs[i].whole |= whole;
			return 0;
		}
	if (d->count == NEWPATH_DIRS)
		return 0;
	struct newpath_dir *dirs = arena_push(arena, d->dirs, d->count, sizeof(*dirs));
	const char *path = arena_copy(arena, item->path, length);
	if (!dirs || !path)
		return -ENOMEM;
	d->dirs = dirs;
	dirs[d->count++] = (struct newpath_dir){
		.root_fd = item->root_fd, .wd = -1, .path = path, .whole = whole
	};
	return 0;
}

int newpath_dirs_add(struct newpath_dirs *d, struct arena *arena,
	const struct quarantine_item *item, bool judged)
{
	const char *path = item->path;
	size_t length = strlen(path), start = 0;
	int r = add_dir(d, arena, item, 0, false);

	while (r >= 0 && start < length) {
		size_t end = start + strcspn(path + start, "/");

		add_name(&d->names, path + start, end - start);
		if (end == length && judged)
			add_name(&d->leaves, path + start, end - start);
		if (end < length || judged)
			r = add_dir(d, arena, item, end, end == length);
		start = end + (end < length);
	}
	return r;
}

int newpath_dirs_open(struct newpath_dirs *d)
{
	d->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	return d->fd < 0 ? -errno : 0;
}

/* Watch the directory that was opened, not what its name leads to by now. */
static int watch_one(struct newpath_dirs *d, const struct newpath_dir *dir)
{
	char path[32];
	uint32_t mask = MADE | IN_ONLYDIR | IN_DONT_FOLLOW | (dir->whole ? CHANGED : 0) |
		(strstr(dir->path, ".git") || !*dir->path ? IN_CLOSE_WRITE : 0);
	autofd int fd = beneath_open(dir->root_fd, *dir->path ? dir->path : ".",
		O_PATH | O_DIRECTORY | O_NOFOLLOW, BENEATH_ANY_MOUNT);

	if (fd < 0)
		return fd;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/.", fd);
	int wd = inotify_add_watch(d->fd, path, mask);
	/* The directory is open, so ENOENT means that /proc is not mounted. */
	return wd >= 0 ? wd : errno == ENOENT ? -EIO : -errno;
}

void newpath_dirs_watch(struct newpath_dirs *d)
{
	d->partial = d->count == NEWPATH_DIRS;
	for (size_t i = 0; i < d->count; i++) {
		struct newpath_dir *dir = &d->dirs[i];
		int wd = watch_one(d, dir);

		/* If it is absent, or no directory, the watch on the one above it tells when it is made. */
		if (wd < 0 && wd != -ENOENT && wd != -ENOTDIR && wd != -ELOOP)
			d->partial = true;
		if (wd < 0)
			wd = -1;
		if (dir->wd >= 0 && dir->wd != wd)
			(void)inotify_rm_watch(d->fd, dir->wd); /* it may be gone already */
		dir->wd = wd;
	}
}

static const struct newpath_dir *find_dir(const struct newpath_dirs *d, int wd)
{
	for (size_t i = 0; i < d->count; i++)
		if (d->dirs[i].wd == wd)
			return &d->dirs[i];
	return NULL;
}

static bool take_event(
	const struct newpath_dirs *d, const struct inotify_event *event, bool *ret_changed)
{
	/* A watch was removed, or the queue overflowed: other events may be lost. */
	if (event->mask & (IN_Q_OVERFLOW | IN_IGNORED | IN_UNMOUNT)) {
		*ret_changed = true;
		return true;
	}
	const struct newpath_dir *dir = find_dir(d, event->wd);
	bool changed = (dir && dir->whole) || (event->len && has_name(&d->leaves, event->name));
	*ret_changed |= changed;
	return changed ||
		(event->len && event->mask & MADE && has_name(&d->names, event->name));
}

bool newpath_dirs_drain(struct newpath_dirs *d, bool *ret_changed)
{
	_Alignas(struct inotify_event) char events[EVENTS_SIZE];
	bool relevant = false;

	*ret_changed = false;
	for (int reads = 0; reads < READS; reads++) {
		ssize_t n = read(d->fd, events, sizeof(events));

		if (n <= 0)
			break;
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *event = (const void *)(events + at);

			relevant |= take_event(d, event, ret_changed);
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
	return relevant;
}

/*
 * gitreview_links.c - symbolic links through which git on the host would write: see gitreview.h.
 *
 * Runs in: the child that gitreview_child.c starts when all processes of the session are dead.
 * May not: change anything, follow a link, stop at a number of entries: tools could make more. What
 * is too deep or cannot be listed goes as a whole.
 */
#include "host/gitreview/gitreview_shared.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#define DEPTH_MAX 32

static const char link_why[] = "git would write through this link";
static const char unseen_why[] = "git would write through links in it, if there are any";

/* Git writes everywhere in these. A link in `info` is often the user's own, and only read. */
static const char *const trees[] = { "logs", "rr-cache", "rebase-merge", "rebase-apply",
	"sequencer", "objects/info" };

/* Names at which git follows a link, and replaces what it leads to. */
static const struct {
	const char *directory, *name;
	bool moved; /* new where the directory is: nobody else has a link there */
} names[] = { { "info", "sparse-checkout", true }, { "objects/pack", "multi-pack-index", true },
	{ "objects", "info", false } };

struct review_level {
	int fd;
	bool is_new; /* it, or a directory above it: whatever is in it may have been moved here */
	size_t length; /* of its path */
	struct gitpath_list list;
};

static void open_level(
	struct review *r, struct review_level *level, int dirfd, const char *name, bool is_new)
{
	level->list.at = level->list.length = 0;
	level->fd = level->list.fd = gitpath_open(
		dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
	gitfind_missed(r->f, level->fd);
	level->is_new = is_new || level->fd == -ENOENT || review_is_new_at(r, dirfd, name);
}

/* one_entry - @name in the level @depth, whose path is in f->path. The depth to go on at. */
static size_t one_entry(struct review *r, size_t depth, const char *name, unsigned char type)
{
	struct finder *f = r->f;
	struct review_level *level = &r->levels[depth];
	size_t left = sizeof(f->path) - level->length;
	int length = snprintf(f->path + level->length, left, "/%s", name);

	if (type != DT_LNK && type != DT_DIR)
		return depth;
	if (length < 0 || (size_t)length >= left) {
		/* Git could not name it either, unless it runs in there. */
		f->path[level->length] = '\0';
		gitfind_note(f, arena_copy(f->arena, f->path, level->length),
			"names in it are too long to be examined");
		return depth;
	}
	size_t whole = level->length + (size_t)length;

	if (type == DT_LNK) {
		if (level->is_new || review_is_new_at(r, level->fd, name))
			review_quarantine(r, arena_copy(f->arena, f->path, whole), link_why);
		return depth;
	}
	if (depth + 1 < DEPTH_MAX) {
		struct review_level *next = level + 1;

		open_level(r, next, level->fd, name, level->is_new);
		next->length = whole;
		if (next->fd >= 0)
			return depth + 1;
		level = next;
	}
	if (level->is_new)
		review_quarantine(r, arena_copy(f->arena, f->path, whole), unseen_why);
	return depth;
}

/* walk - links in @path/@top, however deep. */
static void walk(struct review *r, int dirfd, const char *path, const char *top)
{
	struct finder *f = r->f;
	size_t depth = 0;

	if (!r->levels)
		r->levels = arena_array(f->arena, DEPTH_MAX, sizeof(*r->levels));
	int length = snprintf(f->path, sizeof(f->path), "%s/%s", path, top);

	if (!r->levels || length < 0 || (size_t)length >= sizeof(f->path)) {
		f->full = true;
		return;
	}
	open_level(r, r->levels, dirfd, top, false);
	r->levels[0].length = (size_t)length;
	if (r->levels[0].fd < 0) {
		/* A link was looked at before. */
		if (r->levels[0].fd == -EACCES && r->levels[0].is_new)
			review_quarantine(
				r, arena_copy(f->arena, f->path, (size_t)length), unseen_why);
		return;
	}
	for (;;) {
		const char *name;
		unsigned char type;
		struct review_level *level = &r->levels[depth];
		int result = f->full ? 0 : gitpath_next(&level->list, &name, &type);

		if (result > 0) {
			depth = one_entry(r, depth, name, type);
			continue;
		}
		f->path[level->length] = '\0';
		gitfind_missed(f, result);
		fd_close(&level->fd);
		if (depth-- == 0)
			return;
	}
}

static void look_at_name(struct review *r, int dirfd, const char *path, size_t i)
{
	struct finder *f = r->f;
	struct stat st;
	autofd int fd = gitpath_open(
		dirfd, names[i].directory, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);

	int type = fd < 0 ? fd : gitpath_type(fd, names[i].name);
	const char *directory = gitfind_join(f, path, names[i].directory);

	gitfind_missed(f, type);
	if (type == -EACCES)
		gitfind_locked(f, fd, directory);
	if (type != DT_LNK)
		return;
	if (!review_is_new_at(r, fd, names[i].name) &&
		!(names[i].moved && (fstat(fd, &st) < 0 || review_is_new(r, &st))))
		return;
	if (directory)
		review_quarantine(r, gitfind_join(f, directory, names[i].name), link_why);
}

/* own_entries - links in the git directory itself: a tool that moves one makes it new. */
static void own_entries(struct review *r, int fd, const char *path)
{
	struct finder *f = r->f;
	const char *name;
	unsigned char type;
	int result = 0;

	f->list.fd = fd;
	f->list.at = f->list.length = 0;
	while (!f->full && (result = gitpath_next(&f->list, &name, &type)) > 0)
		if (type == DT_LNK && review_is_new_at(r, fd, name))
			review_quarantine(r, gitfind_join(f, path, name), link_why);
	gitfind_missed(f, result);
}

void review_links(struct review *r, int fd, const char *path)
{
	own_entries(r, fd, path);
	for (size_t i = 0; i < sizeof(trees) / sizeof(*trees); i++)
		walk(r, fd, path, trees[i]);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		look_at_name(r, fd, path, i);
}

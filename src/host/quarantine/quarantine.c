/*
 * quarantine.c - see quarantine.h.
 *
 * Runs in: the supervisor (host side), while the session lives and after its last process died.
 */
#include "host/quarantine/quarantine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/quarantine/quarantine_move.h"
#include "host/tree/beneath.h"

enum {
	LIST_FROM = 16,  /* items below one root that make it worth listing */
	LOCKED_DIRS = 8, /* directories without search permission on the way to one item */
};

/* One check of everything. */
struct check {
	struct quarantine q;
	struct quarantine_result *ret;
	struct quarantine_listing listing;
};

/* A directory on the way to which the check gave search permission, until it ends. */
struct locked_dir {
	int fd;
	unsigned mode;
};

struct passage {
	struct locked_dir dirs[LOCKED_DIRS];
	unsigned count;
};

/* --- looking ------------------------------------------------------------------------------- */

/* The length of @path up to the end of the component that starts at @at. */
static size_t component_end(const char *path, size_t at)
{
	return at + strcspn(path + at, "/");
}

/*
 * Something on the way is no directory: find it. Returns the length of the path up to it, 0 if it has
 * gone meanwhile, or -errno.
 */
static ssize_t find_obstacle(int root_fd, const char *path)
{
	struct stat st;

	for (size_t end = component_end(path, 0);; end = component_end(path, end + 1)) {
		autofd int fd = quarantine_prefix(root_fd, path, end, 0);

		if (fd < 0)
			return fd == -ENOENT ? 0 : fd;
		if (fstat(fd, &st) < 0)
			return -errno;
		if (!S_ISDIR(st.st_mode) || !path[end])
			return (ssize_t)end;
	}
}

/*
 * A directory without search permission is on the way (a way to hide what is in it until later):
 * make the deepest one that can be opened passable until close_passage().
 */
static int open_passage(int root_fd, const char *path, struct passage *p)
{
	struct stat st;
	autofd int last = quarantine_prefix(root_fd, path, 0, O_DIRECTORY);

	if (last < 0)
		return last;
	for (size_t end = component_end(path, 0); path[end];
		end = component_end(path, end + 1)) {
		int fd = quarantine_prefix(root_fd, path, end, O_DIRECTORY);

		if (fd == -EACCES)
			break;
		if (fd < 0)
			return fd;
		fd_close(&last);
		last = fd;
	}
	if (fstat(last, &st) < 0)
		return -errno;
	if (p->count >= LOCKED_DIRS || (st.st_mode & 0100))
		return -EACCES; /* too many, or something else than the owner's bits refuses */
	/* S's filter forbids it to set setuid and setgid bits: a directory that a tool made with one loses it. */
	int result = beneath_chmod(last, (st.st_mode & 01777) | 0700);
	if (result < 0)
		return result;
	p->dirs[p->count++] = (struct locked_dir){ take_fd(&last), st.st_mode & 01777 };
	return 0;
}

/* Gives the directories their modes back. 0 or the first -errno. */
static int close_passage(struct passage *p)
{
	int result = 0;

	while (p->count > 0) {
		struct locked_dir *dir = &p->dirs[--p->count];
		int changed = beneath_chmod(dir->fd, dir->mode);

		if (changed < 0 && result == 0)
			result = changed;
		fd_close(&dir->fd);
	}
	return result;
}

/*
 * What stands at the item's path or in its way. Returns the length of the path up to it, 0 where
 * nothing appeared, or -errno.
 */
static ssize_t find_newpath(const struct quarantine_item *item, struct passage *p)
{
	for (;;) {
		int fd = beneath_open(
			item->root_fd, item->path, O_PATH | O_NOFOLLOW, BENEATH_ANY_MOUNT);

		if (fd >= 0) {
			fd_close(&fd);
			return (ssize_t)strlen(item->path);
		}
		if (fd == -ENOENT || fd == -ENAMETOOLONG)
			return 0;
		if (fd == -ELOOP || fd == -ENOTDIR)
			break;
		int result = fd == -EACCES ? open_passage(item->root_fd, item->path, p) : fd;
		if (result < 0)
			return result;
	}
	return find_obstacle(item->root_fd, item->path);
}

/*
 * Whether what stands at the leading @length bytes is to go: 1, 0 or -errno. In the part that existed only a
 * link: see existing_prefix_len.
 */
static int is_to_go(const struct quarantine_item *item, size_t length)
{
	struct stat st;

	if (length > item->existing_prefix_len)
		return 1;
	autofd int fd = quarantine_prefix(item->root_fd, item->path, length, 0);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISLNK(st.st_mode);
}

void quarantine_begin(
	struct quarantine *q, const char *session_id, const struct quarantine_log *log)
{
	q->place_count = 0;
	q->log = *log;
	(void)snprintf(q->name, sizeof(q->name), QUARANTINE_PREFIX "%.20s", session_id);
}

void quarantine_note(
	struct quarantine *q, const struct quarantine_item *item, size_t length, bool done)
{
	const struct quarantine_moving m = { .session = q->name + strlen(QUARANTINE_PREFIX),
		.root_fd = item->root_fd,
		.root = item->root,
		.from = item->path,
		.from_length = length,
		.to = q->to,
		.done = done };

	q->id[0] = '\0';
	if (q->to[0])
		quarantine_record_write(&q->log, &m, q->id);
}

int quarantine_take(struct quarantine *q, const struct quarantine_item *item,
	bool (*may_stay)(void *context, const struct quarantine_item *item, size_t length),
	void *context, size_t *ret_length)
{
	struct passage passage = { .count = 0 };
	ssize_t found = find_newpath(item, &passage);
	int r = found > 0 ? is_to_go(item, (size_t)found) : (int)found;

	*ret_length = found > 0 ? (size_t)found : strlen(item->path);
	if (r > 0 && may_stay && may_stay(context, item, (size_t)found))
		r = 0;
	if (r > 0)
		r = quarantine_move(q, item, (size_t)found);
	if (r > 0)
		quarantine_note(q, item, (size_t)found, true);
	int closed = close_passage(&passage);
	return r >= 0 && closed < 0 ? closed : r;
}

/* Notes what happened to an item at which something was found or which could not be looked at. */
static int note_move(struct check *c, const struct quarantine_item *item, size_t length,
	int result, struct error *e)
{
	struct quarantine_result *ret = c->ret;
	struct arena *arena = ret->arena;
	struct quarantine_move *moves =
		arena_push(arena, ret->moves, ret->count, sizeof(*moves));
	struct quarantine_move m = { .item = item,
		.from = arena_copy(arena, item->path, length),
		.errnum = result < 0 ? -result : 0 };
	char on[1024];

	(void)snprintf(on, sizeof(on), "%s/%.*s", item->root, (int)length, item->path);
	ret->failed += result < 0;
	if (result > 0 && c->q.to[0])
		m.to = arena_copy(arena, c->q.to, strlen(c->q.to));
	if (m.to && c->q.id[0])
		m.id = arena_copy(arena, c->q.id, strlen(c->q.id));
	if (!moves || !m.from || (result > 0 && c->q.to[0] && !m.to))
		result = result < 0 ? result : -ENOMEM;
	if (moves && m.from) {
		ret->moves = moves;
		moves[ret->count++] = m;
	}
	if (result < 0)
		return error_set(e, ERROR_TEARDOWN, "close", -result, on,
			"cannot move to quarantine what appeared at a protected path");
	return 0;
}

bool quarantine_is_absent(struct quarantine_listing *l, struct arena *arena,
	const struct quarantine_item *item, size_t left)
{
	if (item->root_fd != l->root_fd && left >= LIST_FROM) {
		l->root_fd = item->root_fd;
		l->names = (struct name_set){ 0 };
		name_set_read(&l->names, arena, item->root_fd);
	}
	return item->root_fd == l->root_fd &&
		name_set_lacks(&l->names, item->path, component_end(item->path, 0));
}

int quarantine_check(const struct quarantine_item *items, size_t count, const char *session_id,
	const struct quarantine_log *log, struct quarantine_result *ret, struct error *e)
{
	struct check *c = arena_alloc(ret->arena, sizeof(*c));
	int first = 0;

	*ret = (struct quarantine_result){ .arena = ret->arena };
	if (!c)
		return error_set(e, ERROR_LIMIT, "close", ENOMEM, NULL,
			"cannot look for what appeared at protected paths");
	*c = (struct check){ .ret = ret, .listing = { .root_fd = -1 } };
	quarantine_begin(&c->q, session_id, log);
	for (size_t i = 0; i < count; i++) {
		size_t length;

		if (quarantine_is_absent(&c->listing, ret->arena, &items[i], count - i))
			continue;
		int r = quarantine_take(&c->q, &items[i], NULL, NULL, &length);
		if (r != 0)
			r = note_move(c, &items[i], length, r, e);
		if (r < 0 && first == 0)
			first = r;
	}
	quarantine_end(&c->q);
	return first;
}

/*
 * gone.c - see gone.h.
 *
 * Runs in: S.
 */
#include "host/cover/gone.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan/tree_node.h"

static bool is_hidden(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->node_count; i++)
		if (plan->nodes[i].kind == NODE_HIDE && !strcmp(plan->nodes[i].path, path))
			return true;
	return false;
}

static int begin_gone(struct cover *c)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = c->event + 1 };

	if (c->gone >= 0)
		return 0;
	c->gone = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (c->gone < 0)
		return -errno;
	return epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->gone, &ev) < 0 ? -errno : 0;
}

/* Watch the nearest existing directory above @path, whose path is in @dir then. 1: @path may exist again by now. */
static int watch_above(struct cover *c, const char *path, char *dir, size_t length)
{
	struct stat st;
	size_t below =
		0; /* length of the path of the directory that is missing in it; 0: @path itself is */

	for (;;) {
		dir[length ? length : 1] = '\0';
		if (inotify_add_watch(c->gone, dir, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) >= 0)
			break;
		if ((errno != ENOENT && errno != ENOTDIR) || length == 0)
			return -errno;
		below = length;
		while (dir[--length] != '/')
			;
	}
	if (!below)
		return 0;
	memcpy(dir, path, below);
	dir[below] = '\0';
	return lstat(dir, &st) == 0;
}

/*
 * Watch the directory of a hidden file that does not exist now, or what is left above it: nothing else reports that the file
 * comes back. Each new entry there leads to the next call, which watches further down.
 */
static int watch_for_return(struct cover *c, const char *path)
{
	static char dir[PATH_MAX]; /* S has one thread, and no room for it on the stack */
	size_t length = (size_t)(strrchr(path, '/') - path);
	int r = begin_gone(c);

	if (r < 0)
		return r;
	if (length + 1 >= sizeof(dir))
		return -ENAMETOOLONG;
	memcpy(dir, path, length + 1);
	r = watch_above(c, path, dir, length);
	c->again |= r > 0;
	return r < 0 ? r : 0;
}

static const struct kept_path *kept_at(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->kept_count; i++)
		if (!strcmp(plan->kept[i].path, path))
			return &plan->kept[i];
	return NULL;
}

/*
 * A hidden file is hidden again when it comes back. A protected file that is gone becomes a path that was absent
 * (newpath_watch.h): whoever makes it anew, it is moved away. A pinned directory needs neither: what was protected in it is gone too.
 */
static int look_after_place(struct cover *c, const char *path)
{
	const struct kept_path *kept = kept_at(c->plan, path);
	bool hidden = is_hidden(c->plan, path);
	struct stat st;
	int r = 0;

	if (hidden)
		r = watch_for_return(c, path);
	else if (kept)
		r = newpath_watch_add(c->newpath, kept);
	/* It came back before the watch was set. */
	if (hidden && r == 0 && lstat(path, &st) == 0)
		c->again = true;
	return r;
}

int gone_look_after(struct cover *c)
{
	for (size_t i = 0; i < c->plan->op_count; i++) {
		if (!c->board->places[i].gone)
			continue;
		int r = look_after_place(c, c->plan->ops[i].path);
		if (r < 0) {
			c->board->result = r;
			c->board->failed = COVER_FAILED_GONE;
			c->board->failed_op = (int32_t)i;
			return r;
		}
	}
	return 0;
}

/* Another file in the same directory is no reason to stop the session. */
int gone_drain(struct cover *c)
{
	char events[1024];
	bool some = false;

	while (c->gone >= 0 && read(c->gone, events, sizeof(events)) > 0)
		some = true;
	if (!some)
		return 0;
	c->again |= c->pending;
	return c->pending ? 0 : gone_look_after(c);
}

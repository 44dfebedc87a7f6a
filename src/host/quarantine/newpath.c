/*
 * newpath.c - see newpath.h.
 *
 * Runs in: the launcher, outside, when every process of the session is dead.
 */
#include "host/quarantine/newpath.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "box/sys.h"
#include "host/git/gitplain.h"
#include "host/gitreview/gitreview.h"
#include "host/quarantine/quarantine.h"
#include "plan/path.h"

/* Things that git itself wrote; a workspace with more new repositories than that looks after itself. */
enum { PLAIN_LOOKS_MAX = 64 };

struct closer {
	const struct newpath_scope *what;
	struct arena *arena;
	struct quarantine_item *items;
	size_t count;
	struct error *e;
};

static int no_memory(struct closer *c)
{
	return error_set(c->e, ERROR_LIMIT, "close", ENOMEM, NULL,
		"cannot look for what appeared at protected paths");
}

int newpath_open_root(const struct newpath_scope *what, const char *path, int *ret_fd)
{
	struct stat st;
	autofd int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd < 0)
		return fd;
	if (what->workspace && !strcmp(path, what->workspace)) {
		if (fstat(fd, &st) < 0)
			return -errno;
		if (st.st_dev != what->workspace_dev || st.st_ino != what->workspace_ino)
			return -ESTALE;
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Long after the session: the directory does not exist any more, or is another. */
static bool is_gone(const struct newpath_scope *what, int result)
{
	return what->dead &&
		(result == -ENOENT || result == -ENOTDIR || result == -ELOOP ||
			result == -ESTALE);
}

/* One descriptor for each writable root: items of the same root share it. 1: the root is gone. */
static int find_root(struct closer *c, const char *root, int *ret_fd)
{
	for (size_t i = 0; i < c->count; i++)
		if (!strcmp(c->items[i].root, root)) {
			*ret_fd = c->items[i].root_fd;
			return 0;
		}
	int r = newpath_open_root(c->what, root, ret_fd);
	if (is_gone(c->what, r))
		return 1;
	return r < 0 ? error_set(c->e, ERROR_TEARDOWN, "close", -r, root,
			       "cannot look for what appeared at protected paths")
		     : 0;
}

static int add_item(struct closer *c, const char *root, const char *path, size_t existing)
{
	struct quarantine_item *grown =
		arena_push(c->arena, c->items, c->count, sizeof(*grown));
	size_t root_length = strlen(root);
	int fd = -1;

	if (!grown)
		return no_memory(c);
	c->items = grown;
	int r = find_root(c, root, &fd);
	if (r != 0)
		return r < 0 ? r : 0;
	c->items[c->count++] = (struct quarantine_item){
		.root_fd = fd,
		.root = root,
		.path = path_below(root, path),
		.existing_prefix_len = existing > root_length ? existing - root_length - 1 : 0,
	};
	return 0;
}

/* Is the path in a git directory? Elsewhere nothing is plain. */
static bool is_of_git(const char *path)
{
	const char *name = strrchr(path, '/');
	static const char dir[] = "/.git/";

	return name && name - path >= (ptrdiff_t)sizeof(dir) - 2 &&
		strncmp(name - (sizeof(dir) - 2), dir, sizeof(dir) - 1) == 0;
}

/* Is it what `git init` writes, with nothing in it by which a tool could command git? */
static bool is_plain(const struct closer *c, const struct absent_path *a, unsigned *looks)
{
	struct stat st;
	int fd = -1;

	if (*looks == 0 || !is_of_git(a->path) || lstat(a->path, &st) < 0 ||
		newpath_open_root(c->what, a->root, &fd) < 0)
		return false;
	(*looks)--;
	int r = gitplain_check(fd, path_below(a->root, a->path), c->what->deadline_ns);

	(void)close(fd);
	return r == 1;
}

static int add_absents(struct closer *c)
{
	unsigned looks = PLAIN_LOOKS_MAX;
	int r = 0;

	for (size_t i = 0; i < c->what->absent_count && r >= 0; i++) {
		const struct absent_path *a = &c->what->absents[i];

		if (!is_plain(c, a, &looks))
			r = add_item(c, a->root, a->path, a->existing_prefix);
	}
	return r;
}

/* Whether a protected path is still the thing that was protected, and no link leads to it: 1, 0, or -errno. */
static int is_same(const struct kept_path *kept)
{
	struct stat st;
	autofd int fd = sys_openat2(AT_FDCWD, kept->path, O_PATH | O_NOFOLLOW,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd == -ENOENT || fd == -ENOTDIR)
		return 1; /* gone: there is nothing that the host could obey */
	if (fd < 0)
		return error_is_own(-fd) ? fd : 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_dev == kept->dev && st.st_ino == kept->ino;
}

/*
 * If somebody on the host renamed a protected thing, its mount went with it, and no event tells
 * carrel: tools may have made what stands in its place.
 */
static int add_replaced(struct closer *c)
{
	int r = 0;

	for (size_t i = 0; i < c->what->kept_count; i++) {
		const struct kept_path *kept = &c->what->kept[i];
		int same = is_same(kept);
		int added = same < 0 ? error_set(c->e, ERROR_TEARDOWN, "close", -same,
					       kept->path, "cannot look at a protected path")
			: same       ? 0
				     : add_item(c, kept->root, kept->path, 0);

		r = r < 0 ? r : added;
	}
	return r;
}

/* The writable place that @path lies in: the workspace, or a repository that was granted. */
static const char *root_of(const struct newpath_scope *what, const char *path)
{
	if (path_below(what->workspace, path))
		return what->workspace;
	for (size_t i = 0; i < what->git_rule_count; i++)
		if (what->git_rules[i].kind == GITDIR_WRITE &&
			path_below(what->git_rules[i].path, path))
			return what->git_rules[i].path;
	return NULL;
}

/* Add what no mount could prevent and git on the host would obey: docs/git.md. */
static int add_reviewed(struct closer *c)
{
	const struct newpath_scope *what = c->what;
	struct gitdir_rule *rules = NULL;
	size_t count = 0;
	autofd int fd = -1;

	if (!what->review || is_gone(what, newpath_open_root(what, what->workspace, &fd)))
		return 0;
	int r = gitreview(c->arena, what->workspace, what->caller, what->begun, what->git_rules,
		what->git_rule_count, what->deadline_ns, &rules, &count, c->e);
	/* An incomplete review is an error, but what it found is moved away all the same. */
	for (size_t i = 0; i < count; i++) {
		const char *root = rules[i].kind == GITDIR_QUARANTINE
			? root_of(what, rules[i].path)
			: NULL;
		int added = root && *path_below(root, rules[i].path)
			? add_item(c, root, rules[i].path, 0)
			: 0;

		if (r >= 0)
			r = added;
	}
	return r;
}

static void close_items(const struct closer *c)
{
	for (size_t i = 0; i < c->count; i++) {
		bool shared = false;

		for (size_t j = 0; j < i; j++)
			shared = shared || c->items[j].root_fd == c->items[i].root_fd;
		if (!shared)
			(void)close(c->items[i].root_fd);
	}
}

/* The caller tells the first one. A caller without @e, as a run's sweep, is told nothing: it tries again another time. */
static void report_standing(struct closer *c, const struct quarantine_move *m)
{
	struct error line = { 0 };
	const char *path = arena_format(c->arena, "%s/%s", m->item->root, m->from);
	(void)error_set(&line, ERROR_TEARDOWN, "close", m->errnum, path ? path : m->from,
		"cannot move to quarantine what appeared at a protected path");

	if (c->e && strcmp(c->e->on, line.on) != 0)
		(void)error_report(&line);
}

/* The list leaves out what still stands: that is an error, and reported as one. */
static int report_moves(struct closer *c, const struct quarantine_result *found,
	const struct report_quarantine **ret_moved, size_t *ret_count)
{
	struct arena *arena = c->arena;
	struct report_quarantine *list = arena_array(arena, found->count, sizeof(*list));
	size_t count = 0;

	for (size_t i = 0; list && i < found->count; i++) {
		const struct quarantine_move *m = &found->moves[i];
		struct report_quarantine *moved = &list[count];

		if (m->errnum) {
			report_standing(c, m);
			continue;
		}
		moved->path = arena_format(arena, "%s/%s", m->item->root, m->from);
		moved->to = m->to ? arena_format(arena, "%s/%s", m->item->root, m->to) : NULL;
		moved->id = m->id;
		moved->times = 1;
		if (!moved->path || (m->to && !moved->to))
			return -ENOMEM;
		count++;
	}
	*ret_moved = list;
	*ret_count = count;
	return found->count && !list ? -ENOMEM : 0;
}

int newpath_quarantine(const struct newpath_scope *what, struct arena *arena,
	const struct report_quarantine **ret_moved, size_t *ret_count, struct error *e)
{
	struct quarantine_result found = { .arena = arena };
	struct closer c = { .what = what, .arena = arena, .e = e };
	int r = add_absents(&c);
	int replaced = add_replaced(&c);
	int reviewed = add_reviewed(&c);

	*ret_moved = NULL;
	*ret_count = 0;
	/* Deal with all that could be listed, even if a step above failed. */
	int checked =
		quarantine_check(c.items, c.count, what->session_id, &what->log, &found, e);
	close_items(&c);
	int reported = report_moves(&c, &found, ret_moved, ret_count);
	if (reported < 0)
		reported = no_memory(&c);
	r = r < 0 ? r : replaced;
	return r < 0 ? r : reviewed < 0 ? reviewed : checked < 0 ? checked : reported;
}

/* Never cut the line with the command that puts it back, however long the path is. */
static void hint_where(struct error *line, const struct report_quarantine *moved)
{
	if (!moved->id)
		error_hint(line, "it is now %s", moved->to);
	else if (strlen(moved->to) < sizeof(line->hint) - 100)
		error_hint(line, "it is now %s; back with: carrel quarantine restore %s",
			moved->to, moved->id);
	else
		error_hint(line,
			"carrel quarantine show %s says where it is now; back with: carrel quarantine restore %s",
			moved->id, moved->id);
}

void newpath_report(const struct report_quarantine *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct report_quarantine *moved = &list[i];
		struct error line = { 0 };
		(void)error_set(&line, ERROR_TEARDOWN, "close", 0, moved->path,
			"quarantined, since the host would obey it");

		if (moved->to)
			hint_where(&line, moved);
		else
			error_hint(&line,
				"it was removed: the disk has no room for another name of it");
		(void)error_report(&line);
	}
}

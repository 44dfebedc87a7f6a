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
	if (what->workspace && !strcmp(path, what->workspace) &&
		(fstat(fd, &st) < 0 || st.st_dev != what->workspace_dev ||
			st.st_ino != what->workspace_ino))
		return -ESTALE;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* is_gone - there is no such directory any more, or it is another, long after the session. */
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

/* is_of_git - is the path in a git directory? What else was absent is never plain. */
static bool is_of_git(const char *path)
{
	const char *name = strrchr(path, '/');
	static const char dir[] = "/.git/";

	return name && name - path >= (ptrdiff_t)sizeof(dir) - 2 &&
		strncmp(name - (sizeof(dir) - 2), dir, sizeof(dir) - 1) == 0;
}

/* is_plain - does there stand what `git init` writes, and nothing that obeys a tool? */
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

/* Whether a protected path is still the thing that was protected, and no link leads to it. */
static bool is_same(const struct kept_path *kept)
{
	struct stat st;
	autofd int fd = sys_openat2(AT_FDCWD, kept->path, O_PATH | O_NOFOLLOW,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd == -ENOENT || fd == -ENOTDIR)
		return true; /* gone: nobody obeys what is not there */
	return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == kept->dev &&
		st.st_ino == kept->ino;
}

/*
 * A protected thing that was renamed away on the host took its protection with it, and no event
 * tells: what stands in its place may be the tools'.
 */
static int add_replaced(struct closer *c)
{
	int r = 0;

	for (size_t i = 0; i < c->what->kept_count && r >= 0; i++)
		if (!is_same(&c->what->kept[i]))
			r = add_item(c, c->what->kept[i].root, c->what->kept[i].path, 0);
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

/* What no mount could prevent and git on the host would obey: docs/git.md. */
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
	/* Where it has not come to its end, that is an error; what it found is taken away all the same. */
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

/* The first is the caller's to tell; one that asks for no error, as a run's sweep, tries again another time. */
static void report_standing(struct closer *c, const struct quarantine_move *m)
{
	struct error line = { 0 };
	const char *path = arena_format(c->arena, "%s/%s", m->item->root, m->from);
	(void)error_set(&line, ERROR_TEARDOWN, "close", m->errnum, path ? path : m->from,
		"cannot move to quarantine what appeared at a protected path");

	if (c->e && strcmp(c->e->on, line.on) != 0)
		(void)error_report(&line);
}

/* What still stands is no part of it: that is an error, and told as one. */
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
	/* What could be listed is dealt with, whatever else failed. */
	int checked = quarantine_check(c.items, c.count, what->session_id, &found, e);
	close_items(&c);
	int reported = report_moves(&c, &found, ret_moved, ret_count);
	if (reported < 0)
		reported = no_memory(&c);
	r = r < 0 ? r : replaced;
	return r < 0 ? r : reviewed < 0 ? reviewed : checked < 0 ? checked : reported;
}

void newpath_report(const struct report_quarantine *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct report_quarantine *moved = &list[i];
		struct error line = { 0 };
		(void)error_set(&line, ERROR_TEARDOWN, "close", 0, moved->path,
			"quarantined, since the host would obey it");

		if (moved->to)
			error_hint(&line, "it is now %s", moved->to);
		else
			error_hint(&line,
				"it was removed: the disk has no room for another name of it");
		(void)error_report(&line);
	}
}

/*
 * match.c - see match.h.
 *
 * Runs in: the launcher and carrel-policy, outside. One component after the other: the cost is
 * bounded by the directories that the pattern names.
 */
#include "host/facts/match.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/glob.h"
#include "host/tree/beneath.h"

struct list {
	const char **paths;
	size_t count, most;
	int root; /* paths are relative to it, and no link is followed; -1: they are absolute */
	struct arena *arena;
};

static int list_path(struct list *l, const char *directory, const char *name)
{
	const char **grown;
	bool slash = l->root < 0 || *directory;

	if (l->count >= l->most)
		return -E2BIG;
	grown = arena_push(l->arena, (void *)l->paths, l->count, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	l->paths = grown;
	l->paths[l->count] = arena_format(l->arena, slash ? "%s/%s" : "%s%s", directory, name);
	return l->paths[l->count++] ? 0 : -ENOMEM;
}

/* The component without its backslashes, where it has no wild card; false where it has one. */
static bool is_literal(const char *component, char *ret_name)
{
	for (; *component; component++) {
		if (strchr("*?[", *component))
			return false;
		if (*component == '\\' && component[1])
			component++;
		*ret_name++ = *component;
	}
	*ret_name = '\0';
	return true;
}

static int match_in(struct list *l, const char *directory, const char *component)
{
	_Alignas(struct beneath_entry) char buffer[2048];
	struct beneath_entry *entry;
	const int flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK;
	autofd int fd = l->root < 0
		? fd_open_at(AT_FDCWD, *directory ? directory : "/", flags, 0)
		: beneath_open(l->root, *directory ? directory : ".", flags | O_NOFOLLOW,
			  BENEATH_SAME_MOUNT);
	struct beneath_list names = { .fd = fd, .buffer = buffer, .size = sizeof(buffer) };
	int r = 0, more;

	/* Else nothing is there, or nothing that we may see. */
	if (fd < 0)
		return error_is_own(-fd) ? fd : 0;
	while (r >= 0 && (more = beneath_next(&names, &entry)) != 0) {
		if (more < 0)
			return more == -ENOENT ? 0 : more; /* it was removed meanwhile */
		if (glob_name_fits(
			    component, strlen(component), entry->name, strlen(entry->name)))
			r = list_path(l, directory, entry->name);
	}
	return r;
}

/* One component further, in each directory that matched so far. */
static int match_component(struct list *l, const char *component)
{
	struct list next = { .arena = l->arena, .most = l->most, .root = l->root };
	char name[NAME_MAX + 1];
	bool literal = is_literal(component, name);
	int r = 0;

	for (size_t i = 0; i < l->count && r >= 0; i++)
		r = literal ? list_path(&next, l->paths[i], name)
			    : match_in(&next, l->paths[i], component);
	*l = next;
	return r;
}

/* 1, 0 or -errno. */
static int is_there(const struct list *l, const char *path)
{
	struct stat st;
	autofd int fd = l->root < 0
		? -1
		: beneath_open(l->root, path, O_PATH | O_NOFOLLOW, BENEATH_SAME_MOUNT);
	int r = l->root >= 0 ? fd : lstat(path, &st) < 0 ? -errno : 0;

	return r >= 0 ? 1 : error_is_own(-r) ? r : 0;
}

static int match(struct list *l, const char *pattern)
{
	char component[NAME_MAX + 1];
	size_t kept = 0;
	int r = 0;

	l->paths = arena_push(l->arena, NULL, 0, sizeof(*l->paths));
	if (!l->paths)
		return -ENOMEM;
	l->paths[l->count++] = ""; /* the root, without its slash */
	while (*pattern && r >= 0) {
		size_t skip = strspn(pattern, "/"), n = strcspn(pattern + skip, "/");

		if (n >= sizeof(component))
			return -ENAMETOOLONG;
		memcpy(component, pattern + skip, n);
		component[n] = '\0';
		if (n)
			r = match_component(l, component);
		pattern += skip + n;
	}
	/* A literal end was taken as written: only what is there counts. */
	for (size_t i = 0; i < l->count && r >= 0; i++) {
		r = *l->paths[i] ? is_there(l, l->paths[i]) : 0;
		if (r > 0)
			l->paths[kept++] = l->paths[i];
	}
	l->count = kept;
	return r < 0 ? r : 0;
}

int match_paths(
	struct arena *a, const char *pattern, const char ***ret_paths, size_t *ret_count)
{
	struct list l = { .arena = a, .most = MATCH_MAX, .root = -1 };
	int r = match(&l, pattern);

	if (r < 0)
		return r;
	*ret_paths = l.paths;
	*ret_count = l.count;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int match_beneath(struct arena *a, int dir, const char *pattern, const char ***ret_paths,
	size_t *ret_count)
{
	struct list l = { .arena = a, .most = MATCH_BENEATH_MAX, .root = dir };
	int r = match(&l, pattern);

	if (r < 0)
		return r;
	qsort(l.paths, l.count, sizeof(*l.paths), by_name);
	*ret_paths = l.paths;
	*ret_count = l.count;
	return 0;
}

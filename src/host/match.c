/*
 * match.c - see match.h.
 *
 * Runs in: the launcher and carrel-policy, outside. One component after the other: the cost is
 * bounded by the directories that the pattern names.
 */
#include "host/match.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

struct list {
	const char **paths;
	size_t count;
	struct arena *arena;
};

static int put(struct list *l, const char *directory, const char *name)
{
	const char **grown;

	if (l->count >= MATCH_MAX)
		return -E2BIG;
	grown = arena_push(l->arena, (void *)l->paths, l->count, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	l->paths = grown;
	l->paths[l->count] = arena_format(l->arena, "%s/%s", directory, name);
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
	struct dirent *entry;
	int fd = fd_open_at(
		AT_FDCWD, *directory ? directory : "/", O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int r = 0;

	if (!dir) {
		fd_close(&fd);
		return 0; /* nothing there, or nothing that we may see */
	}
	while (r >= 0 && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			fnmatch(component, entry->d_name, FNM_PERIOD) == 0)
			r = put(l, directory, entry->d_name);
	(void)closedir(dir);
	return r;
}

/* One component further, in each directory that matched so far. */
static int match_component(struct list *l, const char *component)
{
	struct list next = { .arena = l->arena };
	char name[NAME_MAX + 1];
	bool literal = is_literal(component, name);
	int r = 0;

	for (size_t i = 0; i < l->count && r >= 0; i++)
		r = literal ? put(&next, l->paths[i], name)
			    : match_in(&next, l->paths[i], component);
	*l = next;
	return r;
}

static bool is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

int match_paths(
	struct arena *a, const char *pattern, const char ***ret_paths, size_t *ret_count)
{
	struct list l = { .arena = a };
	char component[NAME_MAX + 1];
	int r = 0;

	l.paths = arena_push(a, NULL, 0, sizeof(*l.paths));
	if (!l.paths)
		return -ENOMEM;
	l.paths[l.count++] = ""; /* the root, without its slash */
	while (*pattern && r >= 0) {
		size_t skip = strspn(pattern, "/"), n = strcspn(pattern + skip, "/");

		if (n >= sizeof(component))
			return -ENAMETOOLONG;
		memcpy(component, pattern + skip, n);
		component[n] = '\0';
		if (n)
			r = match_component(&l, component);
		pattern += skip + n;
	}
	if (r < 0)
		return r;
	/* A literal end was taken as written: only what is there counts. */
	size_t kept = 0;
	for (size_t i = 0; i < l.count; i++)
		if (is_there(l.paths[i]))
			l.paths[kept++] = l.paths[i];
	*ret_paths = l.paths;
	*ret_count = kept;
	return 0;
}

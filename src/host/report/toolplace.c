/*
 * toolplace.c - see toolplace.h.
 *
 * Runs in: the launcher and the client, outside.
 */
#include "host/report/toolplace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/facts/facts.h"
#include "host/facts/resolve.h"
#include "host/tree/plainfile.h"
#include "plan/path.h"

enum { ARENA_SIZE = 1 << 20 };

static bool is_of_tools(const struct toolplace *p, const char *path)
{
	for (size_t i = 0; i < p->count; i++)
		if (path_below(p->dirs[i], path))
			return true;
	return false;
}

static int refuse_place(struct error *e, const char *target, const char *what)
{
	int r = error_set(e, ERROR_REPORT, "report", ERROR_OWN(ELOOP), target, "%s", what);

	error_hint(e, "name the directory that is meant, or pass a descriptor (fd:N)");
	return r;
}

/* The leading @length bytes of @target, absolute; NULL: no memory, or the working directory has no path. */
static const char *written(struct arena *a, const char *target, size_t length)
{
	const char *dir = arena_copy(a, target, length);
	const char *cwd = target[0] == '/' ? NULL : facts_cwd(a);

	if (!dir || target[0] == '/')
		return dir;
	return cwd ? arena_join(a, cwd, '/', dir) : NULL;
}

/* @here: the directory that was opened, where tools cannot write: no link that they can make may have led to it. */
static int check_way(const struct toolplace *p, struct arena *a, const char *target,
	size_t length, const char *here, struct error *e)
{
	struct resolver res = { .arena = a };
	struct resolved found;
	const char *dir = written(a, target, length);
	int r = dir ? resolve_path(&res, dir, 0, &found) : -ENOMEM;

	resolve_done(&res);
	if (r < 0)
		return error_set(e, ERROR_REPORT, "report", -r, target,
			"cannot look at the report's directory");
	for (size_t i = 0; i < res.link_count; i++)
		if (is_of_tools(p, res.links[i].path))
			return refuse_place(e, target,
				"a link that tools may have made leads to the report's directory");
	return strcmp(found.path, here) != 0
		? refuse_place(
			  e, target, "the report's directory was replaced while it was opened")
		: 0;
}

/* The canonical path of @dirfd. */
static int find_here(struct arena *a, int dirfd, const char **ret)
{
	char way[40], *here = arena_alloc(a, PATH_MAX);

	(void)snprintf(way, sizeof(way), "/proc/self/fd/%d", dirfd);
	ssize_t n = here ? readlink(way, here, PATH_MAX - 1) : -1;
	*ret = here;
	return !here ? -ENOMEM : n < 0 ? -errno : 0;
}

int toolplace_check_dir(const struct toolplace *p, const char *target, size_t length, int dirfd,
	bool *ret_of_tools, struct error *e)
{
	struct arena a;
	const char *here;
	int r = arena_init(&a, ARENA_SIZE);

	if (r < 0)
		return error_set(e, ERROR_LIMIT, "report", -r, target, "out of memory");
	r = find_here(&a, dirfd, &here);
	if (r < 0) /* without /proc there is no session */
		r = error_set(e, ERROR_REPORT, "report", -r, target,
			"cannot look at the report's directory");
	else if (is_of_tools(p, here))
		*ret_of_tools = true;
	else
		r = check_way(p, &a, target, length, here, e);
	arena_free(&a);
	return r;
}

static int refuse_source(struct error *e, const char *file, const char *what)
{
	int r = error_set(e, ERROR_PATH, "session", 0, file, "%s", what);

	error_hint(e, "name the file that is meant, or give it on standard input");
	return r;
}

/* @place: the file that @file led to when it was opened; @ret_of_tools: tools may have made it. */
static int check_file(const struct toolplace *p, struct arena *a, const char *file, int place,
	bool *ret_of_tools, struct error *e)
{
	struct resolver res = { .arena = a };
	struct resolved found;
	struct stat st;
	const char *path = written(a, file, strlen(file));
	int r = path ? resolve_path(&res, path, 0, &found) : -ENOMEM;
	bool passed = false;

	resolve_done(&res);
	if (r >= 0 && fstat(place, &st) < 0)
		r = -errno;
	if (r < 0)
		return error_set(e, ERROR_PATH, "session", -r, file, "cannot look at the file");
	for (size_t i = 0; i < res.link_count; i++)
		passed |= is_of_tools(p, res.links[i].path);
	*ret_of_tools = is_of_tools(p, found.path);
	if (passed && !*ret_of_tools)
		return refuse_source(
			e, file, "a link that tools may have made leads to this file");
	if (*ret_of_tools &&
		(!found.exists || found.st.st_dev != st.st_dev || found.st.st_ino != st.st_ino))
		return refuse_source(e, file, "the file was replaced while it was opened");
	return 0;
}

int toolplace_open(
	const struct toolplace *p, struct arena *a, const char *file, struct error *e)
{
	bool of_tools = false;
	autofd int place = fd_open_at(AT_FDCWD, file, O_PATH, 0);
	int r = place < 0 ? 0 : check_file(p, a, file, place, &of_tools, e);

	if (r < 0)
		return r;
	/* No tool can have made this FIFO, so that waiting for its writer is the caller's choice. */
	int fd = place < 0 ? place
		: of_tools ? plainfile_reopen(place)
			   : fd_open_at(AT_FDCWD, file, O_RDONLY, 0);
	if (fd == -EINVAL && of_tools)
		return error_set(e, ERROR_PATH, "session", 0, file, "this is not a file");
	return fd < 0 ? error_set(e, ERROR_PATH, "session", -fd, file, "cannot read this file")
		      : fd;
}

int toolplace_of(struct toolplace *ret, struct arena *a, const struct facts *facts)
{
	const char **dirs = arena_array(a, facts->path_count + 1, sizeof(*dirs));
	size_t count = 0;

	if (!dirs)
		return -ENOMEM;
	dirs[count] = facts->workspace ? facts->workspace : facts_cwd(a);
	count += dirs[count] != NULL;
	for (size_t i = 0; i < facts->path_count; i++)
		if (facts->paths[i].exists &&
			(facts->paths[i].rule->kind == PATH_WRITE ||
				facts->paths[i].rule->kind == PATH_BIND_RW))
			dirs[count++] = facts->paths[i].source;
	*ret = (struct toolplace){ dirs, count };
	return 0;
}

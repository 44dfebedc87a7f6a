/*
 * promote_dest.c - see promote_dest.h.
 *
 * Runs in: the supervisor and the client (host side).
 */
#include "host/promote/promote_dest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/sys.h"
#include "host/promote/promote.h"
#include "host/promote/promote_temp.h"
#include "host/tree/beneath.h"
#include "plan/path.h"

struct opening {
	struct arena *arena;
	const struct promote_guard *guard;
	const struct promote_root *root;
	const char *requested;
	char *rest; /* of `requested`, below the root: names with one '/' between, none is ".." */
	bool is_dir; /* a slash at the end says so */
	struct error *e;
};

static int dest_error(struct opening *o, int errnum, const char *what)
{
	return error_set(o->e, ERROR_PROMOTE, "promote", errnum, o->requested, "%s", what);
}

static int fail_open(struct opening *o, int r)
{
	if (r == -ELOOP)
		return dest_error(o, ERROR_OWN(ELOOP),
			"the path of the destination leads through a symbolic link");
	return dest_error(o, -r, "cannot open the destination");
}

static int fail_missing(struct opening *o, int r)
{
	if (r == -ENOENT)
		error_hint(o->e, "make the directory first");
	return fail_open(o, r);
}

/* --- which root -------------------------------------------------------------------------------- */

/* Find the root by name: the innermost one that @requested lies in. Returns the rest of the path. */
static const char *find_by_name(struct opening *o)
{
	const char *best = NULL;

	for (size_t i = 0; i < o->guard->root_count; i++) {
		const char *rest = path_below(o->guard->roots[i].path, o->requested);

		if (rest && (!best || rest > best)) {
			best = rest;
			o->root = &o->guard->roots[i];
		}
	}
	return best;
}

/* Find the root through links of the user's own: the first leading part that is a root. */
static const char *find_by_identity(struct opening *o)
{
	const char *requested = o->requested;
	struct stat st;

	for (size_t end = 1 + strcspn(requested + 1, "/");;
		end += 1 + strcspn(requested + end + 1, "/")) {
		const char *prefix = arena_copy(o->arena, requested, end);

		if (!prefix || stat(prefix, &st) < 0)
			return NULL;
		for (size_t i = 0; i < o->guard->root_count; i++)
			if (o->guard->roots[i].dev == st.st_dev &&
				o->guard->roots[i].ino == st.st_ino) {
				o->root = &o->guard->roots[i];
				return requested + end;
			}
		if (!requested[end])
			return NULL;
	}
}

/* The names of @rest, without empty ones and ".". */
static int clean_rest(struct opening *o, const char *rest)
{
	size_t used = 0;
	char *clean = arena_alloc(o->arena, strlen(rest) + 1);

	if (!clean)
		return dest_error(o, ERROR_OWN(ENOMEM), "out of memory");
	for (; *rest; rest += rest[0] == '/') {
		size_t n = strcspn(rest, "/");

		if (n == 2 && rest[0] == '.' && rest[1] == '.')
			return dest_error(
				o, ERROR_OWN(EINVAL), "'..' is not followed in a destination");
		if (n > 0 && !(n == 1 && rest[0] == '.')) {
			if (used)
				clean[used++] = '/';
			memcpy(clean + used, rest, n);
			used += n;
		}
		o->is_dir = rest[n] == '/' || (n == 1 && rest[0] == '.');
		rest += n;
	}
	clean[used] = '\0';
	o->rest = clean;
	return 0;
}

static int find_root(struct opening *o)
{
	if (o->requested[0] != '/')
		return dest_error(
			o, ERROR_OWN(EINVAL), "a destination is named by its absolute path");
	const char *rest = find_by_name(o);

	if (!rest)
		rest = find_by_identity(o);
	if (rest)
		return clean_rest(o, rest);
	int r = dest_error(o, ERROR_OWN(EPERM), "artifacts cannot be promoted there");
	error_hint(o->e, "name a directory of the workspace, or one that `promote-to` names");
	return r;
}

/* The root must still be the directory that it was when the session began. */
static int open_root(struct opening *o, int *ret_fd)
{
	struct stat st;
	autofd int fd = sys_openat2(AT_FDCWD, o->root->path, O_RDONLY | O_DIRECTORY,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd < 0)
		return fail_open(o, fd);
	if (fstat(fd, &st) < 0 || st.st_dev != o->root->dev || st.st_ino != o->root->ino)
		return dest_error(
			o, ERROR_OWN(ESTALE), "the directory was replaced by another one");
	*ret_fd = take_fd(&fd);
	return 0;
}

/* --- the directory ----------------------------------------------------------------------------- */

static int open_dir(int fd, const char *path)
{
	/* Without O_NOFOLLOW a link at the end is refused as one: ELOOP, not ENOTDIR. */
	return beneath_open(fd, *path ? path : ".", O_RDONLY | O_DIRECTORY, BENEATH_ANY_MOUNT);
}

static const char *whole(struct opening *o, const char *rest)
{
	return *rest ? arena_join(o->arena, o->root->path, '/', rest) : o->root->path;
}

/* Makes one missing directory; @upto: bytes of `rest` up to its end. */
static int make_dir(struct opening *o, int parent, const char *name, size_t upto)
{
	const char *rest = arena_copy(o->arena, o->rest, upto);
	const char *path = rest ? whole(o, rest) : NULL;

	if (!path)
		return dest_error(o, ERROR_OWN(ENOMEM), "out of memory");
	int r = promote_guard_check(o->guard, path, o->e);
	if (r < 0)
		return r;
	if (mkdirat(parent, name, 0777) < 0 && errno != EEXIST)
		return dest_error(o, errno, "cannot make the destination");
	return fsync(parent) < 0 && errno != EINVAL
		? dest_error(o, errno, "cannot flush the destination to the disk")
		: 0;
}

/* Opens `rest` one name after the other, and makes what is missing. */
static int open_making(struct opening *o, int *fd)
{
	for (size_t at = 0; o->rest[at];) {
		size_t n = strcspn(o->rest + at, "/");
		const char *name = arena_copy(o->arena, o->rest + at, n);

		if (!name)
			return dest_error(o, ERROR_OWN(ENOMEM), "out of memory");
		autofd int next = open_dir(*fd, name);
		if (next == -ENOENT) {
			int r = make_dir(o, *fd, name, at + n);

			if (r < 0)
				return r;
			next = open_dir(*fd, name);
		}
		if (next < 0)
			return fail_open(o, next);
		fd_close(fd);
		*fd = take_fd(&next);
		at += n + (o->rest[at + n] == '/');
	}
	return 0;
}

/* Like mv: a directory that is there, or else a new name in the one above. */
static int open_either(struct opening *o, int *fd, const char **ret_name)
{
	struct stat st;
	char *slash = strrchr(o->rest, '/');
	char *name = slash ? slash + 1 : o->rest;
	const char *above =
		slash ? arena_copy(o->arena, o->rest, (size_t)(slash - o->rest)) : "";
	autofd int dir = above ? open_dir(*fd, above) : -ENOMEM;

	if (dir < 0)
		return fail_missing(o, dir);
	fd_close(fd);
	if (*name && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
		return fail_open(o, -errno);
	bool exists = *name && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (*name && (!exists || !S_ISDIR(st.st_mode)) && !o->is_dir) {
		*ret_name = name;
		if (slash)
			*slash = '\0';
		else
			o->rest = arena_copy(o->arena, "", 0);
		*fd = take_fd(&dir);
		return o->rest ? 0 : dest_error(o, ERROR_OWN(ENOMEM), "out of memory");
	}
	*fd = open_dir(dir, name);
	return *fd < 0 ? fail_missing(o, *fd) : 0;
}

static int open_all(
	struct opening *o, enum promote_dest_kind kind, int *fd, const char **ret_name)
{
	int r = open_root(o, fd);

	if (r < 0)
		return r;
	if (kind == PROMOTE_DEST_EITHER)
		return open_either(o, fd, ret_name);
	if (kind == PROMOTE_DEST_MAKE)
		return open_making(o, fd);
	autofd int dir = open_dir(*fd, o->rest);
	if (dir < 0)
		return fail_open(o, dir);
	fd_close(fd);
	*fd = take_fd(&dir);
	return 0;
}

int promote_dest_open(struct promote_dest *ret, struct arena *a, const struct promote_guard *g,
	const char *requested, enum promote_dest_kind kind, struct error *e)
{
	struct opening o = { .arena = a, .guard = g, .requested = requested, .e = e };
	const char *name = NULL;
	autofd int fd = -1;
	int r = find_root(&o);

	if (r == 0)
		r = open_all(&o, kind, &fd, &name);
	if (r < 0)
		return r;
	const char *path = whole(&o, o.rest);
	if (!path)
		return dest_error(&o, ERROR_OWN(ENOMEM), "out of memory");
	r = promote_guard_check_inside(g, a, path, e);
	if (r < 0)
		return r;
	promote_temp_sweep(fd);
	*ret = (struct promote_dest){ .fd = take_fd(&fd),
		.path = path,
		.name = name,
		.shared = o.root == &g->roots[0] && g->mode == WORKSPACE_DIRECT };
	return 0;
}

/* The last name of a path, without slashes behind it. NULL: no memory. */
static const char *last_name(struct arena *a, const char *path)
{
	size_t length = strlen(path);

	while (length > 0 && path[length - 1] == '/')
		length--;
	size_t at = length;
	while (at > 0 && path[at - 1] != '/')
		at--;
	return arena_copy(a, path + at, length - at);
}

int promote_into(const struct promote_dest *d, struct arena *a, const struct promote_guard *g,
	int scratch_fd, const char *source, const struct promote_options *o, bool live,
	struct promote_result *ret, const char **ret_path, struct error *e)
{
	const char *name = d->name ? d->name : last_name(a, source);
	const char *path = name ? arena_join(a, d->path, '/', name) : NULL;
	struct promote_options options = *o;

	*ret_path = path;
	if (!path)
		return error_set(e, ERROR_PROMOTE, "promote", ERROR_OWN(ENOMEM), source,
			"out of memory");
	int r = promote_guard_check(g, path, e);
	if (r < 0)
		return r;
	options.apart = live && !d->shared;
	const struct promote_place to = { .fd = d->fd, .path = d->path, .name = name };
	return promote(scratch_fd, source, &to, &options, ret, e);
}

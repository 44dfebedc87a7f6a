/*
 * resolve.c - see resolve.h.
 *
 * Runs in: the launcher, outside. The common case, a path without links, takes one
 * system call or none; only a path with links is walked component by component.
 */
#include "host/facts/resolve.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/sys.h"
#include "host/facts/known_dirs.h"
#include "plan/path.h"

enum { LINKS_MAX = 40 }; /* as the kernel's own bound */

struct resolve_walk {
	struct resolver *owner;
	char done[PATH_MAX / 2]; /* canonical so far, "" for the root */
	char rest[PATH_MAX / 2]; /* still to be followed */
	char target[PATH_MAX / 4];
	size_t length; /* of done */
	bool missing;
	unsigned followed;
};

static int stat_exact(const char *path, bool follow_last, struct stat *ret)
{
	autofd int fd = sys_openat2(AT_FDCWD, path, O_PATH | (follow_last ? 0 : O_NOFOLLOW),
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd < 0)
		return fd;
	return fstat(fd, ret) < 0 ? -errno : 0;
}

static bool is_odd(const char *name, size_t length)
{
	return length == 0 || (name[0] == '.' && length == 1) ||
		(name[0] == '.' && name[1] == '.' && length == 2);
}

/*
 * Absolute, without "//", "." and ".." components and without a '/' at the end. @ret_parent: the length
 * of the directory it lies in. Returns its length, 0 where it is written otherwise.
 */
static size_t plain_length(const char *path, size_t *ret_parent)
{
	size_t begin = 1, end = 1;

	if (path[0] != '/')
		return 0;
	for (; path[end]; end++) {
		if (path[end] != '/')
			continue;
		if (is_odd(path + begin, end - begin))
			return 0;
		begin = end + 1;
	}
	if (end > 1 && is_odd(path + begin, end - begin))
		return 0;
	*ret_parent = begin > 1 ? begin - 1 : 1;
	return end;
}

static int note_link(struct resolve_walk *w, size_t target_length)
{
	struct resolver *o = w->owner;

	for (size_t i = 0; i < o->link_count; i++)
		if (!strcmp(o->links[i].path, w->done))
			return 0;
	struct link_fact *grown = arena_push(o->arena, o->links, o->link_count, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	o->links = grown;
	o->links[o->link_count] = (struct link_fact){
		.path = arena_copy(o->arena, w->done, w->length),
		.target = arena_copy(o->arena, w->target, target_length),
	};
	if (!o->links[o->link_count].path || !o->links[o->link_count].target)
		return -ENOMEM;
	o->link_count++;
	return 0;
}

/* Put the link's text in front of what is left to follow. */
static int splice_target(struct resolve_walk *w, size_t target_length, size_t parent)
{
	size_t rest = strlen(w->rest);

	if (++w->followed > LINKS_MAX)
		return -ELOOP;
	if (target_length + rest + 2 > sizeof(w->rest))
		return -ENAMETOOLONG;
	memmove(w->rest + target_length + 1, w->rest, rest + 1);
	memcpy(w->rest, w->target, target_length);
	w->rest[target_length] = '/';
	w->length = w->target[0] == '/' ? 0 : parent;
	w->done[w->length] = '\0';
	return 0;
}

/* One component, of @n bytes, has been cut from the front of rest and lies in target. */
static int walk_component(struct resolve_walk *w, size_t n, bool last, bool follow_last)
{
	size_t parent = w->length;

	if (n == 1 && w->target[0] == '.')
		return 0;
	if (n == 2 && w->target[0] == '.' && w->target[1] == '.') {
		while (w->length && w->done[--w->length] != '/')
			;
		w->done[w->length] = '\0';
		return 0;
	}
	if (w->length + n + 2 > sizeof(w->done))
		return -ENAMETOOLONG;
	w->done[w->length++] = '/';
	memcpy(w->done + w->length, w->target, n);
	w->length += n;
	w->done[w->length] = '\0';
	if (w->missing || (last && !follow_last))
		return 0;
	ssize_t t = readlink(w->done, w->target, sizeof(w->target) - 1);
	if (t < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		w->missing = true;
		return 0;
	}
	if (t < 0)
		return errno == EINVAL ? 0 : -errno;
	if ((size_t)t >= sizeof(w->target) - 1)
		return -ENAMETOOLONG;
	int r = note_link(w, (size_t)t);
	return r < 0 ? r : splice_target(w, (size_t)t, parent);
}

static int walk_all(struct resolve_walk *w, bool follow_last)
{
	for (;;) {
		size_t skip = strspn(w->rest, "/");
		size_t n = strcspn(w->rest + skip, "/");

		if (!n)
			return 0;
		if (n >= sizeof(w->target))
			return -ENAMETOOLONG;
		memcpy(w->target, w->rest + skip, n);
		w->target[n] = '\0';
		memmove(w->rest, w->rest + skip + n, strlen(w->rest + skip + n) + 1);
		bool last = w->rest[strspn(w->rest, "/")] == '\0';
		int r = walk_component(w, n, last, follow_last);
		if (r < 0)
			return r;
	}
}

/* Find how many leading bytes of @path exist. @path itself does not, and has no links up to there. */
static int find_prefix(struct resolve_walk *w, const char *path, size_t *ret_length)
{
	size_t length = strlen(path);

	if (length >= sizeof(w->done))
		return -ENAMETOOLONG;
	memcpy(w->done, path, length + 1);
	while (length > 1) {
		struct stat st;

		length = path_parent_length(w->done);
		w->done[length] = '\0';
		int r = stat_exact(w->done, true, &st);
		if (r != -ENOENT && r != -ENOTDIR) {
			*ret_length = length;
			return r;
		}
	}
	*ret_length = 1;
	return 0;
}

static int walk_from_start(
	struct resolve_walk *w, const char *requested, unsigned flags, struct resolved *ret)
{
	size_t size = strlen(requested) + 1;
	bool follow = !(flags & RESOLVE_KEEP_LAST);

	if (size > sizeof(w->rest))
		return -ENAMETOOLONG;
	memcpy(w->rest, requested, size);
	w->length = 0;
	w->followed = 0;
	w->missing = false;
	int r = walk_all(w, follow);
	if (r < 0)
		return r;
	ret->path = w->length ? arena_copy(w->owner->arena, w->done, w->length) : "/";
	if (!ret->path)
		return -ENOMEM;
	r = w->missing ? -ENOENT : stat_exact(ret->path, follow, &ret->st);
	return r;
}

static struct arena *local_memory(const struct resolver *r)
{
	return r->local ? r->local : r->arena;
}

static struct resolve_walk *walk_memory(struct resolver *r)
{
	if (!r->walk)
		r->walk = arena_alloc(local_memory(r), sizeof(*r->walk));
	if (r->walk)
		r->walk->owner = r;
	return r->walk;
}

static struct known_dirs *known(struct resolver *r)
{
	if (!r->dirs)
		r->dirs = arena_alloc(local_memory(r), sizeof(*r->dirs));
	if (r->dirs)
		r->dirs->arena = local_memory(r);
	return r->dirs;
}

/* A path that may be canonical as it is: one look. -ELOOP: it has links, or is written oddly. */
static int look_up(
	struct resolver *resolver, const char *requested, bool follow, struct resolved *ret)
{
	struct known_dirs *dirs = known(resolver);

	if (!dirs)
		return -ENOMEM;
	size_t parent, length = plain_length(requested, &parent);
	if (!length)
		return -ELOOP;
	if (length == 1 || length >= KNOWN_PATH_MAX)
		return stat_exact(requested, follow, &ret->st);
	int r;
	if (requested == resolver->looked_at) {
		r = resolver->seen_result;
		*ret = resolver->seen;
	} else {
		r = known_dirs_stat(dirs, requested, parent, &ret->st, &ret->existing);
	}
	return r == 0 && follow && S_ISLNK(ret->st.st_mode) ? -ELOOP : r;
}

/* The same for any path, one component after the other. */
static int walk(
	struct resolver *resolver, const char *requested, unsigned flags, struct resolved *ret)
{
	struct resolve_walk *w = walk_memory(resolver);
	int r = w ? walk_from_start(w, requested, flags, ret) : -ENOMEM;

	if ((r == -ENOENT || r == -ENOTDIR) && (flags & RESOLVE_PREFIX)) {
		int found = find_prefix(w, ret->path, &ret->existing);

		return found < 0 ? found : r;
	}
	return r;
}

int resolve_path(
	struct resolver *resolver, const char *requested, unsigned flags, struct resolved *ret)
{
	struct resolved found = { .path = requested };

	if (requested[0] != '/')
		return -EINVAL;
	int r = look_up(resolver, requested, !(flags & RESOLVE_KEEP_LAST), &found);
	/* -ENOENT and not -ELOOP: no link is on the way, and the path is canonical as it is. */
	if (r == -ELOOP)
		r = walk(resolver, requested, flags, &found);
	if (r < 0 && r != -ENOENT && r != -ENOTDIR)
		return r;
	found.exists = r == 0;
	if (found.exists)
		found.existing = strlen(found.path);
	else if (!(flags & RESOLVE_PREFIX))
		found.existing = 0;
	else if (!found.existing)
		return -ENAMETOOLONG;
	*ret = found;
	return 0;
}

bool resolve_is_absent(struct resolver *resolver, const char *path)
{
	struct resolved found = { .path = path };
	struct stat st;

	resolver->looked_at = NULL;
	int r = look_up(resolver, path, false, &found);
	if (r == -ELOOP)
		r = lstat(path, &st) < 0 ? -errno : 0;
	else
		resolver->looked_at = path;
	resolver->seen = found;
	resolver->seen_result = r;
	return r == -ENOENT || r == -ENOTDIR;
}

void resolve_done(struct resolver *r)
{
	r->looked_at = NULL;
	if (r->dirs)
		known_dirs_close(r->dirs);
}

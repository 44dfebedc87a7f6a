/*
 * known_dirs.c - see known_dirs.h.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#include "host/facts/known_dirs.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "box/sys.h"
#include "plan/path.h"

enum {
	LIST_AFTER = 16
}; /* questions that are answered one by one first: an entry costs one too */

static bool is_surely_absent(const struct known_dir *d, const char *name)
{
	return name_set_lacks(&d->names, name, strlen(name));
}

/* Whether @d is @path's leading @length bytes, or one above it that is not there. */
static bool answers(const struct known_dir *d, const char *path, size_t length)
{
	bool missing = d->fd == -ENOENT || d->fd == -ENOTDIR;
	bool above = missing && d->length < length && path[d->length] == '/';

	return (d->length == length || above) && memcmp(d->path, path, d->length) == 0;
}

static struct known_dir *find_dir(struct known_dirs *k, const char *path, size_t length)
{
	if (k->count && answers(&k->dirs[k->last], path, length))
		return &k->dirs[k->last];
	for (size_t i = 0; i < k->count; i++)
		if (answers(&k->dirs[i], path, length))
			return &k->dirs[i];
	return NULL;
}

static struct known_dir *add_dir(
	struct known_dirs *k, const char *path, size_t length, int fd, size_t existing)
{
	struct known_dir *d = &k->dirs[k->next];

	if (k->count < KNOWN_DIRS_MAX)
		d = &k->dirs[k->count++];
	else
		k->next = (k->next + 1) % KNOWN_DIRS_MAX;
	if (d->fd > 0)
		fd_close(&d->fd);
	*d = (struct known_dir){
		.path = path, .length = length, .fd = fd, .existing = existing
	};
	return d;
}

static size_t parent_length(const char *path, size_t length)
{
	while (length > 1 && path[length - 1] != '/')
		length--;
	return length > 1 ? length - 1 : 1;
}

/*
 * Open the leading @length bytes of @path, from @above unless that is NULL. O_DIRECTORY is not
 * needed: what is no directory says so when something is looked up in it.
 */
static int open_leading(const struct known_dir *above, const char *path, size_t length)
{
	char leading[KNOWN_PATH_MAX];
	size_t skip = !above ? 0 : above->length > 1 ? above->length + 1 : 1;

	if (length >= sizeof(leading))
		return -ENAMETOOLONG;
	memcpy(leading, path + skip, length - skip);
	leading[length - skip] = '\0';
	if (above && is_surely_absent(above, leading))
		return -ENOENT;
	return sys_openat2(above ? above->fd : AT_FDCWD, leading, O_PATH,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/* The same, from the directory above it if that is known. */
static int open_known(struct known_dirs *k, const char *path, size_t length)
{
	struct known_dir *above = find_dir(k, path, parent_length(path, length));

	if (above && above->fd < 0)
		return above->fd;
	return open_leading(length > 1 ? above : NULL, path, length);
}

/* The directory that is @path's leading @length bytes; where it is missing, the first one that is. */
static struct known_dir *enter_dir(struct known_dirs *k, const char *path, size_t length)
{
	struct known_dir *d = find_dir(k, path, length);
	int fd = d ? 0 : open_known(k, path, length);

	while (!d && (fd == -ENOENT || fd == -ENOTDIR) && length > 1) {
		size_t up = parent_length(path, length);

		d = find_dir(k, path, up);
		int above = d ? d->fd : open_known(k, path, up);
		if (above < 0 && !d) {
			fd = above;
			length = up;
			continue;
		}
		if (!d)
			d = add_dir(k, path, up, above, 0);
		if (d->fd >= 0)
			d = add_dir(k, path, length, fd, up);
	}
	return d ? d : add_dir(k, path, length, fd, 0);
}

int known_dirs_stat(struct known_dirs *k, const char *path, size_t parent, struct stat *ret,
	size_t *ret_existing)
{
	const char *name = path + (parent > 1 ? parent + 1 : 1);
	struct known_dir *d = enter_dir(k, path, parent);

	/* The descriptors kept here may be the ones that are too many. */
	if (d->fd == -EMFILE) {
		known_dirs_close(k);
		d = enter_dir(k, path, parent);
	}

	k->last = (size_t)(d - k->dirs);
	if (d->fd < 0) {
		*ret_existing = d->existing;
		return d->fd;
	}
	if (++d->lookups == LIST_AFTER)
		name_set_read(&d->names, k->arena, d->fd);
	*ret_existing = parent;
	if (is_surely_absent(d, name))
		return -ENOENT;
	return fstatat(d->fd, name, ret, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

void known_dirs_close(struct known_dirs *k)
{
	for (size_t i = 0; i < k->count; i++)
		if (k->dirs[i].fd >= 0)
			fd_close(&k->dirs[i].fd);
	k->count = k->next = k->last = 0;
}

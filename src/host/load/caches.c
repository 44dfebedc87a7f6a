/*
 * caches.c - see caches.h.
 *
 * Runs in: the launcher, outside.
 */
#include "host/load/caches.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

/*
 * Open @name, made where it is missing. Anybody else who could write there could put a link in the
 * place of a cache.
 */
static int open_own(int dir, const char *name, mode_t forbidden)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
	struct stat st;
	autofd int fd = fd_open_at(dir, name, flags, 0);

	if (fd == -ENOENT && (mkdirat(dir, name, 0700) == 0 || errno == EEXIST))
		fd = fd_open_at(dir, name, flags, 0);
	if (fd < 0)
		return fd == -ENOENT ? -errno : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_uid == geteuid() && !(st.st_mode & forbidden) ? take_fd(&fd) : -EPERM;
}

static int open_caches(const char *cache_home)
{
	autofd int home = fd_open_at(AT_FDCWD, cache_home, O_RDONLY | O_DIRECTORY, 0);

	/* The home may have no cache yet: this directory is made, and none above it. */
	if (home == -ENOENT && mkdir(cache_home, 0700) == 0)
		home = fd_open_at(AT_FDCWD, cache_home, O_RDONLY | O_DIRECTORY, 0);
	autofd int carrel = home < 0 ? home : open_own(home, "carrel", 022);

	return carrel < 0 ? carrel : open_own(carrel, "caches", 077);
}

static int fail(int r, const char *cache_home, const char *name, struct error *e)
{
	char path[1024];

	(void)snprintf(path, sizeof(path), "%s/carrel/caches%s%s", cache_home, name ? "/" : "",
		name ? name : "");
	int result =
		error_set(e, ERROR_PATH, "facts", r == -EPERM ? ERROR_OWN(EPERM) : -r, path,
			r == -EPERM ? "the cache is not a directory of the caller's alone"
				    : "cannot make the cache");
	error_hint(e, "XDG_CACHE_HOME says where caches are; without it ~/.cache");
	return result;
}

int caches_make(const struct policy *p, const char *cache_home, struct error *e)
{
	if (p->cache_count == 0)
		return 0;
	if (!cache_home)
		return error_set(e, ERROR_PATH, "facts", ERROR_OWN(ENOENT), p->caches[0].word,
			"there is no home that the cache could be in");
	autofd int caches = open_caches(cache_home);
	if (caches < 0)
		return fail(caches, cache_home, NULL, e);
	for (size_t i = 0; i < p->cache_count; i++) {
		autofd int fd = open_own(caches, p->caches[i].word, 077);

		if (fd < 0)
			return fail(fd, cache_home, p->caches[i].word, e);
	}
	return 0;
}

/*
 * cgroup_remove.c - the end of groups, and the groups of sessions that were killed; see cgroup.h.
 *
 * Runs in: the launcher and the supervisor, outside. May not: trust a name alone. A dead session's
 * group is one that is called carrel-<id>, belongs to the caller and is locked by nobody.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/session_name.h"
#include "host/cgroup/cgroup.h"
#include "host/cgroup/cgroup_place.h"
#include "host/tree/beneath.h"
#include "host/tree/plainfile.h"

#define CGROUP2_MAGIC 0x63677270
enum {
	WAIT_MS = 10000,
	REMOVE_ROUNDS = 4096,
	NEW_ABANDONED_S = 60, /* made but not locked yet: its maker needs less */
};

/* The first group below @dir: 1 with its name, 0 where there is none, or -errno. */
static int first_below(int dir, char *ret_name, size_t size)
{
	_Alignas(struct beneath_entry) char buffer[2048];
	struct beneath_list list = { .fd = dir, .buffer = buffer, .size = sizeof(buffer) };
	struct beneath_entry *entry;
	int r;

	if (lseek(dir, 0, SEEK_SET) < 0)
		return -errno;
	while ((r = beneath_next(&list, &entry)) > 0)
		if (entry->type == DT_DIR && strlen(entry->name) < size) {
			(void)snprintf(ret_name, size, "%s", entry->name);
			return 1;
		}
	return r;
}

/*
 * Remove the lowest group on the way down from @top: the kernel removes only empty ones. 1; 0:
 * there is none.
 */
static int remove_lowest(int top)
{
	char name[256], below[256];
	autofd int parent = -1;
	int at = top;
	int r = first_below(top, name, sizeof(name));

	while (r > 0) {
		autofd int dir = fd_open_at(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		if (dir < 0)
			return dir == -ENOENT ? 1 : dir;
		int deeper = first_below(dir, below, sizeof(below));
		if (deeper < 0)
			return deeper;
		if (deeper == 0)
			return unlinkat(at, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno
										       : 1;
		memcpy(name, below, sizeof(name));
		fd_close(&parent);
		at = parent = take_fd(&dir);
	}
	return r;
}

static int remove_group(int parent, const struct cgroup *g)
{
	int r = 1;

	for (int i = 0; i < REMOVE_ROUNDS && r > 0; i++)
		r = remove_lowest(g->dir);
	if (r < 0)
		return r;
	return unlinkat(parent, g->name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

int cgroup_remove(int parent, struct cgroup *g)
{
	if (g->dir < 0)
		return 0;
	int r = cgroup_kill(g);
	if (r >= 0)
		r = cgroup_wait_empty(g, WAIT_MS);
	if (r >= 0)
		r = remove_group(parent, g);
	fd_close(&g->dir);
	return r;
}

int cgroup_session_end(struct cgroup_session *s, struct error *e)
{
	int r = cgroup_remove(s->place, &s->group);

	fd_close(&s->place);
	return r < 0 ? error_set(e, ERROR_TEARDOWN, "close", -r, s->path,
			       "cannot remove the session's cgroup")
		     : 0;
}

/* --- dead sessions ---------------------------------------------------------------------------- */

/* Open and lock the group @name, if it is a dead session's. */
static int claim(int place, const char *name, bool sure, struct cgroup *ret)
{
	struct stat st;
	autofd int dir = fd_open_at(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (dir < 0)
		return dir;
	if (fstat(dir, &st) < 0 || st.st_uid != geteuid())
		return -EPERM;
	if (!sure && st.st_ctime + NEW_ABANDONED_S > time(NULL))
		return -EAGAIN;
	if (flock(dir, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	*ret = (struct cgroup){ .dir = take_fd(&dir) };
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	return 0;
}

static int open_noted_place(int note, const char *name, char path[CGROUP_PATH_MAX])
{
	struct statfs fs;
	autofd int file = plainfile_open(note, CGROUP_NOTE, 0, false);
	ssize_t n = file < 0 ? file : fd_read_file(file, path, CGROUP_PATH_MAX - 1);
	char *slash = n < 0 ? NULL : strrchr(path, '/');

	if (n < 0)
		return (int)n;
	if (path[0] != '/' || !slash || strcmp(slash + 1, name) != 0)
		return -EBADMSG;
	*slash = '\0';
	autofd int place =
		fd_open_at(AT_FDCWD, slash == path ? "/" : path, O_RDONLY | O_DIRECTORY, 0);
	if (place < 0)
		return place;
	return fstatfs(place, &fs) == 0 && fs.f_type == CGROUP2_MAGIC ? take_fd(&place)
								      : -ENOENT;
}

int cgroup_sweep_noted(int note, const char *name, struct error *e)
{
	char path[CGROUP_PATH_MAX];
	struct cgroup g = CGROUP_NONE;
	autofd int place = open_noted_place(note, name, path);
	int r = place < 0 ? place : claim(place, name, true, &g);

	if (r >= 0)
		r = cgroup_remove(place, &g);
	/* It is gone, or in a hierarchy that is not seen from here: somebody else's to remove. */
	if (r >= 0 || r == -ENOENT || r == -EWOULDBLOCK)
		return 0;
	return error_set(e, ERROR_TEARDOWN, "close", -r, path,
		"cannot remove the cgroup of a dead session");
}

struct sweep {
	bool dry_run;
	void (*each)(void *context, const char *name);
	void *context;
	int count;
	struct error *e;
};

static void sweep_place(struct sweep *s, int place)
{
	_Alignas(struct beneath_entry) char buffer[2048];
	struct beneath_entry *entry;
	autofd int fd = fd_open_at(place, ".", O_RDONLY | O_DIRECTORY, 0);
	struct beneath_list list = { .fd = fd, .buffer = buffer, .size = sizeof(buffer) };

	while (fd >= 0 && beneath_next(&list, &entry) > 0) {
		struct cgroup g = CGROUP_NONE;

		if (!session_is_name(entry->name) || claim(place, entry->name, false, &g) < 0)
			continue;
		int r = s->dry_run ? 0 : cgroup_remove(place, &g);
		fd_close(&g.dir);
		if (r < 0)
			(void)error_set(s->e, ERROR_TEARDOWN, "close", -r, entry->name,
				"cannot remove the cgroup of a dead session");
		if (r < 0)
			continue;
		s->count++;
		if (s->each)
			s->each(s->context, entry->name);
	}
}

int cgroup_sweep(bool dry_run, void (*each)(void *context, const char *name), void *context,
	struct error *e)
{
	struct cgroup_location location;
	struct cgroup_place place;
	char path[CGROUP_PATH_MAX];
	struct sweep s = { .dry_run = dry_run, .each = each, .context = context, .e = e };

	if (cgroup_location_read(&location) < 0)
		return 0; /* no groups here, so none of ours */
	/* Look where sessions of this caller would be, and in our own group, in case it is another. */
	int r = snprintf(path, sizeof(path), "%s%s", location.mount, location.own);
	bool fits = r > 0 && (size_t)r < sizeof(path);
	if (cgroup_place_choose(&location, true, 0, 0, &place) >= 0) {
		sweep_place(&s, place.dir);
		fits = fits && strcmp(path, place.path) != 0;
		fd_close(&place.dir);
	}
	autofd int own = fits ? fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0) : -ENOENT;
	if (own >= 0)
		sweep_place(&s, own);
	return e && e->code != ERROR_NONE ? -EBUSY : s.count;
}

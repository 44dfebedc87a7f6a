/*
 * cgroup_place.c - see cgroup_place.h.
 *
 * Runs in: the launcher, outside. Two rules of the kernel shape it (cgroups(7)): a group that hands
 * memory down to groups below it may have no processes itself, and only a process that may write
 * cgroup.procs in the common ancestor of two groups can move another from one to the other.
 */
#include "host/cgroup/cgroup_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"

#define CGROUP2_MAGIC 0x63677270
enum { LEVELS_MAX = 32, VACATE_ROUNDS = 64, READ_SIZE = 1024 };

static const struct {
	unsigned bit;
	const char *name;
} controllers[] = {
	{ CGROUP_MEMORY, "memory" },
	{ CGROUP_PIDS, "pids" },
	{ CGROUP_CPU, "cpu" },
};
enum { CONTROLLER_COUNT = sizeof(controllers) / sizeof(controllers[0]) };

/* --- files ------------------------------------------------------------------------------------ */

int cgroup_write_file(int dir, const char *file, const char *text)
{
	autofd int fd = fd_open_at(dir, file, O_WRONLY | O_NOFOLLOW, 0);

	return fd < 0 ? fd : fd_write_all(fd, text, strlen(text));
}

ssize_t cgroup_read_file(int dir, const char *file, char *ret_text, size_t size)
{
	autofd int fd = fd_open_at(dir, file, O_RDONLY | O_NOFOLLOW, 0);

	return fd < 0 ? fd : fd_read_file(fd, ret_text, size - 1);
}

unsigned cgroup_controllers(int dir, const char *file)
{
	char text[512];
	unsigned found = 0;

	if (cgroup_read_file(dir, file, text, sizeof(text)) < 0)
		return 0;
	for (const char *word = text; *word;) {
		size_t length = strcspn(word, " \n");

		for (unsigned i = 0; i < CONTROLLER_COUNT; i++)
			if (strlen(controllers[i].name) == length &&
				!strncmp(controllers[i].name, word, length))
				found |= controllers[i].bit;
		word += length;
		word += strspn(word, " \n");
	}
	return found;
}

void cgroup_name_controllers(unsigned bits, char *ret_text, size_t size)
{
	size_t at = 0;

	ret_text[0] = '\0';
	for (unsigned i = 0; i < CONTROLLER_COUNT && at < size; i++) {
		if (!(bits & controllers[i].bit))
			continue;
		bits &= ~controllers[i].bit;
		int n = snprintf(ret_text + at, size - at, "%s%s",
			at == 0        ? ""
				: bits ? ", "
				       : " and ",
			controllers[i].name);
		at += n > 0 ? (size_t)n : 0;
	}
}

/* --- controllers ------------------------------------------------------------------------------ */

/* Enable the controllers in @dir alone. -ENOENT: they are not handed down to it. */
static int enable_here(int dir, unsigned need)
{
	char text[64] = "";
	size_t at = 0;
	unsigned missing = need & ~cgroup_controllers(dir, "cgroup.subtree_control");

	if (!missing)
		return 0;
	if (missing & ~cgroup_controllers(dir, "cgroup.controllers"))
		return -ENOENT;
	for (unsigned i = 0; i < CONTROLLER_COUNT; i++)
		if (missing & controllers[i].bit) {
			int n = snprintf(
				text + at, sizeof(text) - at, "+%s ", controllers[i].name);
			at += (size_t)n;
		}
	return cgroup_write_file(dir, "cgroup.subtree_control", text);
}

/* The directory above, where that is a group too: a descriptor, or -ENOENT. */
static int open_above(int dir)
{
	struct statfs fs;
	struct stat here, above;
	autofd int fd = fd_open_at(dir, "..", O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return fd;
	if (fstatfs(fd, &fs) < 0 || fstat(fd, &above) < 0 || fstat(dir, &here) < 0)
		return -errno;
	/* Tests make trees of ordinary directories; there the list of controllers tells. */
	if (above.st_dev != here.st_dev || above.st_ino == here.st_ino ||
		(fs.f_type != CGROUP2_MAGIC &&
			faccessat(fd, "cgroup.controllers", F_OK, 0) < 0))
		return -ENOENT;
	return take_fd(&fd);
}

int cgroup_enable(int dir, unsigned need)
{
	int chain[LEVELS_MAX], top = 0;
	int r = enable_here(dir, need);

	/* Go up to the group that has them, and down again. */
	while (r == -ENOENT && top < LEVELS_MAX) {
		int above = open_above(top ? chain[top - 1] : dir);

		if (above < 0)
			break;
		chain[top++] = above;
		r = enable_here(above, need);
	}
	while (top > 0) {
		fd_close(&chain[--top]);
		if (r >= 0)
			r = enable_here(top ? chain[top - 1] : dir, need);
	}
	return r;
}

/* Predict the result of cgroup_enable() as far as that is possible without calling it. */
static int would_enable(int dir, unsigned need)
{
	autofd int above = -1;
	int r = 0;

	for (int level = 0; level < LEVELS_MAX; level++) {
		if (need & ~cgroup_controllers(dir, "cgroup.subtree_control") &&
			faccessat(dir, "cgroup.subtree_control", W_OK, AT_EACCESS) < 0)
			r = -errno;
		if (!(need & ~cgroup_controllers(dir, "cgroup.controllers")))
			return r;
		int next = open_above(dir);
		fd_close(&above);
		dir = above = next;
		if (next < 0)
			break;
	}
	return -ENOENT;
}

/* --- making room ------------------------------------------------------------------------------ */

/* Move one pid of cgroup.procs. "0" is a process that this pid namespace cannot name. */
static int move_one(int to, unsigned pid)
{
	char text[16];

	if (pid == 0)
		return -EXDEV;
	int length = snprintf(text, sizeof(text), "%u", pid);
	ssize_t n = pwrite(to, text, (size_t)length, 0);
	return n < 0 && errno != ESRCH ? -errno : 0;
}

/* Move every process of the group @from; one that comes meanwhile may be missed. 0 or -errno. */
static int move_all(int from, int to)
{
	char text[READ_SIZE];
	unsigned pid = 0;
	bool inside = false;
	ssize_t n;
	int r = 0;
	autofd int list = fd_open_at(from, "cgroup.procs", O_RDONLY, 0);

	if (list < 0)
		return list;
	while (r >= 0 && (n = read(list, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < n && r >= 0; i++) {
			bool digit = text[i] >= '0' && text[i] <= '9';

			if (!digit && inside)
				r = move_one(to, pid);
			pid = digit ? (inside ? pid * 10 : 0) + (unsigned)(text[i] - '0') : 0;
			inside = digit;
		}
	return r;
}

static bool has_processes(int dir)
{
	char byte;
	autofd int list = fd_open_at(dir, "cgroup.procs", O_RDONLY, 0);

	return list >= 0 && read(list, &byte, 1) == 1;
}

/*
 * The group is the caller's and has processes: move them into a group below it, where they are
 * counted as before. Others may be started meanwhile, so this is repeated until the kernel is
 * content.
 */
static int vacate(int dir, unsigned need)
{
	if (mkdirat(dir, CGROUP_CALLERS, 0755) < 0 && errno != EEXIST)
		return -errno;
	autofd int leaf = fd_open_at(dir, CGROUP_CALLERS, O_RDONLY | O_DIRECTORY, 0);
	autofd int procs = leaf < 0 ? leaf : fd_open_at(leaf, "cgroup.procs", O_WRONLY, 0);
	int r = procs < 0 ? procs : -EBUSY;

	for (int i = 0; i < VACATE_ROUNDS && r == -EBUSY; i++) {
		r = move_all(dir, procs);
		if (r >= 0)
			r = cgroup_enable(dir, need);
	}
	return r;
}

/* --- choosing --------------------------------------------------------------------------------- */

static bool is_marked_delegated(int dir, const char *name)
{
	char value[4];
	ssize_t n = fgetxattr(dir, name, value, sizeof(value));

	return n == 1 && value[0] == '1';
}

/*
 * Whether what lies below @dir is the caller's to arrange: systemd marks what it delegates
 * (systemd.resource-control(5)), others give the directory to the user, and the root of a cgroup
 * namespace, above which nothing can be seen, is a container's own.
 */
static bool is_delegated(int dir, int above)
{
	struct stat own, parent;

	if (above < 0)
		return true;
	if (is_marked_delegated(dir, "user.delegate") ||
		is_marked_delegated(dir, "trusted.delegate"))
		return true;
	return fstat(dir, &own) == 0 && fstat(above, &parent) == 0 && own.st_uid == geteuid() &&
		parent.st_uid != geteuid();
}

/* The root of the whole hierarchy has no such file, and no rule about processes either. */
static bool is_hierarchy_root(int dir)
{
	return faccessat(dir, "cgroup.events", F_OK, 0) < 0;
}

static enum cgroup_lack lack_of(int errnum)
{
	switch (errnum) {
	case EROFS:
		return CGROUP_LACK_WRITABLE;
	case ENOENT:
		return CGROUP_LACK_CONTROLLERS;
	case EBUSY:
	case EOPNOTSUPP:
	case EXDEV:
		return CGROUP_LACK_ROOM;
	default:
		return CGROUP_LACK_RIGHTS;
	}
}

/* Check, without making one, whether a group can be made there. */
static int check_writable(int dir)
{
	if (faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) < 0 ||
		faccessat(dir, "cgroup.procs", W_OK, AT_EACCESS) < 0)
		return -errno;
	return 0;
}

/* @own: the directory is our own group, and its processes may be moved. */
static int take_place(
	struct cgroup_place *p, int dir, bool own, bool dry, unsigned need, unsigned want)
{
	int r = check_writable(dir);

	if (dry)
		return r < 0 ? r : would_enable(dir, need);
	if (r >= 0 && !need && want && !(want & cgroup_controllers(dir, "cgroup.controllers")))
		return -ENOENT;
	/*
	 * While there are processes the kernel refuses memory, but not pids and cpu: these make the
	 * group a threaded one, below which no group can be made that takes memory, or a process
	 * (cgroups(7)).
	 */
	bool full = r >= 0 && !is_hierarchy_root(dir) && has_processes(dir);
	if (full && !need)
		return -EBUSY;
	if (r >= 0 && !(full && own))
		r = cgroup_enable(dir, need);
	if ((r >= 0 && full && own) || (r == -EBUSY && own))
		r = vacate(dir, need);
	if (r < 0)
		return r;
	/* A controller that is wanted but not needed is used where it can be enabled. */
	for (unsigned i = 0; i < CONTROLLER_COUNT; i++)
		if (want & controllers[i].bit)
			(void)!enable_here(dir, controllers[i].bit);
	p->lack = CGROUP_LACK_NOTHING;
	return 0;
}

/* Report first what nobody has on this machine: no right would help there. */
static void note_lack(
	struct cgroup_place *p, int dir, const char *mount, unsigned need, int errnum)
{
	autofd int root = fd_open_at(AT_FDCWD, mount, O_RDONLY | O_DIRECTORY, 0);
	unsigned nowhere =
		root < 0 ? 0 : need & ~cgroup_controllers(root, "cgroup.controllers");

	p->lack = nowhere ? CGROUP_LACK_CONTROLLERS : lack_of(errnum);
	p->lacking = nowhere ? nowhere : need & ~cgroup_controllers(dir, "cgroup.controllers");
	if (!p->lacking)
		p->lacking = need;
}

static void name_above(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash && slash != path)
		*slash = '\0';
}

int cgroup_place_choose(const struct cgroup_location *location, bool dry, unsigned need,
	unsigned want, struct cgroup_place *ret)
{
	const char *name = strrchr(location->own, '/');

	*ret = (struct cgroup_place){ .dir = -1, .lack = CGROUP_LACK_VIEW };
	int n = snprintf(ret->path, sizeof(ret->path), "%s%s",
		*location->own && !strcmp(location->mount, "/") ? "" : location->mount,
		location->own);
	if (n < 0 || (size_t)n >= sizeof(ret->path))
		return -ENAMETOOLONG;
	autofd int own = fd_open_at(AT_FDCWD, ret->path, O_RDONLY | O_DIRECTORY, 0);
	if (own < 0)
		return own;
	autofd int above = *location->own ? open_above(own) : -ENOENT;
	bool callers = name && !strcmp(name + 1, CGROUP_CALLERS);
	bool ours = is_hierarchy_root(own) || (!callers && is_delegated(own, above));
	int *dir = ours || above < 0 ? &own : &above;
	if (dir == &above)
		name_above(ret->path);
	int r = take_place(ret, *dir, ours, dry, need, want);
	if (r < 0) {
		note_lack(ret, *dir, location->mount, need, -r);
		return r;
	}
	ret->dir = take_fd(dir);
	return 0;
}

int cgroup_place_find(bool dry, unsigned need, unsigned want, struct cgroup_place *ret)
{
	struct cgroup_location location;
	int r = cgroup_location_read(&location);

	*ret = (struct cgroup_place){ .dir = -1,
		.lack = r == -EXDEV ? CGROUP_LACK_VIEW : CGROUP_LACK_MOUNT };
	return r < 0 ? r : cgroup_place_choose(&location, dry, need, want, ret);
}

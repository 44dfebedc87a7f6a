/*
 * gitplain.c - see gitplain.h.
 *
 * Runs in: the launcher, outside; answer_plain() and what it calls in the child that it starts.
 * May not: take for plain what it does not know. A file that git makes in a later release is not plain until
 * somebody has looked at what obeys it.
 */
#include "host/git/gitplain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/fd.h"
#include "host/git/gitindex.h"
#include "host/git/gitpath.h"
#include "host/git/gitplain_config.h"
#include "host/process/confined.h"
#include "host/tree/plainfile.h"

#define PATIENCE_NS 1000000000
#define ENTRIES_MAX 256 /* of one directory that git makes */

struct plain {
	int root_fd;
	const char *path;
	struct gitplain_config config;
	struct gitindex index;
	struct gitpath_list list, top; /* @top: of the repository, while another is read */
};

/* --- in the child ------------------------------------------------------------------------------ */

/* open_directory - @name in @at, no link and no other mount. A descriptor or -errno. */
static int open_directory(int at, const char *name)
{
	return gitpath_open(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

static bool ends_with(const char *name, const char *suffix)
{
	size_t length = strlen(name), tail = strlen(suffix);

	return length > tail && strcmp(name + length - tail, suffix) == 0;
}

/* are_all - does the directory @name hold nothing but what @is_fine allows? Its number of entries is bounded. */
static bool are_all(struct plain *p, int at, const char *name,
	bool (*is_fine)(const char *name, unsigned char type))
{
	const char *entry;
	unsigned char type;
	unsigned seen = 0;
	int result = -1;
	autofd int fd = open_directory(at, name);

	p->list.fd = fd;
	p->list.at = p->list.length = 0;
	while (fd >= 0 && (result = gitpath_next(&p->list, &entry, &type)) > 0)
		if (++seen > ENTRIES_MAX || !is_fine(entry, type))
			return false;
	return result == 0;
}

static bool is_sample(const char *name, unsigned char type)
{
	return type == DT_REG && ends_with(name, ".sample");
}

static bool is_nothing(const char *name, unsigned char type)
{
	(void)name;
	(void)type;
	return false;
}

/* Attributes name drivers, which may be in the user's own configuration. */
static bool is_info(const char *name, unsigned char type)
{
	return type == DT_REG && (strcmp(name, "exclude") == 0 || strcmp(name, "refs") == 0);
}

/* Its objects are its own: no alternates. */
static bool is_object_info(const char *name, unsigned char type)
{
	return type == DT_REG &&
		(strcmp(name, "packs") == 0 || strcmp(name, "commit-graph") == 0);
}

static bool is_plain_objects(struct plain *p, int git)
{
	autofd int objects = open_directory(git, "objects");
	int pack = objects < 0 ? objects : gitpath_type(objects, "pack");

	return pack >= 0 && pack != DT_LNK &&
		(gitpath_type(objects, "info") == 0 ||
			are_all(p, objects, "info", is_object_info));
}

/* No submodule: `git status` would obey a repository in its place. */
static bool is_plain_index(struct plain *p, int git)
{
	autofd int fd = plainfile_open(git, "index", RESOLVE_BENEATH, false);
	int result = fd < 0 ? fd : gitindex_start(&p->index, fd, p->config.sha256 ? 32 : 20);

	if (result == 0)
		result = gitindex_next(&p->index);
	return result == 0;
}

/* is_plain_entry - @name in the git directory @git, whose configuration has been read. */
static bool is_plain_entry(struct plain *p, int git, const char *name, unsigned char type)
{
	static const char *const obeyed[] = { "commondir", "gitdir", "config.worktree", "hooks",
		"branches", "remotes", "modules", "worktrees", "info", "objects", "refs",
		"logs" };

	if (type == DT_DIR) {
		if (strcmp(name, "hooks") == 0)
			return are_all(p, git, name, is_sample);
		if (strcmp(name, "branches") == 0)
			return are_all(p, git, name, is_nothing);
		if (strcmp(name, "info") == 0)
			return are_all(p, git, name, is_info);
		if (strcmp(name, "objects") == 0)
			return is_plain_objects(p, git);
		return strcmp(name, "refs") == 0 || strcmp(name, "logs") == 0;
	}
	if (type != DT_REG || strncmp(name, "sharedindex.", 12) == 0)
		return false;
	for (size_t i = 0; i < sizeof(obeyed) / sizeof(*obeyed); i++)
		if (strcmp(name, obeyed[i]) == 0)
			return false;
	return strcmp(name, "index") != 0 || is_plain_index(p, git);
}

static bool is_plain_repository(struct plain *p, int at, const char *name)
{
	const char *entry;
	unsigned char type;
	unsigned seen = 0;
	int result = -1;
	autofd int fd = open_directory(at, name);

	if (fd < 0)
		return false;
	/*
	 * First, since `git init` makes HEAD after it, and since it says how long the object names
	 * in the index are.
	 */
	if (gitpath_type(fd, "config") != 0 && !gitplain_config(&p->config, fd, "config"))
		return false;
	p->top.fd = fd;
	p->top.at = p->top.length = 0;
	while ((result = gitpath_next(&p->top, &entry, &type)) > 0)
		if (++seen > ENTRIES_MAX || !is_plain_entry(p, fd, entry, type))
			return false;
	return result == 0;
}

static bool is_plain(struct plain *p)
{
	const char *slash = strrchr(p->path, '/');
	const char *name = slash ? slash + 1 : p->path;

	if (strcmp(name, ".git") == 0)
		return is_plain_repository(p, p->root_fd, p->path);
	if (strcmp(name, "config") == 0)
		return gitplain_config(&p->config, p->root_fd, p->path);
	if (strcmp(name, "hooks") == 0)
		return are_all(p, p->root_fd, p->path, is_sample);
	return strcmp(name, "branches") == 0 && are_all(p, p->root_fd, p->path, is_nothing);
}

static int answer_plain(void *context, struct answer *answer)
{
	struct plain *p = context;
	int r = confined_only_below(&p->root_fd, 1);

	return r < 0 ? r : answer_put(answer, is_plain(p) ? "y" : "n", 1);
}

/* --- outside ------------------------------------------------------------------------------------ */

int gitplain_check(int root_fd, const char *path, int64_t deadline_ns)
{
	struct arena arena;
	char answer[1];
	size_t used = 0;
	int r = arena_init(&arena, sizeof(struct plain) + 64);

	if (r < 0)
		return r;
	struct plain *p = arena_alloc(&arena, sizeof(*p));
	const struct confined what = {
		.work = answer_plain,
		.context = p,
		.keep = &root_fd,
		.keep_count = 1,
		.foreign = confined_is_foreign(root_fd),
		.deadline_ns = deadline_ns ? deadline_ns : clock_now_ns() + PATIENCE_NS,
	};

	if (p) {
		p->root_fd = root_fd;
		p->path = path;
		r = confined_run(&what, answer, sizeof(answer), &used);
	} else {
		r = -ENOMEM;
	}
	arena_free(&arena);
	if (r < 0)
		return r;
	return used == 1 && (*answer == 'y' || *answer == 'n') ? *answer == 'y' : -EPROTO;
}

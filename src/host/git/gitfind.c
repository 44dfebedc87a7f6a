/*
 * gitfind.c - see gitfind.h: rules, names, and paths that somebody else wrote.
 *
 * Runs in: the launcher, outside.
 */
#include "host/git/gitfind.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"

#define LISTING_MAX 1024
#define PARTS_SEEN_MAX 4096 /* git removes them after two weeks */

static const char *const names[NAME_COUNT] = {
	[NAME_HEAD] = "HEAD",
	[NAME_OBJECTS] = "objects",
	[NAME_REFS] = "refs",
	[NAME_INDEX] = "index",
	[NAME_CONFIG] = "config",
	[NAME_CONFIG_WORKTREE] = "config.worktree",
	[NAME_HOOKS] = "hooks",
	[NAME_COMMONDIR] = "commondir",
	[NAME_GITDIR] = "gitdir",
	[NAME_REMOTES] = "remotes",
	[NAME_BRANCHES] = "branches",
	[NAME_MODULES] = "modules",
	[NAME_WORKTREES] = "worktrees",
	[NAME_DOT_GIT] = ".git",
};

static struct gitdir_rule *push_rule(struct finder *f, const char *path)
{
	struct gitdir_rule *rules =
		arena_push(f->arena, f->rules, f->rule_count, sizeof(*rules));

	if (!rules || !path) {
		f->full = true;
		return NULL;
	}
	f->rules = rules;
	rules[f->rule_count] = (struct gitdir_rule){ .path = path };
	return &rules[f->rule_count++];
}

void gitfind_rule(
	struct finder *f, enum gitdir_kind kind, const char *path, bool exists, const char *why)
{
	struct gitdir_rule *rule = push_rule(f, path);

	if (!rule)
		return;
	rule->kind = kind;
	rule->exists = exists;
	rule->why = why;
}

void gitfind_note(struct finder *f, const char *path, const char *why)
{
	gitfind_rule(f, GITDIR_NOTE, path, true, why);
}

const char *gitfind_join(struct finder *f, const char *directory, const char *name)
{
	const char *path = arena_join(f->arena, directory, '/', name);

	if (!path)
		f->full = true;
	return path;
}

void gitfind_item(struct finder *f, const char *path, enum git_role role, const char *worktree)
{
	if (!path)
		return;
	for (size_t i = 0; i < f->item_count; i++)
		if (strcmp(f->items[i].path, path) == 0) {
			/*
			 * It was met by its gitfile first, which does not tell that it is a
			 * submodule's.
			 */
			if (role == ROLE_MODULE)
				f->items[i].role = role;
			return;
		}
	struct git_item *items = arena_push(f->arena, f->items, f->item_count, sizeof(*items));

	if (!items) {
		f->full = true;
		return;
	}
	f->items = items;
	items[f->item_count++] = (struct git_item){ path, role, worktree, false, false, false };
}

void gitfind_missed(struct finder *f, int result)
{
	static const int answers[] = { ENOENT, ENOTDIR, ELOOP, EACCES, EINVAL, EBADMSG, EFBIG,
		E2BIG, ENAMETOOLONG, EXDEV };

	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		if (result == -answers[i])
			return;
	/* At a launch what cannot be read is protected as a whole, or said; but carrel's own lack ends the launch. */
	if (result < 0 && (f->since || error_is_own(-result)) && !f->missed)
		f->missed = result;
}

void gitfind_locked(struct finder *f, int place, const char *path)
{
	struct stat st;

	if (place >= 0 && fstat(place, &st) < 0)
		gitfind_missed(f, -errno);
	else if (place >= 0 && st.st_uid == f->caller &&
		gitfind_is_after(&st.st_ctim, f->since))
		gitfind_rule(f, GITDIR_LOCKED, path, true, "cannot be listed");
}

int gitfind_open(struct finder *f, const char *path)
{
	int fd = gitpath_open(
		AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);

	gitfind_missed(f, fd);
	if (fd != -EACCES || !f->since)
		return fd;
	autofd int place = gitpath_open(
		AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);

	gitfind_missed(f, place);
	gitfind_locked(f, place, path);
	return -EACCES;
}

bool gitfind_spend(struct finder *f, uint64_t bytes)
{
	f->left -= bytes < f->left ? bytes : f->left;
	return f->left > 0 && f->item_count <= f->items_max;
}

struct identity {
	dev_t dev;
	ino_t ino;
};

/* is_first_name - is the file @st met for the first time? Then it is noted in @seen. */
static bool is_first_name(struct identity *seen, size_t count, const struct stat *st)
{
	for (size_t i = 0; i < count; i++)
		if (seen[i].dev == st->st_dev && seen[i].ino == st->st_ino)
			return false;
	seen[count] = (struct identity){ st->st_dev, st->st_ino };
	return true;
}

int gitfind_parts(struct finder *f, int fd, const char *ret_names[GITFIND_PARTS_MAX])
{
	struct identity seen[GITFIND_PARTS_MAX + 1];
	struct stat st;
	size_t count = 0;
	unsigned names_seen = 0;
	const char *name;
	unsigned char type;
	int result = lseek(fd, 0, SEEK_SET) < 0 ? -errno : 1;

	f->list.fd = fd;
	f->list.at = f->list.length = 0;
	while (result > 0 && (result = gitpath_next(&f->list, &name, &type)) > 0) {
		if (f->names == 0)
			return -E2BIG;
		f->names--;
		if (strncmp(name, "sharedindex.", 12) != 0 || type != DT_REG)
			continue;
		if (++names_seen > PARTS_SEEN_MAX)
			return -E2BIG;
		if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		if (!is_first_name(seen, count, &st))
			continue;
		if (count == GITFIND_PARTS_MAX)
			return -E2BIG;
		ret_names[count] = arena_copy(f->arena, name, strlen(name));
		if (!ret_names[count++])
			return -ENOMEM;
	}
	return result < 0 ? result : (int)count;
}

bool gitfind_beneath(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	if (length == 1) /* "/" */
		return path[0] == '/' && path[1] != '\0';
	return strncmp(path, directory, length) == 0 && path[length] == '/';
}

static bool is_writable(const struct finder *f, const char *path)
{
	return gitfind_beneath(path, f->workspace) ||
		(f->granted && gitfind_beneath(path, f->granted));
}

const char *gitfind_canonical(struct finder *f, int fd)
{
	ssize_t length = gitpath_of(fd, f->path, sizeof(f->path));

	gitfind_missed(f, (int)length);
	if (length < 0)
		return NULL;
	const char *path = arena_copy(f->arena, f->path, (size_t)length);

	if (!path)
		f->full = true;
	return path;
}

enum git_name gitfind_name(const char *name)
{
	enum git_name i = NAME_HEAD;

	while (i < NAME_COUNT && strcmp(names[i], name) != 0)
		i++;
	return i;
}

int gitfind_ask(int fd, struct git_names *n)
{
	for (enum git_name i = NAME_HEAD; i < NAME_COUNT; i++) {
		int type = gitpath_type(fd, names[i]);

		if (type < 0)
			return type;
		n->type[i] = (unsigned char)type;
	}
	return 0;
}

int gitfind_names(struct finder *f, int fd, struct git_names *ret_names)
{
	struct git_names n = { 0 };
	unsigned seen = 0;
	const char *name;
	unsigned char type;
	int result;

	f->list.fd = fd;
	f->list.at = f->list.length = 0;
	while ((result = gitpath_next(&f->list, &name, &type)) > 0) {
		enum git_name i = gitfind_name(name);

		if (i < NAME_COUNT)
			n.type[i] = type;
		n.split |= strncmp(name, "sharedindex.", 12) == 0;
		if (++seen > LISTING_MAX)
			break;
	}
	gitfind_missed(f, result);
	if (result != 0)
		result = gitfind_ask(fd, &n);
	gitfind_missed(f, result);
	if (result == 0)
		*ret_names = n;
	return result;
}

/*
 * resolve_absent - the path that @text, relative to @dirfd, would have: its directory exists, it
 * does not. NULL where that is not so.
 */
static const char *resolve_absent(struct finder *f, int dirfd, const char *text)
{
	size_t length = strlen(text);

	while (length > 0 && text[length - 1] == '/')
		length--;
	size_t start = length;

	while (start > 0 && text[start - 1] != '/')
		start--;
	if (length == start || length >= sizeof(f->text))
		return NULL;
	const char *last = arena_copy(f->arena, text + start, length - start);
	const char *parent = start ? arena_copy(f->arena, text, start) : ".";

	if (!last || !parent || strcmp(last, "..") == 0 || strcmp(last, ".") == 0)
		return NULL;
	autofd int fd = gitpath_open(dirfd, parent, O_PATH | O_DIRECTORY, 0);

	gitfind_missed(f, fd);
	const char *canonical = fd < 0 ? NULL : gitfind_canonical(f, fd);

	return canonical ? gitfind_join(f, canonical, last) : NULL;
}

const char *gitfind_protect_text(
	struct finder *f, const char *directory, const char *text, const char *why)
{
	autofd int base = gitpath_open(AT_FDCWD, directory, O_PATH | O_DIRECTORY, 0);
	autofd int fd = base < 0 ? base : gitpath_open(base, text, O_PATH, 0);
	const char *path = NULL;

	gitfind_missed(f, fd);
	if (fd >= 0)
		path = gitfind_canonical(f, fd);
	else if (fd == -ENOENT && base >= 0)
		path = resolve_absent(f, base, text);
	if (!path) {
		gitfind_note(f, directory, "git obeys something here that cannot be resolved");
		return NULL;
	}
	if (!is_writable(f, path)) {
		/* The workspace itself or what holds it cannot be protected as a whole. */
		if (strcmp(path, f->workspace) == 0 || gitfind_beneath(f->workspace, path))
			gitfind_note(f, path, "git obeys what lies in the whole workspace");
		return NULL;
	}
	gitfind_rule(f, GITDIR_PROTECT, path, fd >= 0, why);
	return fd >= 0 ? path : NULL;
}

/* watch_link - @path is a symbolic link: it has to stay what it is. */
static void watch_link(struct finder *f, const char *path, const char *why)
{
	ssize_t length = readlink(path, f->text, PATH_MAX);

	if (length < 0)
		gitfind_missed(f, -errno);
	if (length < 0 || length >= PATH_MAX) {
		gitfind_note(f, path, "a symbolic link that cannot be read");
		return;
	}
	const char *target = arena_copy(f->arena, f->text, (size_t)length);
	const char *slash = strrchr(path, '/');
	const char *directory = arena_copy(f->arena, path, (size_t)(slash - path));
	struct gitdir_rule *rule = push_rule(f, target && directory ? path : NULL);

	if (!rule)
		return;
	rule->kind = GITDIR_WATCH;
	rule->exists = true;
	rule->why = why;
	rule->target = target;
	(void)gitfind_protect_text(f, directory, target, why); /* it may well lead nowhere */
}

void gitfind_protect(struct finder *f, const char *path, int type, const char *why)
{
	if (!path)
		return;
	if (type == DT_LNK)
		watch_link(f, path, why);
	else
		gitfind_rule(f, GITDIR_PROTECT, path, type != 0, why);
}

void gitfind_worktree(struct finder *f, const char *path)
{
	static const char why[] = "names the git directory of this work tree";
	const char *dot_git = path ? gitfind_join(f, path, ".git") : NULL;
	struct stat st;

	if (!dot_git || !gitfind_beneath(dot_git, f->workspace))
		return;
	autofd int fd = gitpath_open(f->workspace_fd, dot_git + f->workspace_length + 1,
		O_PATH | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);

	/* The last component may be a link under O_NOFOLLOW; RESOLVE_NO_SYMLINKS refuses it. */
	if (fd == -ELOOP)
		fd = gitpath_open(AT_FDCWD, dot_git, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
	gitfind_missed(f, fd);
	if (fd == -ENOENT || fd == -ENOTDIR)
		gitfind_rule(f, GITDIR_PROTECT, dot_git, false, why);
	else if (fd < 0 || fstat(fd, &st) < 0)
		gitfind_note(f, dot_git, "the way to this work tree leads through a link");
	else if (S_ISDIR(st.st_mode))
		gitfind_item(f, dot_git, ROLE_MAIN, path);
	else
		gitfind_protect(f, dot_git, (int)((st.st_mode & S_IFMT) >> 12), why);
}

int gitfind_gitfile(struct finder *f, const char *path)
{
	static const char prefix[] = "gitdir: ";
	const char *dot_git = gitfind_join(f, path, ".git");

	if (!dot_git)
		return -ENOMEM;
	ssize_t length = gitpath_read(AT_FDCWD, dot_git, f->text, sizeof(f->text) - 1);

	gitfind_missed(f, (int)length);
	if (length < 0)
		return (int)length;
	while (length > 0 && (f->text[length - 1] == '\n' || f->text[length - 1] == '\r'))
		length--;
	f->text[length] = '\0';
	size_t skip = sizeof(prefix) - 1;

	if ((size_t)length <= skip || memcmp(f->text, prefix, skip) != 0)
		return -EBADMSG;
	memmove(f->text, f->text + skip, (size_t)length - skip + 1);
	return 0;
}

/*
 * learn_file.c - see learn_file.h.
 *
 * Runs in: the launcher.
 */
#include "host/explain/learn_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "host/report/toolplace.h"

enum { ARENA_SIZE = 4 << 20 };

static int refuse(struct error *e, int errnum, const char *target, const char *what)
{
	return error_set(e, ERROR_REPORT, "options", errnum, target, "%s", what);
}

static int refuse_tools(struct error *e, const char *target)
{
	int r = refuse(e, ERROR_OWN(EPERM), target,
		"what is learned would lie where the session can write");

	error_hint(e, "name a file elsewhere: a policy is not taken from tools");
	return r;
}

/* @length: of the directory in @target. */
static int check_place(
	const char *target, size_t length, int dir, const struct facts *facts, struct error *e)
{
	struct error found = { 0 };
	struct toolplace place;
	struct arena arena;
	bool of_tools = false;
	int r = arena_init(&arena, ARENA_SIZE);

	if (r < 0)
		return error_no_memory(e, "options");
	r = toolplace_of(&place, &arena, facts);
	if (r >= 0)
		r = toolplace_check_dir(&place, target, length, dir, &of_tools, &found);
	arena_free(&arena);
	if (r == -ENOMEM)
		return error_no_memory(e, "options");
	return r < 0 || of_tools ? refuse_tools(e, target) : 0;
}

static int check_name(const struct learn_file *f, struct error *e)
{
	struct stat st;

	if (fstatat(f->dir, f->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		int r = refuse(e, ERROR_OWN(EEXIST), f->target,
			S_ISLNK(st.st_mode)
				? "what is learned cannot be written: this is a symbolic link"
				: "what is learned cannot be written: this exists already");

		error_hint(e, "name a new file");
		return r;
	}
	if (errno != ENOENT || faccessat(f->dir, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return refuse(e, errno, f->target, "cannot write what is learned");
	return 0;
}

int learn_file_open(
	const char *target, const struct facts *facts, struct learn_file *ret, struct error *e)
{
	struct learn_file f = { .dir = -1, .target = target };
	const char *slash = strrchr(target, '/');
	const char *name = slash ? slash + 1 : target;
	size_t length = (size_t)(name - target);

	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return refuse(e, ERROR_OWN(EISDIR), target,
			"what is learned cannot be written: this is a directory");
	if (strlen(name) >= sizeof(f.name))
		return refuse(e, ENAMETOOLONG, target, "cannot write what is learned");
	memcpy(f.name, name, strlen(name) + 1);
	char *dir = length ? strndup(target, length) : strdup(".");
	if (!dir)
		return error_no_memory(e, "options");
	f.dir = fd_open_at(AT_FDCWD, dir, O_PATH | O_DIRECTORY, 0);
	free(dir);
	if (f.dir < 0)
		return refuse(e, -f.dir, target, "cannot write what is learned");
	int r = check_place(target, length, f.dir, facts, e);
	if (r >= 0)
		r = check_name(&f, e);
	if (r < 0)
		fd_close(&f.dir);
	else
		*ret = f;
	return r;
}

int learn_file_write(const struct learn_file *f, const struct explain *x, struct error *e)
{
	if (!x->learned)
		return refuse(
			e, 0, f->target, "nothing was learned: not even what was refused");
	autofd int fd =
		fd_open_at(f->dir, f->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);

	if (fd < 0)
		return refuse(e, -fd, f->target, "cannot write what was learned");
	int r = fd_write_all(fd, x->learned, x->learned_size);
	if (r >= 0 && fsync(fd) < 0 && errno != EINVAL)
		r = -errno;
	if (r >= 0)
		return 0;
	/* Leave no half of a policy. */
	(void)unlinkat(f->dir, f->name, 0);
	return refuse(e, -r, f->target, "cannot write what was learned");
}

void learn_file_close(struct learn_file *f)
{
	fd_close(&f->dir);
	f->dir = -1;
}

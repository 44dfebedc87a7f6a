/*
 * promote_tree.c - see promote_tree.h.
 *
 * Runs in: the supervisor and the client (host side), on trees that tools wrote and may still change.
 */
#include "host/promote/promote_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/promote/copy.h"
#include "host/promote/promote.h"
#include "host/tree/beneath.h"

enum { BUFFER_BYTES = 8 << 10, ENTRIES_BETWEEN_LOOKS = 64 };

struct level {
	struct beneath_list from;
	int to_fd; /* -1 when inspecting */
	unsigned mode;
	struct timespec times[2];
};

/* Memory of one walk; mapped, because it is too much for the stack. */
struct space {
	struct level levels[PROMOTE_DEPTH_MAX];
	char names[PROMOTE_DEPTH_MAX][NAME_MAX + 1]; /* of the open directories below the top */
	char link[PATH_MAX + 1];
	_Alignas(struct beneath_entry) char buffers[PROMOTE_DEPTH_MAX][BUFFER_BYTES];
};

struct walk {
	bool copying;
	bool saving;   /* copying, whatever it is */
	uint64_t room; /* saving: bytes that may still be copied */
	int first;     /* saving: why the first file that could not be copied was left out */
	int depth;     /* of the deepest open directory; -1: none */
	uint64_t entries;
	const char *shown;
	struct until *until;
	struct space *space;
	struct promote_tree *tree;
	struct error *e;
};

/* --- saying what is wrong ---------------------------------------------------------------------- */

/* @name: in the deepest open directory; NULL: that directory, or the top, itself. */
static int tree_error(struct walk *w, const char *name, int errnum, const char *what)
{
	char on[1024];
	size_t at = (size_t)snprintf(on, sizeof(on), "%s", w->shown);

	for (int i = 1; i <= w->depth && at < sizeof(on); i++)
		at += (size_t)snprintf(on + at, sizeof(on) - at, "/%s", w->space->names[i]);
	if (name && w->depth >= 0 && at < sizeof(on))
		(void)snprintf(on + at, sizeof(on) - at, "/%s", name);
	return error_set(w->e, ERROR_PROMOTE, "promote", errnum, on, "%s", what);
}

static int fail_type(struct walk *w, const char *name, mode_t mode)
{
	if (S_ISLNK(mode))
		return tree_error(w, name, ERROR_OWN(ELOOP), "a symbolic link is not promoted");
	return tree_error(w, name, ERROR_OWN(EINVAL), "neither a file nor a directory");
}

/* 0, or why it goes no further. Asking costs a system call. */
static int check_time(struct walk *w, const char *name, int r)
{
	if (r == 0 && w->entries % ENTRIES_BETWEEN_LOOKS == 0)
		r = until_is_over(w->until);
	if (r == -ETIME)
		return tree_error(w, name, ERROR_OWN(ETIME),
			"the time-out came before everything was promoted");
	return r == -EINTR ? tree_error(w, name, ERROR_OWN(EINTR),
				     "a signal came before everything was promoted")
			   : 0;
}

static int fail_setid(struct walk *w, const char *name)
{
	int r = tree_error(w, name, ERROR_OWN(EINVAL),
		"a file with a setuid or setgid bit is not promoted");

	error_hint(w->e, "run `chmod ug-s` on it first");
	return r;
}

/* --- files ------------------------------------------------------------------------------------- */

static bool same_content(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
		a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Copies @name into the new file @to; @mode: what it was before anything was unlocked. */
static int copy_file(struct walk *w, int from_fd, const char *name, unsigned mode, int to)
{
	struct stat before, after;
	enum copy_how how;
	autofd int from = beneath_open_file(from_fd, name);

	if (from < 0)
		return tree_error(w, name, -from, "cannot read the artifact");
	if (fstat(from, &before) < 0)
		return tree_error(w, name, errno, "cannot read the artifact");
	if (!S_ISREG(before.st_mode))
		return fail_type(w, name, before.st_mode);
	if ((before.st_mode & 06000) && !w->saving)
		return fail_setid(w, name);
	uint64_t held = w->saving ? (uint64_t)before.st_blocks * 512 : 0;
	if (held > w->room)
		return tree_error(w, name, ERROR_OWN(EFBIG),
			"files with several names need more room than there is");
	w->room -= held;
	int r = copy_contents(from, to, before.st_size, w->until, &how);
	if (r == -ETIME || r == -EINTR)
		return check_time(w, name, r);
	if (r == -EIO ||
		(r == 0 && (fstat(from, &after) < 0 || !same_content(&before, &after)))) {
		r = tree_error(w, name, ERROR_OWN(EBUSY),
			"the file was written to while it was copied");
		error_hint(w->e, "promote it when the tool is done with it");
		return r;
	}
	const struct timespec times[2] = { before.st_atim, before.st_mtim };
	if (r == 0 && (futimens(to, times) < 0 || fchmod(to, mode & 0777) < 0))
		r = -errno;
	if (r < 0)
		return tree_error(w, name, -r, "cannot write the copy");
	w->tree->any_copied |= how == COPY_COPIED;
	w->tree->bytes += (uint64_t)before.st_size;
	return 0;
}

static int visit_file(
	struct walk *w, int from_fd, const char *name, const struct stat *st, int to_fd)
{
	if ((st->st_mode & 06000) && !w->saving)
		return fail_setid(w, name);
	w->tree->files++;
	if (!w->copying) {
		w->tree->bytes += (uint64_t)st->st_size;
		w->tree->copy_only |= st->st_nlink > 1 || st->st_uid != geteuid();
		return 0;
	}
	autofd int to = fd_open_at(to_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (to < 0)
		return tree_error(w, name, -to, "cannot write the copy");
	int r = copy_file(w, from_fd, name, st->st_mode, to);
	if (r == 0 || !w->saving)
		return r;
	w->first = w->first ? w->first : r;
	return unlinkat(to_fd, name, 0) < 0 ? r : 0;
}

/* --- links ------------------------------------------------------------------------------------- */

/*
 * Whether a link in a directory @depth levels below the top stays below the top whatever it passes:
 * leading ".." start from a real directory; behind them it only descends, through directories, or
 * links of which the same is true.
 */
static bool stays_inside(const char *target, int depth)
{
	bool descending = false;

	if (target[0] == '/' || !target[0])
		return false;
	for (const char *at = target; *at;) {
		size_t length = strcspn(at, "/");
		bool up = length == 2 && at[0] == '.' && at[1] == '.';

		if (up && (descending || --depth < 0))
			return false;
		if (!up && length > 0 && !(length == 1 && at[0] == '.'))
			descending = true;
		at += length + (at[length] == '/');
	}
	return true;
}

static int visit_link(struct walk *w, int from_fd, const char *name, int to_fd)
{
	char *target = w->space->link;

	if (w->depth < 0)
		return fail_type(w, name, S_IFLNK);
	ssize_t n = readlinkat(from_fd, name, target, PATH_MAX);
	if (n < 0)
		return tree_error(w, name, errno, "cannot read a symbolic link");
	target[n] = '\0';
	if (!w->saving && !stays_inside(target, w->depth)) {
		int r = tree_error(w, name, ERROR_OWN(ELOOP),
			"a symbolic link that may lead out of what is promoted");

		error_hint(w->e, "relative links within the promoted directory are kept");
		return r;
	}
	if (w->copying && symlinkat(target, to_fd, name) < 0)
		return tree_error(w, name, errno, "cannot write the copy");
	return 0;
}

/* --- directories ------------------------------------------------------------------------------- */

static int push(struct walk *w, const char *name, int *from, int *to, const struct stat *st)
{
	if (w->depth + 1 >= PROMOTE_DEPTH_MAX)
		return tree_error(
			w, name, ERROR_OWN(E2BIG), "it is more than 128 directories deep");
	struct level *l = &w->space->levels[++w->depth];
	*l = (struct level){ .from = { .fd = take_fd(from),
				     .buffer = w->space->buffers[w->depth],
				     .size = BUFFER_BYTES },
		.to_fd = take_fd(to),
		.mode = st->st_mode & 0777,
		.times = { st->st_atim, st->st_mtim } };
	(void)snprintf(w->space->names[w->depth], NAME_MAX + 1, "%s", name);
	return 0;
}

static int visit_dir(
	struct walk *w, int from_fd, const char *name, const struct stat *st, int to_fd)
{
	autofd int to = -1;
	autofd int from = w->copying
		? beneath_open_dir(from_fd, name)
		: beneath_open(from_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
			  BENEATH_SAME_MOUNT);

	if (from == -EACCES && !w->copying) {
		w->tree->copy_only = true;
		return 0;
	}
	if (from < 0)
		return tree_error(w, name, -from, "cannot read the artifact");
	if (st->st_uid != geteuid())
		w->tree->copy_only = true;
	if (w->copying) {
		if (mkdirat(to_fd, name, 0700) < 0)
			return tree_error(w, name, errno, "cannot write the copy");
		to = beneath_open(
			to_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, BENEATH_SAME_MOUNT);
		if (to < 0)
			return tree_error(w, name, -to, "cannot write the copy");
	}
	return push(w, name, &from, &to, st);
}

static int visit_entry(struct walk *w, int from_fd, const char *name, int to_fd)
{
	struct stat st;

	int r = check_time(w, name, 0);
	if (r < 0)
		return r;
	if (++w->entries > PROMOTE_ENTRIES_MAX)
		return tree_error(
			w, NULL, ERROR_OWN(E2BIG), "it has more than 1000000 entries");
	if (fstatat(from_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		/* A tool has just removed it: then it is no part of the artifact. */
		return errno == ENOENT ? 0
				       : tree_error(w, name, errno, "cannot read the artifact");
	if (S_ISDIR(st.st_mode))
		return visit_dir(w, from_fd, name, &st, to_fd);
	if (S_ISREG(st.st_mode))
		return visit_file(w, from_fd, name, &st, to_fd);
	if (S_ISLNK(st.st_mode))
		return visit_link(w, from_fd, name, to_fd);
	return w->saving ? 0 : fail_type(w, name, st.st_mode);
}

/* The mode last: it may lock the directory. */
static int close_level(struct walk *w, bool complete)
{
	struct level *l = &w->space->levels[w->depth];
	int r = 0;

	if (complete && l->to_fd >= 0 &&
		(futimens(l->to_fd, l->times) < 0 || fchmod(l->to_fd, l->mode) < 0))
		r = tree_error(w, NULL, errno, "cannot write the copy");
	fd_close(&l->from.fd);
	fd_close(&l->to_fd);
	w->depth--;
	return r;
}

/* One step: the next entry of the deepest directory, or one level up. */
static int walk_step(struct walk *w)
{
	struct level *l = &w->space->levels[w->depth];
	struct beneath_entry *entry;
	int r = beneath_next(&l->from, &entry);

	if (r < 0 && r != -ENOENT)
		return tree_error(w, NULL, -r, "cannot read the artifact");
	if (r <= 0) /* at its end, or removed by a tool */
		return close_level(w, true);
	return visit_entry(w, l->from.fd, entry->name, l->to_fd);
}

static int walk_all(struct walk *w)
{
	int r = 0;

	while (w->depth >= 0 && r == 0)
		r = walk_step(w);
	while (w->depth >= 0)
		(void)close_level(w, false); /* only descriptors */
	return r;
}

static int begin_walk(
	struct walk *w, const char *shown, struct promote_tree *ret, struct error *e)
{
	*ret = (struct promote_tree){ 0 };
	w->depth = -1;
	w->shown = shown;
	w->tree = ret;
	w->e = e;
	w->space = mmap(NULL, sizeof(*w->space), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w->space == MAP_FAILED)
		return error_set(e, ERROR_PROMOTE, "promote", ENOMEM, shown,
			"cannot examine the artifact");
	return 0;
}

int promote_tree_inspect(int from_fd, const char *name, const char *shown, struct until *until,
	struct promote_tree *ret, struct error *e)
{
	struct walk w = { .copying = false, .until = until };
	int r = begin_walk(&w, shown, ret, e);

	if (r < 0)
		return r;
	r = visit_entry(&w, from_fd, name, -1);
	if (r == 0)
		r = walk_all(&w);
	(void)munmap(w.space, sizeof(*w.space));
	return r;
}

/* The top exists already; what is below it is made by the walk. */
static int copy_top(struct walk *w, int from_fd, const char *name, int to_fd)
{
	struct stat st;

	if (fstatat(from_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return tree_error(w, NULL, errno, "cannot read the artifact");
	if (S_ISREG(st.st_mode)) {
		w->tree->files = 1;
		int r = copy_file(w, from_fd, name, st.st_mode, to_fd);

		if (r == 0 && fsync(to_fd) < 0)
			r = tree_error(w, NULL, errno, "cannot flush the copy to the disk");
		return r;
	}
	if (!S_ISDIR(st.st_mode))
		return fail_type(w, NULL, st.st_mode);
	autofd int from = beneath_open_dir(from_fd, name);
	autofd int to = fcntl(to_fd, F_DUPFD_CLOEXEC, 3);
	if (from < 0 || to < 0)
		return tree_error(
			w, NULL, from < 0 ? -from : errno, "cannot read the artifact");
	int r = push(w, name, &from, &to, &st);
	return r < 0 ? r : walk_all(w);
}

static int copy_with(struct walk *w, int from_fd, const char *name, int to_fd,
	const char *shown, struct promote_tree *ret, struct error *e)
{
	int r = begin_walk(w, shown, ret, e);

	if (r < 0)
		return r;
	r = copy_top(w, from_fd, name, to_fd);
	(void)munmap(w->space, sizeof(*w->space));
	return r < 0 ? r : w->first;
}

int promote_tree_copy(int from_fd, const char *name, int to_fd, const char *shown,
	struct until *until, struct promote_tree *ret, struct error *e)
{
	struct walk w = { .copying = true, .until = until };

	return copy_with(&w, from_fd, name, to_fd, shown, ret, e);
}

int promote_tree_save(int from_fd, int to_fd, uint64_t max_bytes, const char *shown,
	struct promote_tree *ret, struct error *e)
{
	struct walk w = { .copying = true, .saving = true, .room = max_bytes };

	return copy_with(&w, from_fd, ".", to_fd, shown, ret, e);
}

/*
 * session.c - see session.h.
 *
 * Runs in: the launcher, outside.
 */
#include "host/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "host/beneath.h"
#include "host/cgroup.h"
#include "host/manifest.h"
#include "host/remove.h"

/* In a session directory: kept on request. Its text is the end of that, in seconds since 1970, or 0. */
#define KEEP_FILE "keep"
#define NAME_PREFIX "carrel-"
#define NAME_LENGTH (sizeof(NAME_PREFIX) - 1 + 20)
enum { MAKE_ROUNDS = 100 }; /* each of them met by a sweep within some µs */

static int scratch_error(const struct session *s, int r, const char *what, struct error *e)
{
	char on[1024];

	(void)snprintf(on, sizeof(on), "%s/%s", s->base_path, s->name);
	r = error_set(e, ERROR_SCRATCH, "session", -r, on, "%s", what);
	if (r == -ENOSPC || r == -EDQUOT)
		error_hint(
			e, "free some space there, or name another place with --scratch-base");
	return r;
}

static int make_entry(int dir, const struct session_entry *entry, const struct facts *facts)
{
	if (entry->is_file) {
		autofd int fd = fd_open_at(dir, entry->path, O_WRONLY | O_CREAT | O_EXCL, 0600);

		return fd < 0 ? fd : 0;
	}
	if (mkdirat(dir, entry->path, 0700) < 0)
		return -errno;
	if (!entry->owned)
		return 0;
	if (facts->privileged &&
		fchownat(dir, entry->path, facts->kernel_uid, facts->kernel_gid,
			AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return fchmodat(dir, entry->path, entry->mode, 0) < 0 ? -errno : 0;
}

static int make_entries(int dir, const struct plan *plan)
{
	int r = 0;

	for (size_t i = 0; i < plan->entry_count && r >= 0; i++)
		r = make_entry(dir, &plan->entries[i], plan->facts);
	return r;
}

/* One attempt of make_locked(): -EAGAIN where a sweep came between. */
static int try_to_make(struct session *s, const char *new_name)
{
	if (mkdirat(s->base, new_name, 0700) < 0)
		return -errno;
	s->dir = fd_open_at(s->base, new_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int r = s->dir < 0 ? s->dir : 0;
	if (r == 0 && flock(s->dir, LOCK_EX | LOCK_NB) < 0)
		r = -errno;
	if (r == 0 && renameat(s->base, new_name, s->base, s->name) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	(void)unlinkat(s->base, new_name, AT_REMOVEDIR);
	fd_close(&s->dir);
	return r == -ENOENT || r == -EWOULDBLOCK ? -EAGAIN : r;
}

/*
 * Made and locked under a name that no sweep takes for a session, then renamed: at no moment is
 * there an unlocked directory that looks like a dead session's. Under that name it is empty, and a sweep
 * that finds it unlocked removes it, as whoever made it may have been killed. Where he was not, he makes
 * another: what is renamed is what he locked, since nobody else makes any of this name.
 */
static int make_locked(struct session *s, const char *new_name)
{
	int r = -EAGAIN;

	for (int i = 0; i < MAKE_ROUNDS && r == -EAGAIN; i++)
		r = try_to_make(s, new_name);
	return r;
}

static void undo(struct session *s)
{
	struct remove_result gone;
	struct error ignored = { 0 };
	int r = remove_tree(s->base, s->name, &gone, &ignored);

	(void)r; /* the cause of the failure is what the user needs to hear */
	session_close(s);
}

int session_create(struct session *ret, const struct plan *plan, struct error *e)
{
	struct session s = { .base = -1,
		.dir = -1,
		.memory = -1,
		.base_path = plan->facts->scratch_base,
		.name = plan->facts->session_name };
	char new_name[64];

	(void)snprintf(new_name, sizeof(new_name), ".%s", s.name);
	s.base = fd_open_at(AT_FDCWD, s.base_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (s.base < 0)
		return scratch_error(&s, s.base, "cannot open the scratch base", e);
	int r = make_locked(&s, new_name);
	if (r < 0) {
		r = scratch_error(&s, r, "cannot make the session directory", e);
		session_close(&s);
		return r;
	}
	r = make_entries(s.dir, plan);
	if (r < 0) {
		r = scratch_error(&s, r, "cannot furnish the session directory", e);
		undo(&s);
		return r;
	}
	*ret = s;
	return 0;
}

int session_keep(struct session *s, uint64_t keep_ms, struct error *e)
{
	char text[32];
	uint64_t until = keep_ms ? (uint64_t)time(NULL) + (keep_ms + 999) / 1000 : 0;
	int length = snprintf(text, sizeof(text), "%llu\n", (unsigned long long)until);
	autofd int fd =
		fd_open_at(s->dir, KEEP_FILE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	int r = fd < 0 ? fd : fd_write_all(fd, text, (size_t)length);

	return r < 0 ? scratch_error(s, r, "cannot mark the session directory as kept", e) : 0;
}

int session_scratch(const struct session *s)
{
	return beneath_open(s->memory >= 0 ? s->memory : s->dir,
		s->memory >= 0 ? "." : "scratch", O_PATH | O_DIRECTORY | O_NOFOLLOW,
		BENEATH_SAME_MOUNT);
}

void session_close(struct session *s)
{
	fd_close(&s->memory);
	fd_close(&s->dir);
	fd_close(&s->base);
}

/* Whether a session directory is to stay: 1 yes, 0 no (none asked, or its time is over). */
static int is_kept(int dir)
{
	char text[32];
	uint64_t until = 0;
	autofd int fd = fd_open_at(dir, KEEP_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	if (fd == -ENOENT)
		return 0;
	ssize_t n = fd < 0 ? fd : fd_read_file(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 1; /* somebody wanted it to stay; how long cannot be read */
	text[strcspn(text, "\n")] = '\0';
	if (text_parse_count(text, &until) < 0)
		return 1;
	return until > (uint64_t)time(NULL);
}

bool session_is_name(const char *name)
{
	size_t prefix = sizeof(NAME_PREFIX) - 1;

	return strlen(name) == NAME_LENGTH && !strncmp(name, NAME_PREFIX, prefix) &&
		strspn(name + prefix, "abcdefghijklmnopqrstuvwxyz234567") ==
		NAME_LENGTH - prefix;
}

enum verdict { SWEEP_NOT_OURS, SWEEP_LIVE, SWEEP_KEPT, SWEEP_DEAD, SWEEP_UNMADE };

static enum verdict judge(int base, const char *name, int *ret_dir)
{
	struct stat st;
	bool is_new = name[0] == '.' && session_is_name(name + 1);

	if (!is_new && !session_is_name(name))
		return SWEEP_NOT_OURS;
	autofd int dir = fd_open_at(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir < 0 || fstat(dir, &st) < 0 || st.st_uid != geteuid())
		return SWEEP_NOT_OURS;
	/* The lock is held until the removal is over: two sweeps never work on the same tree. */
	if (flock(dir, LOCK_EX | LOCK_NB) < 0)
		return SWEEP_LIVE;
	/* Its session has removed it meanwhile, and let the lock go. */
	if (fstat(dir, &st) < 0 || st.st_nlink == 0)
		return SWEEP_NOT_OURS;
	if (!is_new && is_kept(dir))
		return SWEEP_KEPT;
	*ret_dir = take_fd(&dir);
	return is_new ? SWEEP_UNMADE : SWEEP_DEAD;
}

/* Where the sessions lie. */
struct scratch_base {
	int fd; /* borrowed */
	const char *path;
};

/* What never became a session: empty, or not ours; whoever is making it after all makes another. */
static void sweep_unmade(int base, const char *name, struct session_sweep *ret, struct error *e)
{
	if (unlinkat(base, name, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTEMPTY)
		return;
	(void)error_set(e, ERROR_TEARDOWN, "close", errno, name,
		"cannot remove a session directory that was being made");
	ret->failed++;
}

static void sweep_one(const struct scratch_base *at, const char *name, unsigned flags,
	struct session_sweep *ret, void (*each)(void *context, const char *name), void *context,
	struct error *e)
{
	bool dry_run = flags & SWEEP_DRY_RUN;
	int base = at->fd;
	struct remove_result gone;
	autofd int dir = -1;

	switch (judge(base, name, &dir)) {
	case SWEEP_NOT_OURS:
		return;
	case SWEEP_LIVE:
		ret->live++;
		return;
	case SWEEP_KEPT:
		ret->kept++;
		return;
	case SWEEP_UNMADE:
		if (!dry_run)
			sweep_unmade(base, name, ret, e);
		return;
	case SWEEP_DEAD:
		break;
	}
	int settled = dry_run
		? 0
		: manifest_settle(base, at->path, dir, name, flags & SWEEP_QUIET, e);
	if (settled < 0) {
		*(settled == -EBUSY ? &ret->live : &ret->failed) += 1;
		return;
	}
	if (!dry_run && cgroup_sweep_noted(dir, name, e) < 0) {
		ret->failed++;
		return;
	}
	if (!dry_run && remove_tree(base, name, &gone, e) < 0) {
		ret->failed++;
		return;
	}
	ret->removed++;
	if (each)
		each(context, name);
}

int session_sweep_one(const char *base_path, const char *name, unsigned flags,
	void (*each)(void *context, const char *name), void *context, struct session_sweep *ret,
	struct error *e)
{
	autofd int base = fd_open_at(AT_FDCWD, base_path, O_RDONLY | O_DIRECTORY, 0);

	*ret = (struct session_sweep){ 0 };
	if (base < 0)
		return error_set(e, ERROR_SCRATCH, "session", -base, base_path,
			"cannot read the scratch base");
	const struct scratch_base at = { base, base_path };

	sweep_one(&at, name, flags, ret, each, context, e);
	if (ret->failed)
		error_below(e, base_path);
	return 0;
}

int session_sweep(const char *base_path, unsigned flags,
	void (*each)(void *context, const char *name), void *context, struct session_sweep *ret,
	struct error *e)
{
	struct dirent *entry;
	int fd = fd_open_at(AT_FDCWD, base_path, O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	*ret = (struct session_sweep){ 0 };
	if (!dir) {
		int errnum = fd < 0 ? -fd : errno;

		fd_close(&fd);
		return error_set(e, ERROR_SCRATCH, "session", errnum, base_path,
			"cannot read the scratch base");
	}
	const struct scratch_base at = { dirfd(dir), base_path };

	while ((entry = readdir(dir)))
		if (entry->d_name[0] == '.' || entry->d_name[0] == 'c')
			sweep_one(&at, entry->d_name, flags, ret, each, context, e);
	(void)closedir(dir);
	if (ret->failed)
		error_below(e, base_path);
	return 0;
}

/*
 * quarantine_held.c - see quarantine_held.h.
 *
 * Runs in: `carrel quarantine` and `carrel gc`, outside.
 */
#include "host/quarantine/quarantine_held.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/sys.h"
#include "host/quarantine/quarantine.h"
#include "host/quarantine/quarantine_move.h"
#include "host/tree/beneath.h"
#include "host/tree/remove.h"

#define IGNORE ".gitignore"

enum { AGE_ARENA_SIZE = 256 << 20 }; /* address space */

/* --- finding ---------------------------------------------------------------------------------- */

/* The bytes of @path in front of its last component, and where that begins. */
static size_t split(const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');

	*ret_name = slash ? slash + 1 : path;
	return slash ? (size_t)(slash - path) : 0;
}

static bool is_gone(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -ESTALE;
}

static int open_root(const struct quarantine_record *r)
{
	struct stat st;
	autofd int root = sys_openat2(AT_FDCWD, r->root, O_PATH | O_DIRECTORY | O_CLOEXEC,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (root < 0)
		return root;
	if (fstat(root, &st) < 0)
		return -errno;
	return st.st_ino == r->root_ino ? take_fd(&root) : -ESTALE;
}

static int find(const struct quarantine_record *r, struct quarantine_held *ret)
{
	const char *name;
	size_t length = split(r->to, &name);
	autofd int root = open_root(r);
	autofd int dir = root < 0 ? root : quarantine_prefix(root, r->to, length, O_DIRECTORY);

	if (dir < 0)
		return dir;
	struct quarantine_held h = { .record = r, .name = name };
	if (fstatat(dir, name, &h.st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (h.st.st_ino != r->ino)
		return -ENOENT; /* somebody else's */
	h.changed = !S_ISDIR(h.st.st_mode) &&
		((uint64_t)h.st.st_size != r->size ||
			(int64_t)h.st.st_ctim.tv_sec * INT64_C(1000000000) +
					h.st.st_ctim.tv_nsec !=
				r->ctime_ns);
	h.root = take_fd(&root);
	h.dir = take_fd(&dir);
	*ret = h;
	return 0;
}

int quarantine_held_open(const struct quarantine_record *record, struct quarantine_held *ret)
{
	int r = find(record, ret);

	return is_gone(r) ? -ENOENT : r;
}

void quarantine_held_close(struct quarantine_held *h)
{
	fd_close(&h->dir);
	fd_close(&h->root);
}

/* --- the directory ---------------------------------------------------------------------------- */

/* Whether @dir holds nothing but the ignore file that carrel made with it. */
static bool is_empty(int dir)
{
	_Alignas(struct beneath_entry) char buffer[2048];
	ssize_t n;
	autofd int fd = beneath_open(dir, ".", O_RDONLY | O_DIRECTORY, BENEATH_SAME_MOUNT);

	if (fd < 0)
		return false;
	while ((n = beneath_read(fd, buffer, sizeof(buffer))) > 0)
		for (ssize_t i = 0; i < n;) {
			const struct beneath_entry *entry = (void *)(buffer + i);

			i += entry->length;
			if (!beneath_is_dots(entry->name) && strcmp(entry->name, IGNORE) != 0)
				return false;
		}
	return n == 0;
}

/* A failure leaves an empty directory, which does no harm. */
static void tidy(const struct quarantine_held *h)
{
	const char *to = h->record->to, *name;
	char last[QUARANTINE_NAME + 16];
	size_t length = split(to, &name);
	size_t above = length;

	while (above > 0 && to[above - 1] != '/')
		above--;
	if (length - above >= sizeof(last) ||
		strncmp(to + above, QUARANTINE_PREFIX, strlen(QUARANTINE_PREFIX)) != 0 ||
		!is_empty(h->dir))
		return;
	memcpy(last, to + above, length - above);
	last[length - above] = '\0';
	autofd int up = quarantine_prefix(h->root, to, above ? above - 1 : 0, O_DIRECTORY);
	if (up < 0)
		return;
	(void)unlinkat(h->dir, IGNORE, 0);
	(void)unlinkat(up, last, AT_REMOVEDIR);
}

/* --- back, or away ---------------------------------------------------------------------------- */

static int fail(const struct quarantine_record *r, int result, struct error *e)
{
	char on[1024];

	quarantine_record_path(r, on, sizeof(on));
	int set = error_set(e, ERROR_PATH, "session", -result, on,
		"what was quarantined cannot be put back");

	if (result == -EEXIST)
		error_hint(e,
			"nothing is overwritten: see carrel quarantine diff %s, and move away what is there",
			r->id);
	else if (result == -ENOENT)
		error_hint(e, "the directory that it was in is gone: make it first");
	else if (result == -ELOOP || result == -ENOTDIR)
		error_hint(e, "no link is followed on the way to it");
	return set;
}

int quarantine_held_restore(const struct quarantine_held *h, struct error *e)
{
	const struct quarantine_record *r = h->record;
	struct stat now;
	const char *name;
	size_t length = split(r->from, &name);
	autofd int dir = quarantine_prefix(h->root, r->from, length, O_DIRECTORY);

	if (dir < 0)
		return fail(r, dir, e);
	if (syscall(SYS_renameat2, h->dir, h->name, dir, name, RENAME_NOREPLACE) < 0)
		return fail(r, -errno, e);
	/* A tool of a live session may have exchanged it after quarantine_held_open(): then put it back. */
	if (fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) < 0 || now.st_ino != h->st.st_ino ||
		now.st_dev != h->st.st_dev) {
		(void)syscall(SYS_renameat2, dir, name, h->dir, h->name, RENAME_NOREPLACE);
		return fail(r, -ESTALE, e);
	}
	tidy(h);
	return 0;
}

int quarantine_held_remove(const struct quarantine_held *h, struct error *e)
{
	struct remove_result gone;
	int r = remove_tree(h->dir, h->name, &gone, e);

	if (r < 0) {
		error_below(e, h->record->root);
		return r;
	}
	tidy(h);
	return 0;
}

/* --- age -------------------------------------------------------------------------------------- */

/* 1: it was removed (@dry_run: would be), and the caller tells; 0: it stays; or -errno. */
static int age_one(const struct quarantine_record *r, int records, bool dry_run, int64_t now,
	struct error *e)
{
	struct quarantine_held h;
	int result = quarantine_held_open(r, &h);

	if (result == -ENOENT) {
		/* If the writable place exists and the thing is not in it, somebody has dealt with it: forget the record. */
		autofd int root = open_root(r);

		if (!dry_run && (root >= 0 || r->until_s <= now))
			result = quarantine_record_forget(records, r->id);
		return result < 0 && result != -ENOENT ? result : 0;
	}
	if (result < 0)
		return result;
	if (r->until_s <= now) {
		result = dry_run ? 0 : quarantine_held_remove(&h, e);
		if (result == 0 && !dry_run)
			result = quarantine_record_forget(records, r->id);
		result = result < 0 ? result : 1;
	}
	quarantine_held_close(&h);
	return result;
}

int quarantine_held_age(int records, bool dry_run,
	void (*each)(void *context, const char *path), void *context, struct error *e)
{
	struct quarantine_record *list = NULL;
	struct arena arena;
	size_t count = 0;
	char path[1024];
	int first = arena_init(&arena, AGE_ARENA_SIZE);

	if (first < 0)
		return error_no_memory(e, "session");
	first = quarantine_record_list(records, &arena, &list, &count);
	int64_t now = time(NULL);
	for (size_t i = 0; i < count; i++) {
		int r = age_one(&list[i], records, dry_run, now, e);

		quarantine_record_path(&list[i], path, sizeof(path));
		if (r > 0)
			each(context, path);
		if (r < 0 && first >= 0)
			first = error_set(e, ERROR_TEARDOWN, "session", -r, path,
				"cannot remove what has been in quarantine for long");
	}
	arena_free(&arena);
	return first;
}

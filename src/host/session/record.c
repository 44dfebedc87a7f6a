/*
 * record.c - see record.h.
 *
 * Runs in: the launcher, the supervisor, its clients, and the sweep, outside.
 */
#include "host/session/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "box/sys.h"
#include "host/tree/beneath.h"
#include "host/tree/remove.h"

enum {
	MAKE_ROUNDS = 100, /* each of them met by a sweep within some us */
	LIST_BYTES = 512,
	ATTRIBUTE_MAX =
		60 /* bytes; more makes ext4 take a block beside an inode of the usual size */
};

/*
 * The directory of a record that is over: empty, without attributes, and not the name of a record. The next session
 * takes it: to make and to free an inode costs a disk more than all else that a record needs (docs/performance.md).
 */
#define SPARE ".spare"

/*
 * The text is PATH, or "DEVICE:INODE PATH". If it is too long, or the file system has no
 * attributes, each of the two is a link.
 */
static const char attribute[] = "user.carrel.where";
static const char where_link[] = "where", inode_link[] = "inode";

/* --- making ------------------------------------------------------------------------------------ */

/*
 * An inode costs what ten attributes do (docs/performance.md): if the attribute is refused, for
 * whatever reason, a link is made.
 */
static int put_where(int record, const char *path)
{
	size_t length = strlen(path);

	if (length <= ATTRIBUTE_MAX &&
		fsetxattr(record, attribute, path, length, XATTR_CREATE) == 0)
		return 0;
	return symlinkat(path, record, where_link) < 0 ? -errno : 0;
}

/* Take the spare, which is then nobody else's, or make a directory; neither is a record yet. */
static int take_directory(int records, const char *name)
{
	if (syscall(SYS_renameat2, records, SPARE, records, name, RENAME_NOREPLACE) == 0)
		return 0;
	return mkdirat(records, name, 0700) < 0 ? -errno : 0;
}

/*
 * Make an empty directory and lock it. -EAGAIN: a sweep has claimed it first; or it was the spare, and the session that
 * left it holds its lock for a moment more. Nobody uses it then, and it is removed here: a sweep may come much later.
 */
static int make_locked(int records, const char *name)
{
	struct stat st;
	int r = take_directory(records, name);

	if (r < 0)
		return r;
	autofd int record = fd_open_at(records, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (record < 0)
		return record == -ENOENT ? -EAGAIN : record;
	if (flock(record, LOCK_EX | LOCK_NB) < 0) {
		r = -errno;                                  /* EWOULDBLOCK is EAGAIN */
		(void)unlinkat(records, name, AT_REMOVEDIR); /* ENOENT: that sweep was faster */
		return r;
	}
	if (fstat(record, &st) < 0)
		return -errno;
	return st.st_nlink == 0 ? -EAGAIN : take_fd(&record);
}

/*
 * Only a process that holds its lock removes a record's directory, and this one is locked before it
 * has the name of a record: a sweep that claims it before it is locked removes what nobody uses.
 */
int record_make(int records, const char *id, const char *session_dir)
{
	char name[SESSION_ID_LENGTH + 16];
	autofd int record = -EAGAIN;

	for (unsigned i = 0; i < MAKE_ROUNDS && record == -EAGAIN; i++) {
		(void)snprintf(name, sizeof(name), "%s.%u", id, i);
		record = make_locked(records, name);
	}
	if (record < 0)
		return record;
	int r = put_where(record, session_dir);
	if (r >= 0 && renameat(records, name, records, id) < 0)
		r = -errno;
	if (r >= 0)
		return take_fd(&record);
	(void)unlinkat(record, where_link, 0);
	(void)unlinkat(records, name, AT_REMOVEDIR); /* a sweep tries again */
	return r;
}

int record_note_inode(int record, dev_t dev, ino_t ino)
{
	char text[64 + ATTRIBUTE_MAX];
	int length = snprintf(text, 64, "%ju:%ju", (uintmax_t)dev, (uintmax_t)ino);
	ssize_t path = fgetxattr(record, attribute, text + length + 1, ATTRIBUTE_MAX);
	size_t both = path < 0 ? SIZE_MAX : (size_t)length + 1 + (size_t)path;

	if (both <= ATTRIBUTE_MAX) {
		text[length] = ' ';
		if (fsetxattr(record, attribute, text, both, XATTR_REPLACE) == 0)
			return 0;
		text[length] = '\0';
	}
	return symlinkat(text, record, inode_link) < 0 ? -errno : 0;
}

/* --- reading ----------------------------------------------------------------------------------- */

int record_claim(int records, const char *id)
{
	struct stat st, named;
	autofd int record = fd_open_at(records, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (record < 0)
		return record;
	if (flock(record, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	/* Its session has removed it meanwhile, or left it to another one, and let the lock go. */
	if (fstat(record, &st) < 0 || st.st_nlink == 0 ||
		fstatat(records, id, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
		named.st_ino != st.st_ino)
		return -ENOENT;
	return take_fd(&record);
}

static bool has_no_attribute(int errnum)
{
	return errnum == ENODATA || errnum == ENOTSUP || errnum == ENOSYS;
}

/* @n: what was read into @text of @size bytes, or -1 with errno. */
static int terminate(char *text, size_t size, ssize_t n)
{
	if (n < 0)
		return errno == ERANGE ? -EBADMSG : -errno;
	if ((size_t)n >= size || memchr(text, '\0', (size_t)n))
		return -EBADMSG;
	text[n] = '\0';
	return 0;
}

static int take_inode(char *text, struct record_where *where)
{
	uint64_t dev = 0, ino = 0;
	char *colon = strchr(text, ':');

	if (!colon)
		return -EBADMSG;
	*colon = '\0';
	if (text_parse_count(text, &dev) < 0 || text_parse_count(colon + 1, &ino) < 0)
		return -EBADMSG;
	where->dev = dev;
	where->ino = ino;
	where->made = true;
	return 0;
}

/* Read the whole path into `base`; the inode may stand in front of it. */
static int read_attribute(int record, struct record_where *where)
{
	ssize_t n = fgetxattr(record, attribute, where->base, sizeof(where->base));

	if (n < 0 && has_no_attribute(errno))
		n = readlinkat(record, where_link, where->base, sizeof(where->base));
	int r = terminate(where->base, sizeof(where->base), n);
	char *space = r < 0 || where->base[0] == '/' ? NULL : strchr(where->base, ' ');
	if (!space)
		return r;
	*space = '\0';
	r = take_inode(where->base, where);
	memmove(where->base, space + 1, strlen(space + 1) + 1);
	return r;
}

static int read_inode_link(int record, struct record_where *where)
{
	char text[64];
	ssize_t n = readlinkat(record, inode_link, text, sizeof(text));

	if (n < 0 && errno == ENOENT)
		return 0;
	int r = terminate(text, sizeof(text), n);
	return r < 0 ? r : take_inode(text, where);
}

/* The path "/base/carrel-<id>" becomes a base and a name. */
static int split_path(struct record_where *where)
{
	char *slash = strrchr(where->base, '/');

	if (where->base[0] != '/' || strlen(slash + 1) != sizeof(where->name) - 1 ||
		strncmp(slash + 1, SESSION_NAME_PREFIX, strlen(SESSION_NAME_PREFIX)) != 0 ||
		!session_is_id(slash + 1 + strlen(SESSION_NAME_PREFIX)))
		return -EBADMSG;
	memcpy(where->name, slash + 1, sizeof(where->name));
	slash[slash == where->base] = '\0'; /* "/" stays */
	return 0;
}

int record_read_where(int record, struct record_where *ret)
{
	ret->name[0] = '\0';
	ret->made = false;
	int r = read_attribute(record, ret);
	if (r >= 0)
		r = split_path(ret);
	return r < 0 || ret->made ? r : read_inode_link(record, ret);
}

static bool is_gone(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

int record_open_where(const struct record_where *where, int *ret_base, int *ret_dir)
{
	struct stat st;
	autofd int base = sys_openat2(AT_FDCWD, where->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	autofd int dir = base < 0
		? base
		: fd_open_at(base, where->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (dir < 0)
		return is_gone(dir) ? -ENOENT : dir;
	if (fstat(dir, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() ||
		(where->made && (st.st_dev != where->dev || st.st_ino != where->ino)))
		return -ENOENT;
	*ret_base = take_fd(&base);
	*ret_dir = take_fd(&dir);
	return 0;
}

/* --- removing ---------------------------------------------------------------------------------- */

static int remove_directory(int records, const char *id)
{
	return unlinkat(records, id, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

static bool is_full(int r)
{
	return r == -ENOTEMPTY || r == -EEXIST;
}

/* Remove the files that most records have. If one cannot be removed, the directory is not empty afterwards: the caller sees that. */
static void remove_files(int record)
{
	(void)unlinkat(record, "protected", 0);
	(void)unlinkat(record, inode_link, 0);
	(void)unlinkat(record, where_link, 0);
}

int record_remove(int records, const char *id, int record)
{
	struct remove_result gone;
	int r = remove_directory(records, id);

	if (!is_full(r))
		return r;
	remove_files(record);
	r = remove_directory(records, id);
	return is_full(r) ? remove_tree(records, id, &gone, NULL) : r;
}

static bool has_no_text(int record)
{
	return fremovexattr(record, attribute) == 0 || has_no_attribute(errno);
}

static bool is_empty(int record)
{
	_Alignas(struct beneath_entry) char buffer[LIST_BYTES];
	struct beneath_list list = { .fd = record, .size = sizeof(buffer), .buffer = buffer };
	struct beneath_entry *entry;

	return lseek(record, 0, SEEK_SET) == 0 && beneath_next(&list, &entry) == 0;
}

int record_leave(int records, const char *id, int record)
{
	remove_files(record);
	if (has_no_text(record) && is_empty(record) &&
		syscall(SYS_renameat2, records, id, records, SPARE, RENAME_NOREPLACE) == 0)
		return 0;
	return record_remove(records, id, record);
}

/* --- all of them ------------------------------------------------------------------------------- */

struct record_list *record_list(int records)
{
	int fd = fd_open_at(records, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd < 0)
		errno = -fd;
	else if (!dir)
		fd_close(&fd);
	return (struct record_list *)(void *)dir;
}

/* An id, or what was to become a record of that id: "ID.N". */
static bool is_record(char *name)
{
	char *end = strchrnul(name, '.');
	char c = *end;

	*end = '\0';
	bool is = session_is_id(name);
	*end = c;
	return is;
}

const char *record_next(struct record_list *list)
{
	struct dirent *entry;

	while ((entry = readdir((DIR *)(void *)list)))
		if (is_record(entry->d_name))
			return entry->d_name;
	return NULL;
}

void record_list_end(struct record_list *list)
{
	(void)closedir((DIR *)(void *)list);
}

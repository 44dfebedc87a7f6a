/*
 * record.c - see record.h.
 *
 * Runs in: the launcher, the supervisor, its clients, and the sweep, outside.
 */
#include "host/session/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "box/sys.h"
#include "host/tree/remove.h"

enum {
	MAKE_ROUNDS = 100, /* each of them met by a sweep within some us */
	ATTRIBUTE_MAX = 80 /* bytes; ext4 has room for so much in an inode of the usual size */
};

/* A short text of a record. */
struct text_place {
	const char *attribute;
	const char *link; /* where the file system has no attributes, or the text is long */
};

static const struct text_place where_place = { "user.carrel.where", "where" };
static const struct text_place inode_place = { "user.carrel.inode", "inode" };

/* --- making ------------------------------------------------------------------------------------ */

/* An inode costs what ten attributes do: docs/performance.md. Whatever refuses the one, the other is tried. */
static int put_text(int record, const struct text_place *place, const char *text)
{
	size_t length = strlen(text);

	if (length <= ATTRIBUTE_MAX &&
		fsetxattr(record, place->attribute, text, length, XATTR_CREATE) == 0)
		return 0;
	return symlinkat(text, record, place->link) < 0 ? -errno : 0;
}

/* A new directory, locked; -EAGAIN: a sweep has claimed it before us, and takes it away. */
static int make_locked(int records, const char *name)
{
	struct stat st;

	if (mkdirat(records, name, 0700) < 0)
		return -errno;
	autofd int record = fd_open_at(records, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (record < 0)
		return record == -ENOENT ? -EAGAIN : record;
	if (flock(record, LOCK_EX | LOCK_NB) < 0 || fstat(record, &st) < 0)
		return -errno;
	return st.st_nlink == 0 ? -EAGAIN : take_fd(&record);
}

/*
 * Only who holds its lock removes a directory of records, and it is locked before it has the name of a record: a
 * sweep that claims what is not locked yet takes away what nobody uses.
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
	int r = put_text(record, &where_place, session_dir);
	if (r >= 0 && renameat(records, name, records, id) < 0)
		r = -errno;
	if (r >= 0)
		return take_fd(&record);
	(void)unlinkat(record, where_place.link, 0);
	(void)unlinkat(records, name, AT_REMOVEDIR); /* a sweep tries again */
	return r;
}

int record_note_inode(int record, dev_t dev, ino_t ino)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%ju:%ju", (uintmax_t)dev, (uintmax_t)ino);
	return put_text(record, &inode_place, text);
}

/* --- reading ----------------------------------------------------------------------------------- */

int record_claim(int records, const char *id)
{
	struct stat st;
	autofd int record = fd_open_at(records, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (record < 0)
		return record;
	if (flock(record, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	/* Its session has removed it meanwhile, and let the lock go. */
	if (fstat(record, &st) < 0 || st.st_nlink == 0)
		return -ENOENT;
	return take_fd(&record);
}

static bool has_no_attribute(int errnum)
{
	return errnum == ENODATA || errnum == ENOTSUP || errnum == ENOSYS;
}

static int read_text(int record, const struct text_place *place, char *ret, size_t size)
{
	ssize_t n = fgetxattr(record, place->attribute, ret, size);

	if (n < 0 && errno == ERANGE)
		return -EBADMSG;
	if (n < 0 && has_no_attribute(errno))
		n = readlinkat(record, place->link, ret, size);
	if (n < 0)
		return -errno;
	if ((size_t)n >= size || memchr(ret, '\0', (size_t)n))
		return -EBADMSG;
	ret[n] = '\0';
	return 0;
}

static int read_inode(int record, struct record_where *where)
{
	char text[64];
	uint64_t dev = 0, ino = 0;
	int r = read_text(record, &inode_place, text, sizeof(text));
	char *colon = r < 0 ? NULL : strchr(text, ':');

	if (r == -ENOENT)
		return 0;
	if (r < 0 || !colon)
		return r < 0 ? r : -EBADMSG;
	*colon = '\0';
	if (text_parse_count(text, &dev) < 0 || text_parse_count(colon + 1, &ino) < 0)
		return -EBADMSG;
	where->dev = dev;
	where->ino = ino;
	where->made = true;
	return 0;
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
	int r = read_text(record, &where_place, ret->base, sizeof(ret->base));
	if (r >= 0)
		r = split_path(ret);
	return r < 0 ? r : read_inode(record, ret);
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

int record_remove(int records, const char *id, int record)
{
	struct remove_result gone;
	int r = remove_directory(records, id);

	if (!is_full(r))
		return r;
	/* If only these are left, the directory need not be read. If one of them cannot be removed, rmdir fails. */
	(void)unlinkat(record, "protected", 0);
	(void)unlinkat(record, inode_place.link, 0);
	(void)unlinkat(record, where_place.link, 0);
	r = remove_directory(records, id);
	return is_full(r) ? remove_tree(records, id, &gone, NULL) : r;
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

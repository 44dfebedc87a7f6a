/*
 * quarantine_record.c - see quarantine_record.h.
 *
 * Runs in: the supervisor (also while tools live), the sweep, the launcher, outside.
 */
#include "host/quarantine/quarantine_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sha256.h"
#include "box/sys.h"
#include "host/quarantine/quarantine_move.h"
#include "host/tree/beneath.h"

#define DIRECTORY "quarantine"
#define FORMAT "carrel quarantine 1"

enum { RECORD_MAX = 16384, DAY_S = 86400, LISTED_MAX = 100000 };

/* --- writing ---------------------------------------------------------------------------------- */

static void make_id(const struct quarantine_record *r, char ret[QUARANTINE_ID + 1])
{
	const char *const parts[] = { r->session, r->root, r->to };
	uint8_t digest[SHA256_SIZE];
	struct sha256 hash;

	sha256_init(&hash);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		sha256_update(&hash, parts[i], strlen(parts[i]) + 1);
	sha256_final(&hash, digest);
	for (size_t i = 0; i < QUARANTINE_ID / 2; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

static int64_t nanoseconds(const struct timespec *t)
{
	return (int64_t)t->tv_sec * INT64_C(1000000000) + t->tv_nsec;
}

/* The thing itself, wherever it is by now. 0 or -errno. */
static int look(struct quarantine_record *r, const struct quarantine_moving *m)
{
	struct stat st;
	autofd int fd = m->done
		? beneath_open(m->root_fd, m->to, O_PATH | O_NOFOLLOW, BENEATH_ANY_MOUNT)
		: quarantine_prefix(m->root_fd, m->from, m->from_length, 0);

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	r->ino = st.st_ino;
	r->ctime_ns = m->done ? nanoseconds(&st.st_ctim) : 0;
	r->size = (uint64_t)st.st_size;
	if (fstat(m->root_fd, &st) < 0)
		return -errno;
	r->root_ino = st.st_ino;
	return 0;
}

static int open_log(const struct quarantine_log *log)
{
	autofd int state = sys_openat2(log->dir, log->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (state < 0)
		return state;
	int fd = quarantine_record_open(state);
	if (fd != -ENOENT)
		return fd;
	if (mkdirat(state, DIRECTORY, 0700) < 0 && errno != EEXIST)
		return -errno;
	return quarantine_record_open(state);
}

static int put_field(int fd, const char *text, size_t length)
{
	int r = fd_write_all(fd, text, length);

	return r < 0 ? r : fd_write_all(fd, "", 1);
}

/* A NUL ends each field, since paths may have any other byte. Of `from` only the first bytes count. */
static int put_record(int fd, const struct quarantine_record *r, size_t from_length)
{
	char numbers[192];
	const char *const fields[] = { FORMAT, r->session, r->root, r->from, r->to };
	int result = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && result >= 0; i++)
		result = put_field(
			fd, fields[i], fields[i] == r->from ? from_length : strlen(fields[i]));
	(void)snprintf(numbers, sizeof(numbers),
		"%ju %ju %" PRId64 " %" PRIu64 " %" PRId64 " %" PRId64, (uintmax_t)r->root_ino,
		(uintmax_t)r->ino, r->ctime_ns, r->size, r->moved_s, r->until_s);
	return result < 0 ? result : put_field(fd, numbers, strlen(numbers));
}

/* Write it under another name first, so that it appears whole or not at all. */
static int save(int records, const struct quarantine_record *r, size_t from_length)
{
	char temporary[QUARANTINE_ID + 2];

	(void)snprintf(temporary, sizeof(temporary), ".%s", r->id);
	(void)unlinkat(records, temporary, 0); /* left by a process that was killed */
	autofd int fd =
		fd_open_at(records, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	int result = fd < 0 ? fd : put_record(fd, r, from_length);

	if (result >= 0 && renameat(records, temporary, records, r->id) < 0)
		result = -errno;
	if (result < 0 && fd >= 0)
		(void)unlinkat(records, temporary, 0);
	return result;
}

void quarantine_record_write(const struct quarantine_log *log,
	const struct quarantine_moving *m, char ret_id[QUARANTINE_ID + 1])
{
	struct timespec now;
	uint64_t keep_s =
		log->keep_ms ? (log->keep_ms + 999) / 1000 : (uint64_t)QUARANTINE_DAYS * DAY_S;
	struct quarantine_record r = {
		.session = m->session, .root = m->root, .from = m->from, .to = m->to
	};

	ret_id[0] = '\0';
	if (!log->state)
		return;
	autofd int records = open_log(log);
	if (records < 0 || look(&r, m) < 0)
		return;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	r.moved_s = now.tv_sec;
	r.until_s = now.tv_sec + (int64_t)keep_s;
	make_id(&r, r.id);
	if (save(records, &r, m->from_length) == 0)
		memcpy(ret_id, r.id, sizeof(r.id));
}

void quarantine_record_cancel(const struct quarantine_log *log, const char *id)
{
	autofd int records = log->state && *id ? open_log(log) : -ENOENT;

	/* If this fails, `carrel gc` removes the record, since the thing that it names does not exist. */
	if (records >= 0)
		(void)unlinkat(records, id, 0);
}

/* --- reading ---------------------------------------------------------------------------------- */

int quarantine_record_open(int state)
{
	return fd_open_at(state, DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

static bool is_id(const char *name)
{
	return strlen(name) == QUARANTINE_ID &&
		strspn(name, "0123456789abcdef") == QUARANTINE_ID;
}

/* No empty component, and none that leads up: @path is relative. */
static bool is_clean(const char *path)
{
	for (size_t length; *path; path += length + (path[length] == '/')) {
		length = strcspn(path, "/");
		if (length == 0 || (length == 1 && path[0] == '.') ||
			(length == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (path[length] == '/' && !path[length + 1])
			return false;
	}
	return true;
}

static const char *next_field(const char **at, const char *end)
{
	const char *field = *at;
	size_t left = (size_t)(end - field), length = strnlen(field, left);

	if (length == left)
		return NULL;
	*at = field + length + 1;
	return field;
}

/* Six decimal numbers, 0 among them, with one blank between. */
static int read_numbers(const char *text, struct quarantine_record *r)
{
	uint64_t n[6] = { 0 };

	for (size_t i = 0; i < 6; i++) {
		const char *start = text;

		for (; *text >= '0' && *text <= '9'; text++) {
			if (n[i] > (UINT64_MAX - 9) / 10)
				return -EBADMSG;
			n[i] = n[i] * 10 + (uint64_t)(*text - '0');
		}
		if (text == start || *text != (i < 5 ? ' ' : '\0'))
			return -EBADMSG;
		text += i < 5;
	}
	r->root_ino = n[0];
	r->ino = n[1];
	r->ctime_ns = (int64_t)n[2];
	r->size = n[3];
	r->moved_s = (int64_t)n[4];
	r->until_s = (int64_t)n[5];
	return 0;
}

static int parse(const char *text, size_t size, struct quarantine_record *r)
{
	const char *end = text + size;
	const char *format = next_field(&text, end);

	r->session = format ? next_field(&text, end) : NULL;
	r->root = r->session ? next_field(&text, end) : NULL;
	r->from = r->root ? next_field(&text, end) : NULL;
	r->to = r->from ? next_field(&text, end) : NULL;
	const char *numbers = r->to ? next_field(&text, end) : NULL;
	if (!numbers || text != end || strcmp(format, FORMAT) != 0)
		return -EBADMSG;
	if (r->root[0] != '/' || !is_clean(r->root + 1) || !*r->from || !is_clean(r->from) ||
		!*r->to || !is_clean(r->to))
		return -EBADMSG;
	return read_numbers(numbers, r);
}

/* 0; -EBADMSG: this is no valid record; or -errno. */
static int load(int records, const char *name, struct arena *a, struct quarantine_record *r)
{
	struct stat st;
	autofd int fd = fd_open_at(records, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > RECORD_MAX)
		return -EBADMSG;
	char *text = arena_alloc(a, (size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	ssize_t size = fd_read_file(fd, text, (size_t)st.st_size);
	if (size < 0)
		return (int)size;
	memcpy(r->id, name, sizeof(r->id));
	return parse(text, (size_t)size, r);
}

struct names {
	_Alignas(struct beneath_entry) char buffer[2048];
	ssize_t at, length;
};

/* The next name that is an id, or NULL. */
static const char *next_name(struct names *n, int records)
{
	for (;;) {
		if (n->at >= n->length) {
			n->length = beneath_read(records, n->buffer, sizeof(n->buffer));
			n->at = 0;
			if (n->length <= 0)
				return NULL;
		}
		const struct beneath_entry *entry = (void *)(n->buffer + n->at);

		n->at += entry->length;
		if (is_id(entry->name))
			return entry->name;
	}
}

size_t quarantine_record_count(int records)
{
	struct names n = { .length = 0 };
	size_t count = 0;

	if (lseek(records, 0, SEEK_SET) < 0)
		return 0;
	while (count < LISTED_MAX && next_name(&n, records))
		count++;
	return count;
}

static int by_age(const void *a, const void *b)
{
	const struct quarantine_record *left = a, *right = b;

	if (left->moved_s != right->moved_s)
		return left->moved_s < right->moved_s ? -1 : 1;
	return strcmp(left->id, right->id);
}

int quarantine_record_list(
	int records, struct arena *a, struct quarantine_record **ret, size_t *ret_count)
{
	size_t room = quarantine_record_count(records), count = 0;
	struct quarantine_record *list = arena_array(a, room + 1, sizeof(*list));
	struct names n = { .length = 0 };
	const char *name;

	if (!list)
		return -ENOMEM;
	if (lseek(records, 0, SEEK_SET) < 0)
		return -errno;
	while (count < room && (name = next_name(&n, records))) {
		int r = load(records, name, a, &list[count]);

		if (r == -ENOMEM)
			return r;
		count += r == 0;
	}
	qsort(list, count, sizeof(*list), by_age);
	*ret = list;
	*ret_count = count;
	return 0;
}

void quarantine_record_path(const struct quarantine_record *r, char *ret_path, size_t size)
{
	(void)snprintf(ret_path, size, "%s/%s", r->root[1] ? r->root : "", r->from);
}

void quarantine_record_place(const struct quarantine_record *r, char *ret_path, size_t size)
{
	(void)snprintf(ret_path, size, "%s/%s", r->root[1] ? r->root : "", r->to);
}

int quarantine_record_forget(int records, const char *id)
{
	return unlinkat(records, id, 0) < 0 && errno != ENOENT ? -errno : 0;
}

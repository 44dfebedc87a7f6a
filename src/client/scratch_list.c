/*
 * scratch_list.c - see scratch_list.h.
 *
 * Runs in: the client.
 */
#include "client/scratch_list.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "client/talk.h"
#include "host/tree/beneath.h"

struct level {
	int fd;
	const char *path; /* relative to the scratch, "" for itself */
};

struct walk {
	struct scratch_list *list;
	struct arena *arena;
	struct level levels[SCRATCH_LIST_DEPTH]; /* directories that are still to be read */
	unsigned depth;
};

static int add_listed(struct walk *w, const char *path, const struct stat *st)
{
	struct scratch_list *l = w->list;
	struct scratch_entry *grown =
		arena_push(w->arena, l->entries, l->count, sizeof(*grown));

	if (!path || !grown)
		return -ENOMEM;
	l->entries = grown;
	grown[l->count++] = (struct scratch_entry){
		.path = path, .mode = st->st_mode, .size = st->st_size, .modified = st->st_mtim
	};
	return 0;
}

/* One entry of the directory @at; a directory is read later. */
static int visit_entry(struct walk *w, const struct level *at, const char *name)
{
	struct stat st;

	if (fstatat(at->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* gone */
	const char *path = *at->path ? arena_join(w->arena, at->path, '/', name)
				     : arena_copy(w->arena, name, strlen(name));
	int r = add_listed(w, path, &st);
	if (r < 0 || !S_ISDIR(st.st_mode))
		return r;
	if (w->depth == SCRATCH_LIST_DEPTH) {
		w->list->truncated = true;
		return 0;
	}
	int fd = beneath_open(
		at->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, BENEATH_SAME_MOUNT);
	if (fd < 0)
		w->list->truncated |= fd != -ENOENT && fd != -ENOTDIR && fd != -ELOOP;
	else
		w->levels[w->depth++] = (struct level){ .fd = fd, .path = path };
	return 0;
}

static int read_dir(struct walk *w, const struct level *at)
{
	_Alignas(struct beneath_entry) char buffer[2048];
	struct beneath_list list = { .fd = at->fd, .buffer = buffer, .size = sizeof(buffer) };
	struct beneath_entry *entry;
	int n;

	while ((n = beneath_next(&list, &entry)) > 0) {
		if (w->list->count == SCRATCH_LIST_MAX) {
			w->list->truncated = true;
			return 0;
		}
		int r = visit_entry(w, at, entry->name);
		if (r < 0)
			return r;
	}
	w->list->truncated |= n < 0 && n != -ENOENT;
	return 0;
}

static int by_path(const void *a, const void *b)
{
	const struct scratch_entry *left = a, *right = b;

	return strcmp(left->path, right->path);
}

/* The bound on open directories bounds depth and breadth: the list is cut where there is more. */
static int walk_all(struct walk *w)
{
	int r = 0;

	while (w->depth > 0) {
		struct level at = w->levels[--w->depth];

		if (r == 0)
			r = read_dir(w, &at);
		fd_close(&at.fd);
	}
	return r;
}

static int list_error(int r, const char *on, struct error *e)
{
	return error_set(
		e, ERROR_SCRATCH, "session", -r, on, "cannot list what is in the scratch");
}

int scratch_list_read(struct scratch_list *ret, struct arena *a, int scratch, const char *below,
	struct error *e)
{
	struct scratch_list list = { 0 };
	struct walk w = { .list = &list, .arena = a };
	int fd = beneath_open(scratch, below ? below : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
		BENEATH_SAME_MOUNT);

	if (fd < 0)
		return list_error(fd, below, e);
	w.levels[w.depth++] = (struct level){ .fd = fd, .path = below ? below : "" };
	int r = walk_all(&w);
	if (r < 0)
		return list_error(r, below, e);
	if (list.count)
		qsort(list.entries, list.count, sizeof(*list.entries), by_path);
	*ret = list;
	return 0;
}

/* --- showing ----------------------------------------------------------------------------------- */

static const char *type_word(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "link";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	default:
		return "device";
	}
}

/* ISO 8601 in UTC, with @digits of the second's fraction (0 or 9). */
static void format_time(const struct timespec *t, bool fraction, char *ret, size_t size)
{
	struct tm tm;
	char date[32] = "";

	if (!gmtime_r(&t->tv_sec, &tm) ||
		!strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm))
		(void)snprintf(
			date, sizeof(date), "1970-01-01T00:00:00"); /* beyond year 9999 */
	if (fraction)
		(void)snprintf(ret, size, "%s.%09ldZ", date, t->tv_nsec);
	else
		(void)snprintf(ret, size, "%sZ", date);
}

int scratch_list_print(const struct scratch_list *l, struct error *e)
{
	char line[2048], name[PATH_MAX / 4], when[48];

	for (size_t i = 0; i < l->count; i++) {
		const struct scratch_entry *entry = &l->entries[i];

		talk_name(entry->path, name, sizeof(name));
		format_time(&entry->modified, false, when, sizeof(when));
		int length = snprintf(line, sizeof(line), "%-9s %12lld %s %s\n",
			type_word(entry->mode), (long long)entry->size, when, name);
		int r = talk_result(line, (size_t)length, e);
		if (r < 0)
			return r;
	}
	if (!l->truncated)
		return 0;
	static const char more[] = "... and more\n";
	return talk_result(more, sizeof(more) - 1, e);
}

int scratch_list_json(const struct scratch_list *l, const char *path, struct error *e)
{
	char buffer[2048], when[48];
	struct json j;

	json_init(&j, buffer, sizeof(buffer), talk_json, NULL);
	json_object_begin(&j);
	json_key(&j, "scratch");
	json_string(&j, path);
	json_key(&j, "truncated");
	json_bool(&j, l->truncated);
	json_key(&j, "entries");
	json_array_begin(&j);
	for (size_t i = 0; i < l->count; i++) {
		const struct scratch_entry *entry = &l->entries[i];

		format_time(&entry->modified, true, when, sizeof(when));
		json_object_begin(&j);
		json_key(&j, "path");
		json_string(&j, entry->path);
		json_key(&j, "type");
		json_string(&j, type_word(entry->mode));
		json_key(&j, "size");
		json_number(&j, entry->size);
		json_key(&j, "time");
		json_string(&j, when);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	int r = json_finish(&j);
	return r < 0 ? error_set(e, ERROR_INTERNAL, "report", -r, NULL, "cannot write the list")
		     : 0;
}

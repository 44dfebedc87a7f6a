/*
 * manifest.c - see manifest.h.
 *
 * Runs in: the launcher, outside.
 */
#include "host/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "box/sys.h"
#include "host/quarantine.h"
#include "plan/path.h"

/* Three texts for each path, each ended by a NUL: root, path, length of what existed. */
#define MANIFEST "protected"
enum { ARENA_SIZE = 16 << 20, MANIFEST_MAX = 4 << 20 };

/* Texts on their way to the file, many in one write. */
struct pending {
	int fd;
	size_t used;
	char bytes[3072];
};

static int flush(struct pending *p)
{
	size_t size = p->used;

	p->used = 0;
	return fd_write_all(p->fd, p->bytes, size);
}

static int put(struct pending *p, const char *text)
{
	size_t size = strlen(text) + 1;
	int r = size > sizeof(p->bytes) - p->used ? flush(p) : 0;

	if (r < 0)
		return r;
	if (size > sizeof(p->bytes))
		return fd_write_all(p->fd, text, size);
	memcpy(p->bytes + p->used, text, size);
	p->used += size;
	return 0;
}

static int write_absents(int dir, const struct plan *plan)
{
	struct pending pending;
	char number[24];
	int r = 0;
	autofd int fd =
		fd_open_at(dir, MANIFEST, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);

	if (fd < 0)
		return fd;
	pending.fd = fd;
	pending.used = 0;
	for (size_t i = 0; i < plan->absent_count && r >= 0; i++) {
		const struct absent_path *a = &plan->absents[i];

		(void)snprintf(number, sizeof(number), "%zu", a->existing_prefix);
		r = put(&pending, a->root);
		if (r >= 0)
			r = put(&pending, a->path);
		if (r >= 0)
			r = put(&pending, number);
	}
	return r < 0 ? r : flush(&pending);
}

int manifest_write(int dir, const struct plan *plan, struct error *e)
{
	int r = plan->absent_count ? write_absents(dir, plan) : 0;

	if (r >= 0)
		return 0;
	r = error_set(e, ERROR_SCRATCH, "session", -r, plan->facts->session_dir,
		"cannot note the protected paths");
	if (r == -ENOSPC || r == -EDQUOT)
		error_hint(
			e, "free some space there, or name another place with --scratch-base");
	else if (r == -EFBIG)
		error_hint(e, "raise `ulimit -f`");
	return r;
}

void manifest_discard(int dir)
{
	(void)unlinkat(dir, MANIFEST, 0); /* ENOENT: there was none */
}

/* The next text of the manifest, or NULL at its end (a torn one ends where it was torn). */
static const char *next(const char **at, const char *end)
{
	const char *text = *at;
	const char *stop = text < end ? memchr(text, '\0', (size_t)(end - text)) : NULL;

	if (!stop)
		return NULL;
	*at = stop + 1;
	return text;
}

static int read_items(struct arena *a, const char *text, size_t size,
	struct quarantine_item **ret_items, size_t *ret_count)
{
	const char *at = text, *end = text + size, *root, *path, *number;
	struct quarantine_item *items = NULL;
	size_t count = 0;

	while ((root = next(&at, end)) && (path = next(&at, end)) &&
		(number = next(&at, end))) {
		const char *below = path_below(root, path);
		size_t existing = 0, root_length = strlen(root);
		int fd = -1;

		for (; *number >= '0' && *number <= '9'; number++)
			existing = existing * 10 + (size_t)(*number - '0');
		for (size_t i = 0; i < count && fd < 0; i++)
			if (!strcmp(items[i].root, root))
				fd = items[i].root_fd;
		if (fd < 0)
			fd = sys_openat2(AT_FDCWD, root, O_PATH | O_DIRECTORY,
				RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
		if (fd < 0 || !below || !*below)
			continue;
		struct quarantine_item *grown = arena_push(a, items, count, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		items = grown;
		items[count++] = (struct quarantine_item){ .root_fd = fd,
			.root = root,
			.path = below,
			.existing_prefix_len =
				existing > root_length ? existing - root_length - 1 : 0 };
	}
	*ret_items = items;
	*ret_count = count;
	return 0;
}

static void close_roots(const struct quarantine_item *items, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		bool shared = false;

		for (size_t j = 0; j < i; j++)
			shared = shared || items[j].root_fd == items[i].root_fd;
		if (!shared)
			(void)close(items[i].root_fd);
	}
}

static int settle(struct arena *a, int fd, int base, const char *name, struct error *e)
{
	struct quarantine_result found = { .arena = a };
	struct quarantine_item *items = NULL;
	size_t count = 0;
	char *text = arena_alloc(a, MANIFEST_MAX + 1);
	ssize_t n = text ? fd_read_file(fd, text, MANIFEST_MAX) : -ENOMEM;
	int r = n < 0 ? (int)n : read_items(a, text, (size_t)n, &items, &count);

	if (r >= 0)
		r = quarantine_check(items, count, base, name, &found, e);
	close_roots(items, count);
	return r;
}

int manifest_settle(int base, int dir, const char *name, struct error *e)
{
	struct arena a;
	autofd int fd = fd_open_at(dir, MANIFEST, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	if (fd == -ENOENT)
		return 0;
	int r = fd < 0 ? fd : arena_init(&a, ARENA_SIZE);
	if (r >= 0) {
		r = settle(&a, fd, base, name, e);
		arena_free(&a);
	}
	return r < 0
		? error_set(e, ERROR_TEARDOWN, "session", -r, name,
			  "cannot quarantine what a killed session left at protected paths")
		: 0;
}

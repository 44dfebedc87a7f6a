/*
 * promote_note.c - the guard in the session's record: the supervisor, which has the plan, writes
 * it, and clients read it. See promote_guard.h.
 *
 * Runs in: the supervisor and the client (host side). What is read lies where no tool can write.
 *
 * Texts, each ended by a NUL: the version, the workspace's mode, what the scratch is; "root", path, device and inode for each
 * root; "deny" and a path; "keep" and a path in the scratch; "end" at the end, so that a torn one is noticed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/writer.h"
#include "host/promote/promote_guard.h"

#define NOTE "promotion"
#define VERSION "1"
enum { NOTE_MAX = 4 << 20 };

static const char *const modes[] = {
	[WORKSPACE_DIRECT] = "direct",
	[WORKSPACE_RO] = "ro",
	[WORKSPACE_OVERLAY] = "overlay",
};
enum { MODE_COUNT = sizeof(modes) / sizeof(modes[0]) };

/* --- writing ----------------------------------------------------------------------------------- */

/* With its NUL. */
static void put_field(struct writer *w, const char *text)
{
	writer_bytes(w, text, strlen(text) + 1);
}

static void put_number(struct writer *w, unsigned long long number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", number);
	put_field(w, text);
}

int promote_guard_write(int dir, const struct promote_guard *g)
{
	autofd int fd = fd_open_at(dir, NOTE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	char buffer[2048];
	struct writer w;

	if (fd < 0)
		return fd;
	writer_init(&w, buffer, sizeof(buffer), fd_write_to, &fd);
	put_field(&w, VERSION);
	put_field(&w, modes[g->mode]);
	put_field(&w, g->bounded ? "memory" : "disk");
	for (size_t i = 0; i < g->root_count; i++) {
		put_field(&w, "root");
		put_field(&w, g->roots[i].path);
		put_number(&w, g->roots[i].dev);
		put_number(&w, g->roots[i].ino);
	}
	for (size_t i = 0; i < g->denied_count; i++) {
		put_field(&w, "deny");
		put_field(&w, g->denied[i]);
	}
	for (size_t i = 0; i < g->mount_point_count; i++) {
		put_field(&w, "keep");
		put_field(&w, g->mount_points[i]);
	}
	put_field(&w, "end");
	return writer_finish(&w);
}

/* --- reading ----------------------------------------------------------------------------------- */

struct reader {
	const char *at, *end;
	struct arena *arena;
	struct promote_root *roots;
	size_t root_count;
	const char **denied, **mount_points;
	size_t denied_count, mount_point_count;
};

/* The next text; NULL: there are no more. */
static const char *next(struct reader *r)
{
	const char *text = r->at;
	const char *stop = text < r->end ? memchr(text, '\0', (size_t)(r->end - text)) : NULL;

	if (stop)
		r->at = stop + 1;
	return stop ? text : NULL;
}

static bool next_number(struct reader *r, unsigned long long *ret)
{
	const char *text = next(r);
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno == 0 && !*end;
}

static int read_root(struct reader *r)
{
	unsigned long long dev, ino;
	const char *path = next(r);

	if (!path || path[0] != '/' || !next_number(r, &dev) || !next_number(r, &ino))
		return -EPROTO;
	struct promote_root *grown =
		arena_push(r->arena, r->roots, r->root_count, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->roots = grown;
	grown[r->root_count++] =
		(struct promote_root){ .path = path, .dev = (dev_t)dev, .ino = (ino_t)ino };
	return 0;
}

static int read_path(struct reader *r, bool absolute, const char ***list, size_t *count)
{
	const char *path = next(r);

	if (!path || !*path || (path[0] == '/') != absolute)
		return -EPROTO;
	const char **grown = arena_push(r->arena, (void *)*list, *count, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	*list = grown;
	grown[(*count)++] = path;
	return 0;
}

static int read_records(struct reader *r)
{
	for (;;) {
		const char *word = next(r);
		int result;

		if (!word)
			return -EPROTO;
		if (!strcmp(word, "end"))
			return r->root_count && r->at == r->end ? 0 : -EPROTO;
		if (!strcmp(word, "root"))
			result = read_root(r);
		else if (!strcmp(word, "deny"))
			result = read_path(r, true, &r->denied, &r->denied_count);
		else if (!strcmp(word, "keep"))
			result = read_path(r, false, &r->mount_points, &r->mount_point_count);
		else
			result = -EPROTO;
		if (result < 0)
			return result;
	}
}

int promote_guard_read(struct promote_guard *ret, struct arena *a, int dir)
{
	autofd int fd = fd_open_at(dir, NOTE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	char *text = fd < 0 ? NULL : arena_alloc(a, NOTE_MAX + 1);

	if (fd < 0)
		return fd;
	ssize_t n = text ? fd_read_file(fd, text, NOTE_MAX) : -ENOMEM;
	if (n < 0)
		return (int)n;
	struct reader r = { .at = text, .end = text + n, .arena = a };
	const char *version = next(&r), *mode = next(&r), *kind = next(&r);
	unsigned m = 0;
	while (mode && m < MODE_COUNT && strcmp(mode, modes[m]) != 0)
		m++;
	if (!version || strcmp(version, VERSION) != 0 || !mode || m == MODE_COUNT || !kind)
		return -EPROTO;
	int result = read_records(&r);
	if (result < 0)
		return result;
	*ret = (struct promote_guard){ .roots = r.roots,
		.root_count = r.root_count,
		.denied = r.denied,
		.denied_count = r.denied_count,
		.mount_points = r.mount_points,
		.mount_point_count = r.mount_point_count,
		.bounded = !strcmp(kind, "memory"),
		.mode = (enum workspace_mode)m };
	return 0;
}

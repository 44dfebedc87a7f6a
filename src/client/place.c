/*
 * place.c - see place.h.
 *
 * Runs in: the client.
 */
#include "client/place.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "client/find.h"
#include "host/tree/beneath.h"
#include "host/tree/plainfile.h"
#include "plan/path.h"

enum { ARENA_SIZE = 128 << 20 }; /* address space; pages are taken as they are touched */

static int place_error(int r, const char *on, const char *what, struct error *e)
{
	return error_set(e, ERROR_SESSION, "session", -r, on, "%s", what);
}

/*
 * A bounded scratch is memory that only the session has mounted: a monitor inside opens it. The client opens
 * any other where it is.
 */
static int open_scratch(struct place *p, const struct client_session *s, struct error *e)
{
	if (p->guard.bounded) {
		p->scratch = client_open_file(
			s, p->scratch_path, O_RDONLY | O_DIRECTORY, 0, NULL, 0, e);
		return p->scratch < 0 ? p->scratch : 0;
	}
	p->scratch = beneath_open(
		p->session, "scratch", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, BENEATH_SAME_MOUNT);
	return p->scratch < 0
		? place_error(p->scratch, p->scratch_path, "cannot open the scratch", e)
		: 0;
}

static int read_net(int record, enum place_net *ret)
{
	char word[16];
	autofd int fd = plainfile_open(record, "net", 0, false);
	ssize_t n = fd < 0 ? fd : fd_read_file(fd, word, sizeof(word) - 1);

	if (n < 0)
		return (int)n;
	*ret = !strcmp(word, "none")    ? PLACE_NET_NONE
		: !strcmp(word, "host") ? PLACE_NET_HOST
					: PLACE_NET_SOME;
	return 0;
}

static int open_dirs(
	struct place *p, const char *requested, const char *const *environment, struct error *e)
{
	struct client_session found;
	int r = client_connect(&found, requested, environment, e);

	if (r < 0)
		return r;
	p->session = take_fd(&found.dir);
	p->id = arena_copy(&p->arena, found.id, strlen(found.id));
	p->dir = arena_copy(&p->arena, found.path, strlen(found.path));
	p->scratch_path = arena_format(&p->arena, "%s/scratch", found.path);
	p->results_path = arena_format(&p->arena, "%s/tool-results", found.path);
	r = p->results_path ? promote_guard_read(&p->guard, &p->arena, found.record) : -ENOMEM;
	if (r >= 0)
		r = read_net(found.record, &p->net);
	if (r < 0)
		r = place_error(
			r, found.path, "cannot read what the session's record says of it", e);
	else
		r = open_scratch(p, &found, e);
	client_close(&found);
	return r;
}

int place_open(struct place *ret, const char *requested, const char *const *environment,
	struct error *e)
{
	struct place p = { .session = -1, .scratch = -1 };
	int r = arena_init(&p.arena, ARENA_SIZE);

	if (r < 0)
		return place_error(r, NULL, "out of memory", e);
	r = open_dirs(&p, requested, environment, e);
	if (r < 0) {
		place_close(&p);
		return r;
	}
	*ret = p;
	return 0;
}

void place_close(struct place *p)
{
	fd_close(&p->session);
	fd_close(&p->scratch);
	arena_free(&p->arena);
}

/* Leave out empty and "." components. NULL if there is a "..", or if nothing is left. */
static const char *clean(struct place *p, const char *path)
{
	char *out = arena_alloc(&p->arena, strlen(path) + 1);
	size_t used = 0;

	if (!out)
		return NULL;
	for (; *path; path += *path == '/') {
		size_t n = strcspn(path, "/");

		if (n == 2 && path[0] == '.' && path[1] == '.')
			return NULL;
		if (n > 0 && !(n == 1 && path[0] == '.')) {
			if (used)
				out[used++] = '/';
			memcpy(out + used, path, n);
			used += n;
		}
		path += n;
	}
	out[used] = '\0';
	return used ? out : NULL;
}

const char *place_below(struct place *p, const char *word)
{
	const char *rest;

	if (word[0] != '/')
		return clean(p, word);
	rest = path_below(p->scratch_path, word);
	if (rest)
		return clean(p, rest);
	rest = path_below("/tmp", word);
	rest = rest ? rest : path_below("/var/tmp", word);
	rest = rest ? clean(p, rest) : NULL;
	return rest ? arena_join(&p->arena, "tmp", '/', rest) : NULL;
}

bool place_is_mount_point(const struct place *p, const char *below)
{
	for (size_t i = 0; i < p->guard.mount_point_count; i++)
		if (path_below(below, p->guard.mount_points[i]))
			return true;
	return false;
}

/*
 * why_walk.c - follows a path as a session would that was not started.
 *
 * Runs in: carrel-policy, outside, as the caller. May not: open anything except to look at it (O_PATH, lstat).
 *
 * It goes component by component: for each it asks the plan what is seen there (plan/seen.h), and looks at the host only where
 * the session would see the host's.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "plan/path.h"
#include "plan/seen.h"
#include "policy/why.h"

enum { LINKS_MAX = 40 }; /* as the kernel has it: path_resolution(7) */

enum thing_kind { THING_NONE, THING_FILE, THING_DIR, THING_LINK, THING_UNKNOWN };

struct thing {
	enum thing_kind kind;
	struct seen seen;
	struct stat st;
};

struct walk {
	const struct plan *plan;
	struct arena *arena;
	struct why_walked *out;
	unsigned links;
	bool missing;            /* the rest lies in something that does not exist */
	char path[PATH_MAX];     /* so far; canonical */
	char todo[2 * PATH_MAX]; /* what is left, with a NUL */
	char target[PATH_MAX];   /* of a link */
	char next[PATH_MAX];     /* the next step */
};

static void be_dir(struct thing *t)
{
	t->kind = THING_DIR;
	t->st = (struct stat){ .st_mode = S_IFDIR };
}

/* A thing of carrel's own: what it has made there, or a directory on the way to that. */
static void look_made(struct thing *t)
{
	if (t->seen.exact && !t->seen.node->is_dir) {
		t->kind = THING_FILE;
		t->st = (struct stat){ .st_mode = S_IFREG };
	} else if (t->seen.exact || t->seen.on_the_way) {
		be_dir(t);
	}
}

static int look_host(struct walk *w, struct thing *t)
{
	if (lstat(t->seen.host, &t->st) < 0) {
		/* The session makes this directory for itself before it begins. */
		if (t->seen.exact && t->seen.node->rank == RANK_SESSION) {
			be_dir(t);
			return 0;
		}
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	}
	t->kind = S_ISLNK(t->st.st_mode) ? THING_LINK
		: S_ISDIR(t->st.st_mode) ? THING_DIR
					 : THING_FILE;
	if (t->kind != THING_LINK)
		return 0;
	ssize_t n = readlink(t->seen.host, w->target, sizeof(w->target) - 1);
	if (n < 0)
		return -errno;
	w->target[n] = '\0';
	return 0;
}

static int look(struct walk *w, const char *path, struct thing *ret)
{
	struct thing t = { .kind = THING_NONE };
	int r = plan_seen(w->plan, w->arena, path, &t.seen);

	if (r < 0)
		return r;
	if (t.seen.link) {
		if (strlen(t.seen.link) >= sizeof(w->target))
			return -ENAMETOOLONG;
		memcpy(w->target, t.seen.link, strlen(t.seen.link) + 1);
		t.kind = THING_LINK;
	} else if (t.seen.backing == SEEN_MADE) {
		look_made(&t);
	} else if (t.seen.backing == SEEN_HOST) {
		r = look_host(w, &t);
	} else if (t.seen.backing == SEEN_KERNEL) {
		t.kind = THING_UNKNOWN;
		if (t.seen.exact)
			be_dir(&t);
	}
	if (r >= 0)
		*ret = t;
	return r;
}

/* Put the link's target before what is left. */
static int follow(struct walk *w)
{
	size_t target = strlen(w->target), left = strlen(w->todo);

	if (++w->links > LINKS_MAX)
		return -ELOOP;
	if (target + 1 + left >= sizeof(w->todo))
		return -ENAMETOOLONG;
	memmove(w->todo + target + 1, w->todo, left + 1);
	memcpy(w->todo, w->target, target);
	w->todo[target] = '/';
	if (w->target[0] == '/')
		memcpy(w->path, "/", 2);
	return 0;
}

/* @ret: @name below the path so far. */
static int join(const struct walk *w, const char *name, size_t length, char ret[PATH_MAX])
{
	size_t used = w->path[1] ? strlen(w->path) : 0;

	if (length > NAME_MAX || used + 1 + length >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(ret, w->path, used);
	ret[used] = '/';
	memcpy(ret + used + 1, name, length);
	ret[used + 1 + length] = '\0';
	return 0;
}

static void go_up(struct walk *w)
{
	size_t length = path_parent_length(w->path);

	if (w->path[1])
		w->path[length] = '\0';
}

/* Check that the path so far is a directory that the payload may search; otherwise -ENOTDIR, or `refused` is set. */
static int enter(struct walk *w, struct thing *here)
{
	struct why_thing thing;
	int r = look(w, w->path, here);

	if (r < 0)
		return r;
	if (here->kind != THING_DIR)
		return -ENOTDIR;
	if (here->seen.backing != SEEN_HOST)
		return 0;
	r = why_open(w->plan, &here->seen, w->path, &thing);
	if (r < 0)
		return r;
	r = why_access(&thing, X_OK);
	fd_close(&thing.fd);
	if (r > 0)
		w->out->refused = r;
	return r < 0 ? r : 0;
}

/* Take one component from what is left. 1: only the kernel knows where the rest leads. */
static int step(struct walk *w)
{
	char name[NAME_MAX + 1], *next = w->next;
	struct thing thing;
	char *rest = w->todo + strspn(w->todo, "/");
	size_t length = strcspn(rest, "/");

	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, rest, length);
	name[length] = '\0';
	rest += length;
	memmove(w->todo, rest, strlen(rest) + 1);
	if (!length || !strcmp(name, "."))
		return 0;
	if (w->missing && !strcmp(name, ".."))
		return -ENOENT; /* ".." of something that does not exist: nobody can say where that is */
	int r = 0;
	if (!w->missing) {
		r = enter(w, &thing);
		if (r < 0)
			return r;
	}
	if (!strcmp(name, "..")) {
		go_up(w);
		return 0;
	}
	r = join(w, name, length, next);
	if (r >= 0 && !w->missing && !w->out->refused)
		r = look(w, next, &thing);
	if (r < 0)
		return r;
	if (w->missing || w->out->refused) {
		memcpy(w->path, next, strlen(next) + 1);
		w->missing = true;
		return 0;
	}
	if (thing.kind == THING_LINK)
		return follow(w);
	if (thing.kind == THING_NONE) {
		w->missing = true;
		w->out->existing = strlen(w->path);
	}
	memcpy(w->path, next, strlen(next) + 1);
	w->out->st = thing.st;
	return thing.kind == THING_UNKNOWN;
}

/* Where the kernel alone knows what comes next (/proc), the rest of the path is not followed. */
static int keep_rest(struct walk *w)
{
	size_t used = strlen(w->path), left = strlen(w->todo);

	if (used + left >= sizeof(w->path))
		return -ENAMETOOLONG;
	memcpy(w->path + used, w->todo, left + 1);
	w->out->known = false;
	return 0;
}

static int walk_all(struct walk *w)
{
	int r = 0;

	while (r == 0 && w->todo[strspn(w->todo, "/")]) {
		bool refused = w->out->refused != 0;

		r = step(w);
		if (r == 0 && w->out->refused && !refused)
			w->out->existing = path_parent_length(w->path);
	}
	return r == 1 ? keep_rest(w) : r;
}

/* "name/" leads nowhere if name is no directory. */
static int check_end(const struct walk *w, const char *asked)
{
	size_t length = strlen(asked);

	if (w->missing || !w->out->known || length < 2 || asked[length - 1] != '/' ||
		S_ISDIR(w->out->st.st_mode))
		return 0;
	return -ENOTDIR;
}

int why_walk(
	const struct plan *plan, struct arena *arena, const char *asked, struct why_walked *ret)
{
	struct why_walked out = { .known = true, .st = { .st_mode = S_IFDIR } };
	struct walk *w = arena_alloc(arena, sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct walk){ .plan = plan, .arena = arena, .out = &out, .path = "/" };
	if (strlen(asked) >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(w->todo, asked, strlen(asked) + 1);
	int r = walk_all(w);
	if (r >= 0)
		r = check_end(w, asked);
	if (r < 0)
		return r;
	out.path = w->path;
	out.exists = !w->missing && !out.refused;
	if (out.exists)
		out.existing = strlen(w->path);
	*ret = out;
	return 0;
}

/*
 * why_live.c - asks a live session what a path is to it.
 *
 * Runs in: carrel-policy, outside; a client of the session. A monitor inside opens the path only to look (O_PATH), on
 * the session's own mounts; then this asks the kernel, by that descriptor, what may be done with the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "plan/path.h"
#include "policy/why.h"

/* The answer of CLASSIFY in lines: docs/control-protocol.md. */
enum field {
	FIELD_SURFACE,
	FIELD_READ,
	FIELD_WRITE,
	FIELD_QUARANTINED,
	FIELD_EXISTS,
	FIELD_WHY,
	FIELD_RULE,
	FIELD_PATH,
	FIELD_IDS,
	FIELD_WALLS,
	FIELD_COUNT
};

struct told {
	const char *field[FIELD_COUNT];
};

/* --- asking the session ----------------------------------------------------------------------- */

/* Returns the session's errno, or 0 with the descriptor in *@ret_fd. -errno with @e: the session could not be asked. */
static int look(struct why *w, const char *path, int flags, char *ret_path, int *ret_fd,
	struct error *e)
{
	struct error refused = { 0 };
	int fd = client_open_file(
		w->session, path, O_PATH | flags, 0, ret_path, PATH_MAX, &refused);

	*ret_fd = fd;
	if (fd >= 0)
		return 0;
	if (refused.code == ERROR_PATH && refused.errnum > 0)
		return refused.errnum;
	*e = refused;
	return fd;
}

static bool split(struct arena *arena, const char *text, struct told *ret)
{
	for (int i = 0; i < FIELD_COUNT; i++) {
		size_t length = strcspn(text, "\n");

		ret->field[i] = text[length] ? arena_copy(arena, text, length) : NULL;
		if (!ret->field[i])
			return false;
		text += length + 1;
	}
	return !*text;
}

static int ask(struct why *w, const char *path, struct told *ret, struct error *e)
{
	const struct control_record request = { .kind = CONTROL_CLASSIFY,
		.flag = CONTROL_FORM_FIELDS };
	struct control_message *answer = malloc(sizeof(*answer));
	char *text = NULL;
	int r = answer ? client_ask(w->session, &request, path, strlen(path) + 1, answer, e)
		       : error_no_memory(e, "session");

	if (r >= 0) {
		ssize_t n = control_read_text(answer, &text);

		control_close_fds(answer);
		if (n < 0 || !split(&w->arena, text, ret))
			r = error_set(e, ERROR_VERSION, "session", n < 0 ? (int)-n : 0, path,
				"the session's answer is not understood");
	}
	free(text);
	free(answer);
	return r;
}

/* --- what is there ---------------------------------------------------------------------------- */

/* The kernel's own files answer differently to each reader and writer. */
static bool is_kernels(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC ||
		fs.f_type == DEVPTS_SUPER_MAGIC;
}

static bool stands(const struct told *told, enum wall wall)
{
	const char *name = plan_wall_name(wall), *at = told->field[FIELD_WALLS];
	size_t length = strlen(name);

	while ((at = strstr(at, name))) {
		if ((at == told->field[FIELD_WALLS] || at[-1] == ' ') &&
			(!at[length] || at[length] == ' '))
			return true;
		at += length;
	}
	return false;
}

int why_live_stands(struct why *w, enum wall wall, bool *ret, struct error *e)
{
	struct told told;
	int r = ask(w, "/", &told, e);

	if (r >= 0)
		*ret = stands(&told, wall);
	return r;
}

/* It was opened on the session's own mounts, so that its owners are those that the payload sees. */
static int thing_of(const struct told *told, int fd, struct why_thing *ret)
{
	struct why_thing t = { .fd = fd,
		.read = *told->field[FIELD_READ] != '\0',
		.write = *told->field[FIELD_WRITE] != '\0' ||
			*told->field[FIELD_QUARANTINED] != '\0',
		.device = !strncmp(told->field[FIELD_PATH], "/dev/", 5),
		.mounts = stands(told, WALL_MOUNTS),
		.landlock = stands(told, WALL_LANDLOCK),
		.sockets = stands(told, WALL_UNIX_SOCKETS) };

	t.ids.change = sscanf(told->field[FIELD_IDS], "%u %u", &t.ids.uid, &t.ids.gid) == 2;
	if (fstat(fd, &t.st) < 0)
		return -errno;
	t.device = t.device && (S_ISCHR(t.st.st_mode) || S_ISBLK(t.st.st_mode));
	*ret = t;
	return 0;
}

static int try_there(const struct told *told, int fd, struct why_answer *a, mode_t *ret_mode)
{
	struct why_thing t;
	int r = thing_of(told, fd, &t);

	if (r < 0)
		return r;
	*ret_mode = t.st.st_mode;
	return is_kernels(fd) ? 0 : why_try(&t, a);
}

/* @path does not exist: try to make something in the nearest directory above it that does. */
static int try_make(struct why *w, const char *path, const struct told *told,
	struct why_answer *a, struct error *e)
{
	char *dir = arena_copy(&w->arena, path, strlen(path));
	struct why_thing t;
	struct told above;
	autofd int fd = -1;
	int r = ENOENT;

	while (dir && dir[1] && r == ENOENT) {
		dir[path_parent_length(dir)] = '\0';
		r = look(w, dir, 0, NULL, &fd, e);
	}
	if (r != 0 || !dir)
		return r < 0 ? r : 0;
	r = ask(w, dir, &above, e);
	if (r < 0 || is_kernels(fd))
		return r;
	r = thing_of(&above, fd, &t);
	if (r < 0)
		return r;
	t.write |= *told->field[FIELD_QUARANTINED] != '\0';
	r = why_try_make(&t);
	a->outcome[TRY_MAKE] = r;
	return r < 0 ? r : 0;
}

/* --- links that lead to nothing --------------------------------------------------------------- */

enum { LINKS_MAX = 40 }; /* path_resolution(7) */

/* Where a link at @link, open as @fd, leads, with the rest of the path. NULL: too long, or no memory. */
static const char *follow(struct why *w, const char *link, int fd, const char *rest)
{
	char *target = arena_alloc(&w->arena, PATH_MAX);
	ssize_t n = target ? readlinkat(fd, "", target, PATH_MAX - 1) : -1;
	const char *dir = arena_copy(&w->arena, link, path_parent_length(link));
	const char *whole = NULL;

	if (n > 0 && dir && target[0] == '/')
		whole = arena_format(&w->arena, "%s%s", target, rest);
	else if (n > 0 && dir)
		whole = arena_format(&w->arena, "%s/%s%s", dir, target, rest);
	return whole && strlen(whole) < PATH_MAX ? whole : NULL;
}

/*
 * @path does not exist. If there is a link on the way to it, what is made at @path is made where the last link leads.
 * 1: look at @ret in its place; 0: there is no link.
 */
static int past_link(struct why *w, const char *path, const char **ret, struct error *e)
{
	char *part = arena_copy(&w->arena, path, strlen(path));
	int r = ENOENT;

	while (part && part[1]) {
		struct stat st;
		autofd int fd = -1;

		r = look(w, part, O_NOFOLLOW, NULL, &fd, e);
		if (r < 0)
			return r;
		if (r == 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode)) {
			*ret = follow(w, part, fd, path + strlen(part));
			return *ret ? 1 : error_no_memory(e, "session");
		}
		if (r == 0)
			return 0;
		part[path_parent_length(part)] = '\0';
	}
	return part ? 0 : error_no_memory(e, "session");
}

/* Look as look() does. If links lead to something that does not exist, *@path becomes the place where it would be. */
static int look_through(
	struct why *w, const char **path, char *ret_path, int *ret_fd, struct error *e)
{
	int r = look(w, *path, 0, ret_path, ret_fd, e);

	for (int links = 0; r == ENOENT && links < LINKS_MAX; links++) {
		int more = past_link(w, *path, path, e);

		if (more <= 0)
			return more < 0 ? more : r;
	}
	return r;
}

/* --- the answer ------------------------------------------------------------------------------- */

static enum surface_kind surface_named(const char *name)
{
	for (int i = SURFACE_OUTSIDE; i <= SURFACE_HIDDEN; i++)
		if (!strcmp(name, plan_surface_name((enum surface_kind)i)))
			return (enum surface_kind)i;
	return SURFACE_OUTSIDE;
}

static void tell(struct why *w, const struct told *told, mode_t mode, struct why_answer *a)
{
	const char *rule = told->field[FIELD_RULE];

	a->because = told->field[FIELD_WHY];
	if (!a->path && *told->field[FIELD_PATH])
		a->path = told->field[FIELD_PATH];
	if (*rule)
		a->lines[a->line_count++] =
			(struct why_line){ .text = why_live_at(w, rule), .place = rule };
	why_judge(a, surface_named(told->field[FIELD_SURFACE]),
		*told->field[FIELD_QUARANTINED] != '\0', mode);
	if (!strcmp(a->seen, "closed") && *told->field[FIELD_READ])
		a->because =
			"its mode, or that of a directory on the way, keeps the command out";
}

static int fail(struct error *e, int errnum, const char *asked)
{
	return error_set(
		e, ERROR_PATH, "session", errnum, asked, "this path cannot be looked up");
}

/* Answer for a path that could not be opened; @errnum says why. */
static int answer_missing(struct why *w, const char *asked, int errnum, const struct told *told,
	struct why_answer *a, struct error *e)
{
	a->outcome[TRY_READ] = a->outcome[TRY_WRITE] = errnum;
	if (errnum != ENOENT) {
		a->outcome[TRY_MAKE] = errnum;
		return 0;
	}
	if (!*told->field[FIELD_PATH])
		return 0; /* it leads through what does not exist */
	int r = try_make(w, told->field[FIELD_PATH], told, a, e);
	return r < 0 && !e->code ? fail(e, -r, asked) : r;
}

int why_live_path(struct why *w, const char *asked, struct why_answer *a, struct error *e)
{
	char *path = arena_alloc(&w->arena, PATH_MAX);
	struct told told;
	mode_t mode = 0;
	autofd int fd = -1;

	for (int i = 0; i < TRY_COUNT; i++)
		a->outcome[i] = WHY_UNKNOWN;
	int missing =
		path ? look_through(w, &asked, path, &fd, e) : error_no_memory(e, "session");
	if (missing < 0)
		return missing;
	if (missing == ELOOP || missing == ENAMETOOLONG || missing == ENOTDIR)
		return fail(e, missing, asked);
	int r = ask(w, asked, &told, e);
	if (r < 0)
		return r;
	a->exists = !missing;
	if (missing) {
		r = answer_missing(w, asked, missing, &told, a, e);
	} else {
		a->path = path;
		r = try_there(&told, fd, a, &mode);
		if (r < 0)
			r = fail(e, -r, asked);
	}
	if (r >= 0)
		tell(w, &told, mode, a);
	return r;
}

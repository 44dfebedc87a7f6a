/*
 * why_live.c - what a path is to a live session: asked of the session itself.
 *
 * Runs in: carrel-policy, outside; a client of the session. A keeper inside opens the path, as a command would, and
 * only what opening does not change: a file or a directory for reading, a file for writing, neither made nor cut.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "policy/why.h"

enum {
	FIELD_SURFACE,
	FIELD_WRITE,
	FIELD_QUARANTINED,
	FIELD_EXISTS,
	FIELD_WHY,
	FIELD_RULE,
	FIELD_PATH,
	FIELD_COUNT
};

enum { PATH_ROOM = 4096 };

/* Its errno, or the descriptor in @ret_fd. -errno with @e: the session was not asked. */
static int try_open(struct why *w, const char *path, int flags, char *ret_path, int *ret_fd,
	struct error *e)
{
	struct error refused = { 0 };
	int fd = client_open_file(w->session, path, flags, 0, ret_path, PATH_ROOM, &refused);

	*ret_fd = fd;
	if (fd >= 0)
		return 0;
	if (refused.code == ERROR_PATH && refused.errnum > 0)
		return refused.errnum;
	*e = refused;
	return fd < 0 ? fd : -EIO;
}

static int try_and_close(struct why *w, const char *path, int flags, struct error *e)
{
	autofd int fd = -1;

	return try_open(w, path, flags, NULL, &fd, e);
}

/* Files of the kernel's say to each writer something else. */
static bool is_kernels(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC ||
		fs.f_type == DEVPTS_SUPER_MAGIC;
}

static int try_there(struct why *w, const char *path, int fd, mode_t mode, struct why_answer *a,
	struct error *e)
{
	if (is_kernels(fd))
		return 0;
	if (S_ISSOCK(mode)) {
		a->outcome[TRY_READ] = a->outcome[TRY_WRITE] = ENXIO;
		return 0;
	}
	if (!S_ISREG(mode) && !S_ISDIR(mode))
		return 0;
	int r = try_and_close(w, path, O_RDONLY, e);
	if (r < 0)
		return r;
	a->outcome[TRY_READ] = r;
	if (!S_ISREG(mode))
		return 0;
	r = try_and_close(w, path, O_WRONLY, e);
	if (r >= 0)
		a->outcome[TRY_WRITE] = r;
	return r < 0 ? r : 0;
}

static int ask_surface(struct why *w, const char *path, char **ret, struct error *e)
{
	const struct control_record request = { .kind = CONTROL_CLASSIFY,
		.flag = CONTROL_FORM_FIELDS };
	struct control_message *answer = malloc(sizeof(*answer));
	int r = answer ? client_ask(w->session, &request, path, strlen(path) + 1, answer, e)
		       : error_no_memory(e, "session");

	if (r >= 0) {
		ssize_t n = control_read_text(answer, ret);

		control_close_fds(answer);
		r = n < 0 ? error_set(e, ERROR_SESSION, "session", (int)-n, path,
				    "the session cannot tell")
			  : 0;
	}
	free(answer);
	return r;
}

static bool split(struct arena *arena, const char *text, const char *ret[FIELD_COUNT])
{
	for (int i = 0; i < FIELD_COUNT; i++) {
		size_t length = strcspn(text, "\n");

		ret[i] = text[length] ? arena_copy(arena, text, length) : NULL;
		if (!ret[i])
			return false;
		text += length + 1;
	}
	return !*text;
}

static enum surface_kind surface_named(const char *name)
{
	for (int i = SURFACE_OUTSIDE; i <= SURFACE_HIDDEN; i++)
		if (!strcmp(name, plan_surface_name((enum surface_kind)i)))
			return (enum surface_kind)i;
	return SURFACE_OUTSIDE;
}

static int read_surface(struct why *w, const char *text, const char *asked, mode_t mode,
	struct why_answer *a, struct error *e)
{
	const char *f[FIELD_COUNT];

	if (!split(&w->arena, text, f))
		return error_set(e, ERROR_VERSION, "session", 0, asked,
			"the session's answer is not understood");
	bool write = *f[FIELD_WRITE] != '\0', quarantined = *f[FIELD_QUARANTINED] != '\0';
	if (!a->exists)
		a->outcome[TRY_MAKE] = a->outcome[TRY_READ] != ENOENT ? a->outcome[TRY_READ]
			: write || quarantined                        ? 0
								      : EROFS;
	if (a->exists && S_ISDIR(mode) && a->outcome[TRY_READ] != WHY_UNKNOWN)
		a->outcome[TRY_WRITE] = write ? 0 : EROFS;
	a->because = f[FIELD_WHY];
	if (!a->path && *f[FIELD_PATH])
		a->path = f[FIELD_PATH];
	if (*f[FIELD_RULE])
		a->lines[a->line_count++] =
			(struct why_line){ .text = why_live_at(w, f[FIELD_RULE]),
				.place = f[FIELD_RULE] };
	why_judge(a, surface_named(f[FIELD_SURFACE]), quarantined, mode);
	return 0;
}

/* What the kernel said of the path itself. */
static int refuse(int errnum, const char *asked, struct error *e)
{
	if (errnum == ELOOP || errnum == ENAMETOOLONG || errnum == ENOTDIR)
		return error_set(e, ERROR_PATH, "session", errnum, asked,
			"this path cannot be looked up");
	return 0;
}

int why_live_path(struct why *w, const char *asked, struct why_answer *a, struct error *e)
{
	struct stat st = { 0 };
	char *path = arena_alloc(&w->arena, PATH_ROOM), *text = NULL;
	autofd int fd = -1;

	for (int i = 0; i < TRY_COUNT; i++)
		a->outcome[i] = WHY_UNKNOWN;
	int r = path ? try_open(w, asked, O_PATH, path, &fd, e) : error_no_memory(e, "session");
	if (r < 0 || (r > 0 && refuse(r, asked, e) < 0))
		return r < 0 ? r : -r;
	a->exists = fd >= 0;
	if (!a->exists) {
		a->outcome[TRY_READ] = a->outcome[TRY_WRITE] = r;
	} else if (fstat(fd, &st) < 0) {
		return error_set(e, ERROR_SESSION, "session", errno, asked, "cannot look at");
	} else {
		a->path = path;
		r = try_there(w, asked, fd, st.st_mode, a, e);
	}
	if (r >= 0)
		r = ask_surface(w, asked, &text, e);
	if (r >= 0)
		r = read_surface(w, text, asked, st.st_mode, a, e);
	free(text);
	return r;
}

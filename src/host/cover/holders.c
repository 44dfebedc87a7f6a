/*
 * holders.c - see holders.h.
 *
 * Runs in: the coverer's child.
 */
#include "host/cover/holders.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/cover/proc_text.h"

enum { NONE = -1, IN_FLIGHT = 0 };

struct search {
	const struct freeze *f;
	const struct uncovered *things;
	size_t count;
	pid_t thread;
	int found; /* index of a thing; NONE */
};

/*
 * Was the file opened by this name while it was bare? A cover that the kernel detached has no name any more. A file that was replaced
 * once more has " (deleted)" behind its name (d_path()).
 */
static bool is_of(const struct uncovered *u, const char *path)
{
	size_t length = strlen(u->path);

	return !strncmp(u->path, path, length) &&
		(!path[length] || !strcmp(path + length, " (deleted)") ||
			(u->is_dir && path[length] == '/'));
}

/* The index of the thing that @st or @path (NULL: unknown) belongs to, or NONE. */
static int match(const struct search *s, const struct stat *st, const char *path)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct uncovered *u = &s->things[i];

		if ((st && st->st_dev == u->dev && st->st_ino == u->ino) ||
			(path && is_of(u, path)))
			return (int)i;
	}
	return NONE;
}

/* The thing that the link /proc/PID/@name leads to. NONE also where the link does not exist any more. */
static int match_link(const struct search *s, const char *name, struct stat *ret_st)
{
	static char path[PATH_MAX]; /* one thread, and no room for it on the stack */
	char link[64];

	(void)snprintf(link, sizeof(link), "%d/%s", (int)s->thread, name);
	if (fstatat(s->f->proc, link, ret_st, 0) < 0) {
		ret_st->st_mode = 0;
		return errno == ENOENT || errno == ESRCH ? NONE : -errno - 1;
	}
	ssize_t n = readlinkat(s->f->proc, link, path, sizeof(path) - 1);
	int r = n < 0 ? -errno : 0;
	if (n > 0)
		path[n] = '\0';
	int found = match(s, ret_st, n > 0 ? path : NULL);
	if (found != NONE || r == 0 || r == -ENOENT || r == -ESRCH)
		return found;
	/* A path may be too long to be told: it may lie in anything. */
	return r == -ENAMETOOLONG ? IN_FLIGHT : r - 1;
}

/* Are there descriptors that were sent to this socket and not received yet? "scm_fds" in fdinfo, Linux 5.6. */
static bool has_descriptors_in_flight(const struct search *s, pid_t number)
{
	char name[64], text[PROC_TEXT_MAX];

	(void)snprintf(name, sizeof(name), "fdinfo/%d", (int)number);
	ssize_t n = proc_read(s->f->proc, s->thread, name, text, sizeof(text));
	if (n < 0) /* unknown: counts as held */
		return n != -ENOENT && n != -ESRCH;
	const char *line = strstr(text, "\nscm_fds:");
	return line && strtoul(line + sizeof("\nscm_fds:") - 1, NULL, 10) > 0;
}

static int look_at_descriptor(void *context, pid_t number)
{
	struct search *s = context;
	struct stat st;
	char name[32];

	if (clock_now_ns() >= s->f->deadline_ns)
		return -ETIMEDOUT;
	(void)snprintf(name, sizeof(name), "fd/%d", (int)number);
	int found = match_link(s, name, &st);
	if (found < NONE)
		return found + 1;
	if (found == NONE && S_ISSOCK(st.st_mode) && has_descriptors_in_flight(s, number))
		found = IN_FLIGHT;
	s->found = found;
	return found != NONE;
}

/*
 * A line of /proc/PID/maps: range, rights, offset, device, inode, name. The device is the file system's, which on
 * btrfs or overlayfs is not what stat(2) says; there the name has to do.
 */
static int match_mapping(const struct search *s, const char *line)
{
	unsigned long long ino;
	unsigned major, minor;
	int name = 0;

	if (sscanf(line, "%*s %*s %*s %x:%x %llu%n", &major, &minor, &ino, &name) != 3 || !ino)
		return NONE;
	line += name;
	line += strspn(line, " ");
	for (size_t i = 0; i < s->count; i++) {
		const struct uncovered *u = &s->things[i];

		if ((unsigned long long)u->ino == ino && u->dev == makedev(major, minor))
			return (int)i;
		if (is_of(u, line))
			return (int)i;
	}
	return NONE;
}

static int look_at_mappings(struct search *s)
{
	char *text;
	int r = proc_read_all(s->f->proc, s->thread, "maps", &text);

	if (r < 0)
		return r == -ENOENT || r == -ESRCH ? 0 : r;
	for (char *line = text; *line && s->found == NONE;) {
		char *end = strchrnul(line, '\n');
		bool last = !*end;

		*end = '\0';
		s->found = match_mapping(s, line);
		line = last ? end : end + 1;
	}
	proc_text_free(text);
	return s->found != NONE;
}

static bool shares(const struct search *s, pid_t process, int what)
{
	return syscall(SYS_kcmp, process, s->thread, what, 0, 0) == 0;
}

/* 1: it holds something; 0; or -errno. */
static int look_at_thread(struct search *s, const struct frozen *t)
{
	bool first = t->thread == t->process;
	struct stat st;

	s->thread = t->thread;
	s->found = NONE;
	if (first || !shares(s, t->process, KCMP_FS)) {
		static const char *const links[] = { "cwd", "root", "exe" };

		for (size_t i = 0; i < 3 && s->found == NONE; i++) {
			s->found = match_link(s, links[i], &st);
			if (s->found < NONE)
				return s->found + 1;
		}
	}
	if (s->found != NONE)
		return 1;
	int r = first || !shares(s, t->process, KCMP_FILES)
		? proc_each(s->f->proc, t->thread, "fd", look_at_descriptor, s)
		: 0;
	if (r == -ENOENT || r == -ESRCH)
		r = 0;
	if (r == 0 && (first || !shares(s, t->process, KCMP_VM)))
		r = look_at_mappings(s);
	return r;
}

int holders_each(const struct freeze *f, const struct uncovered *things, size_t count,
	int (*call)(void *context, pid_t process, size_t thing), void *context)
{
	struct search s = { .f = f, .things = things, .count = count };
	const struct frozen *t;
	size_t at = 0;

	while ((t = freeze_next(f, &at))) {
		if (clock_now_ns() >= f->deadline_ns)
			return -ETIMEDOUT;
		int r = look_at_thread(&s, t);

		if (r > 0)
			r = call(context, t->process, (size_t)s.found);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * quarantine_show.c - see quarantine_show.h.
 *
 * Runs in: the client, outside.
 */
#include "client/quarantine_show.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "client/quarantine_text.h"
#include "client/scratch_list.h"
#include "client/talk.h"
#include "host/tree/beneath.h"

void quarantine_format_age(int64_t seconds, char *ret, size_t size)
{
	static const struct {
		int64_t unit;
		char name;
	} units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' } };

	if (seconds < 0)
		seconds = 0;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (seconds >= 2 * units[i].unit) {
			(void)snprintf(ret, size, "%lld%c",
				(long long)(seconds / units[i].unit), units[i].name);
			return;
		}
	(void)snprintf(ret, size, "%llds", (long long)seconds);
}

/* --- show ------------------------------------------------------------------------------------- */

static int put_path_visible(const char *root, const char *below, struct error *e)
{
	int r = fd_write_visible(STDOUT_FILENO, root);

	if (r < 0 || !*below)
		return r;
	r = talk_result("/", 1, e);
	return r < 0 ? r : fd_write_visible(STDOUT_FILENO, below);
}

/* Print "label  text"; what a terminal would obey in the text is shown as \xNN. */
static int put_field(const char *label, const char *root, const char *below, struct error *e)
{
	char line[32];
	int length = snprintf(line, sizeof(line), "%-12s ", label);
	int r = talk_result(line, (size_t)length, e);

	if (r >= 0)
		r = put_path_visible(root, below, e);
	return r < 0
		? error_set(e, ERROR_INTERNAL, "report", -r, NULL, "cannot write the result")
		: talk_result("\n", 1, e);
}

static const char *kind_of(mode_t mode)
{
	return S_ISREG(mode)    ? "file"
		: S_ISDIR(mode) ? "directory"
		: S_ISLNK(mode) ? "link"
				: "special file";
}

static int put_head(const struct quarantine_held *h, struct error *e)
{
	const struct quarantine_record *r = h->record;
	const char *root = r->root[1] ? r->root : "";
	char age[24], left[24], text[128];
	int64_t now = time(NULL);
	int result = put_field("appeared", root, r->from, e);

	if (result >= 0)
		result = put_field("is now", root, r->to, e);
	if (result >= 0)
		result = put_field("session", r->session, "", e);
	quarantine_format_age(now - r->moved_s, age, sizeof(age));
	quarantine_format_age(r->until_s - now, left, sizeof(left));
	(void)snprintf(text, sizeof(text), "%s ago; carrel gc removes it in %s", age, left);
	if (result >= 0)
		result = put_field("since", text, "", e);
	(void)snprintf(text, sizeof(text), "%s, mode %04o, %lld %s%s", kind_of(h->st.st_mode),
		(unsigned)h->st.st_mode & 07777, (long long)h->st.st_size,
		h->st.st_size == 1 ? "byte" : "bytes",
		h->changed ? "; changed since it was quarantined" : "");
	return result < 0 ? result : put_field("what", text, "", e);
}

static int fail_read(const struct quarantine_held *h, int r, struct error *e)
{
	return error_set(e, ERROR_PATH, "session", -r, h->record->id,
		"cannot read what was quarantined");
}

/* The thing itself, O_PATH: the very thing that was looked at is then read. */
static int open_thing(const struct quarantine_held *h)
{
	struct stat st;
	autofd int fd = beneath_open(h->dir, h->name, O_PATH | O_NOFOLLOW, BENEATH_ANY_MOUNT);

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_ino == h->st.st_ino && (st.st_mode & S_IFMT) == (h->st.st_mode & S_IFMT)
		? take_fd(&fd)
		: -ESTALE;
}

static int show_link(int fd, struct error *e)
{
	char target[2048];
	ssize_t n = readlinkat(fd, "", target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return put_field("leads to", target, "", e);
}

static int list(int dir, struct arena *a, struct scratch_list *ret)
{
	struct error ignored = { 0 };

	return scratch_list_read(ret, a, dir, NULL, &ignored);
}

static int show_content(const struct quarantine_held *h, struct arena *a, struct error *e)
{
	struct quarantine_text text;
	struct scratch_list entries;
	autofd int fd = open_thing(h);

	if (fd < 0)
		return fail_read(h, fd, e);
	if (S_ISLNK(h->st.st_mode))
		return show_link(fd, e);
	if (S_ISDIR(h->st.st_mode)) {
		int r = list(fd, a, &entries);

		return r < 0 ? fail_read(h, r, e) : scratch_list_print(&entries, e);
	}
	if (!S_ISREG(h->st.st_mode))
		return 0;
	int r = quarantine_text_read(&text, a, fd);
	return r < 0 ? fail_read(h, r, e) : quarantine_text_print(&text, "", e);
}

int quarantine_show(const struct quarantine_held *h, struct arena *a, struct error *e)
{
	int r = put_head(h, e);

	if (r >= 0)
		r = talk_result("\n", 1, e);
	return r < 0 ? r : show_content(h, a, e);
}

/* --- diff ------------------------------------------------------------------------------------- */

/* What stands where it appeared; a link is not followed. */
static int open_there(const struct quarantine_held *h)
{
	return beneath_open(h->root, h->record->from, O_PATH | O_NOFOLLOW, BENEATH_ANY_MOUNT);
}

/* Read the file of one side. One that does not exist, or is no regular file, counts as absent and empty. */
static int read_side(struct quarantine_text *ret, struct arena *a, int dir, const char *path)
{
	*ret = (struct quarantine_text){ .absent = true };
	if (dir < 0)
		return 0;
	autofd int fd = path ? beneath_open(dir, path, O_PATH | O_NOFOLLOW, BENEATH_ANY_MOUNT)
			     : fcntl(dir, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? 0 : fd;
	int r = quarantine_text_read(ret, a, fd);
	return r == -EINVAL ? 0 : r;
}

static int put_names(const char *mark, const char *path, struct error *e)
{
	int r = talk_result(mark, strlen(mark), e);

	if (r >= 0 && fd_write_visible(STDOUT_FILENO, path) < 0)
		r = error_set(
			e, ERROR_INTERNAL, "report", EIO, NULL, "cannot write the result");
	return r < 0 ? r : talk_result("\n", 1, e);
}

static int diff_file(struct arena a, int held, int there, const char *path, const char *name,
	struct error *e)
{
	struct quarantine_text was, would; /* in a copy of the arena: free again afterwards */
	bool differ;
	int r = read_side(&was, &a, there, path);

	if (r >= 0)
		r = read_side(&would, &a, held, path);
	if (r < 0)
		return error_set(e, ERROR_PATH, "session", -r, name, "cannot compare");
	if (quarantine_text_same(&was, &would))
		return 0;
	r = put_names(was.absent ? "--- nothing is at " : "--- ", name, e);
	if (r >= 0)
		r = put_names("+++ in quarantine: ", name, e);
	return r < 0 ? r : quarantine_text_diff(&was, &would, &differ, e);
}

static int diff_tree(
	const struct quarantine_held *h, struct arena *a, int held, int there, struct error *e)
{
	struct scratch_list entries;
	int r = list(held, a, &entries);

	if (r < 0)
		return fail_read(h, r, e);
	for (size_t i = 0; i < entries.count && r >= 0; i++)
		if (S_ISREG(entries.entries[i].mode))
			r = diff_file(*a, held, there, entries.entries[i].path,
				entries.entries[i].path, e);
		else if (!S_ISDIR(entries.entries[i].mode))
			r = put_names("+++ in quarantine, no regular file: ",
				entries.entries[i].path, e);
	if (r < 0 || !entries.truncated)
		return r;
	static const char more[] = "... and more\n";
	return talk_result(more, sizeof(more) - 1, e);
}

int quarantine_diff(const struct quarantine_held *h, struct arena *a, struct error *e)
{
	char path[PATH_MAX / 4];
	autofd int held = open_thing(h);
	autofd int there = open_there(h);

	if (held < 0)
		return fail_read(h, held, e);
	quarantine_record_path(h->record, path, sizeof(path));
	if (S_ISDIR(h->st.st_mode))
		return diff_tree(h, a, held, there, e);
	if (!S_ISREG(h->st.st_mode)) {
		int r = put_names("+++ in quarantine, no regular file: ", path, e);

		return r < 0 || !S_ISLNK(h->st.st_mode) ? r : show_link(held, e);
	}
	return diff_file(*a, held, there, NULL, path, e);
}
